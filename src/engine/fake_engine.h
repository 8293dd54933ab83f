// For tests: a container engine that answers by script, in the test's own event loop.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "engine/client.h"
#include "os/event_loop.h"
#include "os/unix_socket.h"

namespace sallyport::engine {

class FakeEngine {
 public:
  struct Connection {
    Fd fd;
    std::string request;  // head and body as they came

    bool is(std::string_view line) const { return request.starts_with(line); }
    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
    }
    void send_json(std::string_view body, int status = 200) {
      send("HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    }
  };
  // Called when a request is whole. The connection is closed when this returns, unless it was taken.
  using OnRequest = std::function<void(std::unique_ptr<Connection>& connection)>;

  FakeEngine(os::EventLoop& loop, const std::string& path, OnRequest on_request, int backlog = 128)
      : loop_(loop), path_(path), on_request_(std::move(on_request)) {
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), backlog), 0);
    resume();
  }
  ~FakeEngine() {
    pause();
    for (const auto& [fd, connection] : reading_) loop_.unwatch(fd);
    std::filesystem::remove(path_);
  }

  // Does not accept meanwhile.
  void pause() { loop_.unwatch(listener_.get()); }
  void resume() {
    loop_.watch(listener_.get(), POLLIN, [this](short) { accept(); });
  }
  int connections = 0;

 private:
  void accept() {
    auto connection = std::make_unique<Connection>();
    connection->fd.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int fd = connection->fd.get();
    ++connections;
    reading_[fd] = std::move(connection);
    loop_.watch(fd, POLLIN, [this, fd](short) { read(fd); });
  }
  void read(int fd) {
    auto& connection = reading_[fd];
    char bytes[4096];
    const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got > 0) connection->request.append(bytes, static_cast<std::size_t>(got));
    if (got > 0 && !is_whole(connection->request)) return;
    loop_.unwatch(fd);
    auto taken = std::move(connection);
    reading_.erase(fd);
    if (got > 0) on_request_(taken);
  }
  static bool is_whole(const std::string& request) {
    const std::size_t end = request.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const std::size_t at = request.find(kLength);
    if (at == std::string::npos || at > end) return true;
    return request.size() - end - 4 >= std::stoul(request.substr(at + kLength.size()));
  }

  os::EventLoop& loop_;
  std::string path_;
  OnRequest on_request_;
  Fd listener_;
  std::map<int, std::unique_ptr<Connection>> reading_;
};

// A loop, a folder for the socket, a client, and an engine when one was started.
class WithFakeEngine : public ::testing::Test {
 protected:
  WithFakeEngine() {
    char name[] = "/tmp/engine-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/docker.sock";
    client_ = std::make_unique<Client>(loop_, path_);
  }
  ~WithFakeEngine() override {
    engine_.reset();
    std::filesystem::remove_all(folder_);
  }

  using Connection = std::unique_ptr<FakeEngine::Connection>;
  void start(FakeEngine::OnRequest on_request, int backlog = 128) {
    engine_.reset();
    engine_ = std::make_unique<FakeEngine>(loop_, path_, std::move(on_request), backlog);
  }
  // Every request is answered with these bytes, and then the end.
  void answer_with(std::string bytes) {
    start([bytes = std::move(bytes)](Connection& connection) { connection->send(bytes); });
  }
  // Until stop(); only a hang takes that long.
  void run() {
    const auto watchdog = loop_.after(std::chrono::seconds(60), [this] {
      ADD_FAILURE() << "hangs";
      loop_.stop();
    });
    ASSERT_TRUE(loop_.run());
    loop_.cancel(watchdog);
  }
  void stop() { loop_.stop(); }
  // The next turns of the loop, one behind the other.
  void in_turns(std::vector<std::function<void()>> steps) {
    if (steps.empty()) return;
    loop_.after(std::chrono::milliseconds(0), [this, steps = std::move(steps)]() mutable {
      steps.front()();
      steps.erase(steps.begin());
      in_turns(std::move(steps));
    });
  }
  Result<Answer> ask(Request request = {.method = "GET", .target = "/x", .body = {}}) {
    Result<Answer> result = fail(Reason::Internal, "never called");
    const Call call = client_->request(std::move(request), [&](Result<Answer> answer) {
      result = std::move(answer);
      stop();
    });
    run();
    return result;
  }

  os::EventLoop loop_;
  std::string folder_;
  std::string path_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<FakeEngine> engine_;
};

}  // namespace sallyport::engine
