// For tests: an engine with containers that are processes of this machine, each in namespaces as a real
// engine would make them. What it is asked can be held, refused, or bent on the way.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <map>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "engine/fake_engine.h"
#include "engine/real_state.h"
#include "os/links.h"
#include "os/netlink.h"
#include "os/process.h"
#include "sandbox/profile.h"

namespace sallyport::container {

class FakeDocker : public engine::WithFakeEngine {
 protected:
  enum class Answer { Now, Later, Refusal };
  struct Container {
    std::string name;
    boost::json::value asked;
    pid_t pid = 0;
    Connection waiter;
  };

  ~FakeDocker() override {
    for (auto& [id, container] : containers_) end(container);
  }

  void start_docker() {
    start([this](Connection& connection) { serve(connection); });
  }

  // By the first words of the request behind the version: "POST /containers/create".
  std::map<std::string, Answer> answers_;
  std::vector<std::string> requests_;
  std::function<void(const std::string& request)> on_request_;
  std::vector<std::pair<std::string, Connection>> held_;
  std::map<std::string, Container> containers_;
  int made_ = 0;  // of containers, which are called id1, id2, ...
  bool has_pause_image_ = true;
  std::function<void(boost::json::value& state)> bend_;
  bool covers_program_ = false;  // as an image's volume would
  bool never_connects_ = false;
  bool starts_slowly_ = false;  // the process runs before the engine says so
  std::vector<Connection> late_;
  std::string image_ = R"({"Id":"sha256:image","Config":{"Env":["PATH=/bin","A=b"]}})";

