// For tests: a fresh folder that goes away with the object. World-accessible, since some tests drop to
// another uid.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace sallyport::sandbox {

class TestFolder {
 public:
  TestFolder() {
    std::string name = "/tmp/sallyport-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0777) != 0) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = std::move(name);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  // Runs it there, with a name for git's commits and nobody's configuration; its status.
  int shell(const std::string& script) const {
    const std::string call = "cd '" + path_ +
                             "' && export HOME=/nonexistent GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b "
                             "GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; (" +
                             script + ") >/dev/null 2>&1";
    return std::system(call.c_str());
  }

 private:
  std::string path_;
};

}  // namespace sallyport::sandbox