  void answer_held() {
    auto held = std::move(held_);
    held_.clear();
    for (auto& [line, connection] : held) respond(line, connection);
  }
  void end(Container& container) {
    if (container.pid == 0) return;
    ::kill(container.pid, SIGKILL);
    ::waitpid(std::exchange(container.pid, 0), nullptr, 0);
    if (container.waiter) container.waiter->send_json(R"({"StatusCode":137})");
    container.waiter.reset();
  }
  Container* named(const std::string& suffix) {
    for (auto& [id, container] : containers_) {
      if (container.name.ends_with(suffix)) return &container;
    }
    return nullptr;
  }
  std::size_t asked(const std::string& words) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(requests_, [&](const std::string& line) { return line.starts_with(words); }));
  }

 private:
  // "POST /containers/create?name=x", without the version.
  static std::string line_of(const std::string& request) {
    std::string line = request.substr(0, request.find(" HTTP/"));
    const std::size_t version = line.find("/v1.41");
    if (version != std::string::npos) line.erase(version, 6);
    return line;
  }

  void serve(Connection& connection) {
    const std::string line = line_of(connection->request);
    requests_.push_back(line);
    if (on_request_) on_request_(line);
    // The longest words that fit come first.
    for (const auto& [words, answer] : std::views::reverse(answers_)) {
      if (!line.starts_with(words)) continue;
      if (answer == Answer::Now) break;
      if (answer == Answer::Refusal) return connection->send_json(R"({"message":"no, says the test"})", 500);
      if (answer == Answer::Later) return (void)held_.emplace_back(line, std::move(connection));
    }
    respond(line, connection);
  }

  void respond(const std::string& line, Connection& connection) {
    const auto is = [&](const char* words) { return line.starts_with(words); };
    if (is("GET /version")) {
      return connection->send_json(
          R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12","Components":[{"Name":"Engine"}]})");
    }
    if (is("GET /info")) {
      return connection->send_json(
          R"({"ID":"A","Driver":"overlay2","CgroupVersion":"1","DockerRootDir":"/var/lib/docker",)"
          R"("SecurityOptions":["name=seccomp,profile=default"],"LiveRestoreEnabled":false,"DefaultRuntime":"runc"})");
    }
    if (is("GET /images/sallyport%2Fpause") || is("GET /images/sallyport/pause")) {
      return has_pause_image_ ? connection->send_json(R"({"Id":"sha256:pause"})")
                              : connection->send_json(R"({"message":"No such image"})", 404);
    }
    if (is("POST /images/create")) {
      has_pause_image_ = true;
      return connection->send_json(R"({"status":"sha256:pause"})");
    }
    if (is("GET /images/")) return connection->send_json(image_, image_.empty() ? 404 : 200);
    if (is("GET /containers/json")) return connection->send_json(list());
    if (is("POST /containers/create")) return create(line, *connection);
    const std::string id = line.substr(line.find("/containers/") + 12);
    if (is("DELETE ")) return remove(id.substr(0, id.find('?')), *connection);
    const auto container = containers_.find(id.substr(0, id.find('/')));
    if (container == containers_.end())
      return connection->send_json(R"({"message":"No such container"})", 404);
    if (line.ends_with("/json")) return connection->send_json(state(container->first, container->second));
    if (line.contains("/wait")) return (void)(container->second.waiter = std::move(connection));
    launch(container->second);
    if (starts_slowly_) return (void)late_.push_back(std::move(connection));
    connection->send("HTTP/1.1 204 x\r\n\r\n");
  }

  void create(const std::string& line, engine::FakeEngine::Connection& connection) {
    const std::string id = "id" + std::to_string(++made_);
    const std::string& request = connection.request;
    containers_[id] = {.name = line.substr(line.find("name=") + 5),
                       .asked = boost::json::parse(request.substr(request.find("\r\n\r\n") + 4)),
                       .waiter = nullptr};
    connection.send_json(R"({"Id":")" + id + R"("})", 201);
  }

  void remove(const std::string& name, engine::FakeEngine::Connection& connection) {
    for (auto container = containers_.begin(); container != containers_.end(); ++container) {
      if (container->second.name != name && container->first != name) continue;
      end(container->second);
      containers_.erase(container);
      return connection.send("HTTP/1.1 204 x\r\n\r\n");
    }
    connection.send_json(R"({"message":"No such container"})", 404);
  }

  std::string list() {
    boost::json::array all;
    for (const auto& [id, container] : containers_) {
      all.push_back({{"Id", boost::json::string(id)},
                     {"Names", boost::json::array{boost::json::string("/" + container.name)}},
                     {"ImageID", "sha256:image"},
                     {"State", "running"},
                     {"Labels", container.asked.at("Labels")}});
    }
    return boost::json::serialize(all);
  }

  std::string state(const std::string& id, const Container& container) {
    boost::json::value all = engine::real_state("running.json");
    const auto set = [&](std::string_view pointer, boost::json::value value) {
      all.at_pointer(pointer) = std::move(value);
    };
    set("/Id", boost::json::string(id));
    set("/Name", boost::json::string("/" + container.name));
    set("/State/Pid", container.pid);
    set("/State/Running", container.pid != 0);
    set("/Config/User", container.asked.at("User"));
    for (const char* name : {"SecurityOpt", "NetworkMode"}) {
      set(std::string("/HostConfig/") + name, container.asked.at("HostConfig").at(name));
    }
    boost::json::array mounts;
    for (const auto& mount : container.asked.at("HostConfig").at("Mounts").as_array()) {
      mounts.push_back({{"Type", "bind"},
                        {"Source", mount.at("Source")},
                        {"Destination", mount.at("Target")},
                        {"RW", !mount.at("ReadOnly").as_bool()},
                        {"Propagation", "private"}});
    }
    set("/Mounts", std::move(mounts));
    if (bend_) bend_(all);
    return boost::json::serialize(all);
  }

  static std::string source_at(const Container& container, const char* target) {
    for (const auto& mount : container.asked.at("HostConfig").at("Mounts").as_array()) {
      if (mount.at("Target").as_string() == target) return mount.at("Source").as_string().c_str();
    }
    return "";
  }

  void launch(Container& container) {
    const bool pause = container.name.ends_with("-pause");
    const std::string socket = source_at(container, pause ? "/control" : sandbox::kControlPath);
    const std::string program = os::find_own_program("sallyport-init").value();
    const pid_t joined = pause ? 0 : named("-pause")->pid;
    const bool connects = !never_connects_;
    const bool covers = covers_program_;
    container.pid = ::fork();
    if (container.pid != 0) return;
    const int inside =
        joined == 0 ? -1 : ::open(("/proc/" + std::to_string(joined) + "/ns/net").c_str(), O_RDONLY);
    if (pause ? ::unshare(CLONE_NEWNET) != 0 : ::setns(inside, CLONE_NEWNET) != 0) ::_exit(90);
    if (pause && !os::raise_loopback(os::open_route_socket(0).value().get())) ::_exit(93);
    if (!connects) {
      for (;;) ::pause();
    }
    const char* path = pause ? program.c_str() : sandbox::kInitPath;
    if (!pause && !place(program, covers)) ::_exit(91);
    ::execl(path, path, pause ? "hold" : "connect", socket.c_str(), nullptr);
    ::_exit(92);
  }

  // The program at its place below a /run in memory, in a mount namespace of its own.
  static bool place(const std::string& program, bool covers) {
    const auto mounted = [](const char* from, const char* to, const char* type, unsigned long flags) {
      return ::mount(from, to, type, flags, nullptr) == 0;
    };
    return ::unshare(CLONE_NEWNS) == 0 && mounted(nullptr, "/", nullptr, MS_REC | MS_PRIVATE) &&
           mounted("tmpfs", "/run", "tmpfs", 0) && ::mkdir("/run/sallyport", 0755) == 0 &&
           (!covers || mounted("tmpfs", "/run/sallyport", "tmpfs", 0)) &&
           ::close(::creat(sandbox::kInitPath, 0755)) == 0 &&
           mounted(program.c_str(), sandbox::kInitPath, nullptr, MS_BIND) &&
           mounted(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
  }
};

}  // namespace sallyport::container
