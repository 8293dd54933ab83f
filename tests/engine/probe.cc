// For tests: asks a real container engine through our client.
//
//   engine_probe SOCKET
//
// Each line of standard input is a JSON object: {"tag": 1, "do": "inspect", "container": "x"}. Each line of
// output is an answer with the same tag, {"tag": 1, "value": ...} or {"tag": 1, "error": "...", "reason":
// "..."}, or an event: {"event": "start", ...}, {"event": "resync"}, {"event": "lost"}.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/demultiplexer.h"
#include "engine/engine.h"
#include "engine/events.h"
#include "engine/host_config.h"
#include "os/event_loop.h"

namespace {

namespace json = boost::json;
using namespace sallyport;
using namespace sallyport::engine;

void say(const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string text_of(const json::object& from, const char* name) {
  const json::value* value = from.if_contains(name);
  return value == nullptr ? std::string() : std::string(value->as_string());
}

std::vector<std::string> texts_of(const json::object& from, const char* name) {
  const json::value* value = from.if_contains(name);
  return value == nullptr ? std::vector<std::string>() : json::value_to<std::vector<std::string>>(*value);
}

json::array array_of(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

constexpr const char* kEventNames[] = {"create",  "start", "pause",   "unpause",   "die",
                                       "destroy", "oom",   "connect", "disconnect"};

class Probe {
 public:
  explicit Probe(const std::string& socket) : client_(loop_, socket), engine_(client_) {
    loop_.watch(STDIN_FILENO, POLLIN, [this](short) { read(); });
  }
  int run() { return loop_.run() ? 0 : 1; }

 private:
  void read() {
    char bytes[4096];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return loop_.stop();
    input_.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      const json::object line = json::parse(input_.substr(0, end)).as_object();
      input_.erase(0, end + 1);
      const auto tag = line.at("tag").as_int64();
      if (Call call = begin(line, tag)) calls_[tag] = std::move(call);
    }
  }

  void answer(std::int64_t tag, json::value value) { say({{"tag", tag}, {"value", std::move(value)}}); }
  void refuse(std::int64_t tag, const Error& error) {
    say({{"tag", tag}, {"error", error.detail}, {"reason", code(error.reason)}});
  }
  OnDone done(std::int64_t tag) {
    return [this, tag](const Status& status) { status ? answer(tag, nullptr) : refuse(tag, status.error()); };
  }
  template <class T, class Show>
  On<T> shown(std::int64_t tag, Show show) {
    return [this, tag, show](Result<T> value) {
      value ? answer(tag, show(std::move(*value))) : refuse(tag, value.error());
    };
  }
  On<std::string> text(std::int64_t tag) {
    return shown<std::string>(tag, [](const std::string& value) { return json::value(value); });
  }

  Call begin(const json::object& line, std::int64_t tag);
  Call begin_container(const json::object& line, std::int64_t tag, const std::string& what);
  Call create(const json::object& line, std::int64_t tag);
  Call inspect(const json::object& line, std::int64_t tag);
  Call exec(const json::object& line, std::int64_t tag);
  void watch_events();
  void copy_stream(RawStream stream, std::int64_t tag, std::string input);
  void take(std::int64_t tag, std::string_view bytes);
  void end_stream(std::int64_t tag);

  struct Copy {
    Fd fd;
    Demultiplexer frames;
    std::string standard, error, exec;
  };

  os::EventLoop loop_;
  Client client_;
  Engine engine_;
  std::string input_;
  std::map<std::int64_t, Call> calls_;
  std::map<std::int64_t, Copy> copies_;
  std::unique_ptr<Events> events_;
};

Call Probe::begin(const json::object& line, std::int64_t tag) {
  const std::string what = text_of(line, "do");
  if (what == "negotiate") {
    return client_.negotiate(shown<EngineInfo>(tag, [](const EngineInfo& info) {
      return json::value{{"kind", info.kind == EngineKind::Podman ? "podman" : "docker"},
                         {"api", info.api.text()},
                         {"version", info.version},
                         {"storage", info.storage},
                         {"cgroups", info.cgroups == CgroupVersion::One ? 1 : 2},
                         {"seccomp", info.seccomp},
                         {"live_restore", info.live_restore},
                         {"rootless", info.privilege == Privilege::Rootless}};
    }));
  }
  if (what == "events") {
    watch_events();
    return {};
  }
  if (what == "import") {
    Fd tar(::open(text_of(line, "tar").c_str(), O_RDONLY | O_CLOEXEC));
    return engine_.import_image(std::move(tar), text_of(line, "repository"), text_of(line, "tag_name"),
                                text(tag));
  }
  if (what == "inspect_image") {
    return engine_.inspect_image(text_of(line, "image"), shown<ImageState>(tag, [](const ImageState& image) {
                                   return json::value{{"id", image.id}, {"tags", array_of(image.tags)}};
                                 }));
  }
  if (what == "inspect_volume") {
    return engine_.inspect_volume(text_of(line, "volume"),
                                  shown<VolumeState>(tag, [](const VolumeState& volume) {
                                    return json::value{{"driver", volume.driver}, {"plain", volume.plain()}};
                                  }));
  }
  if (what == "request") {
    Request request{
        .method = text_of(line, "method"), .target = text_of(line, "target"), .body = text_of(line, "body")};
    return client_.request(std::move(request), shown<Answer>(tag, [](const Answer& told) {
                             return json::value{{"status", told.status}, {"body", told.body}};
                           }));
  }
  if (what == "list") {
    return engine_.list(
        text_of(line, "label"), shown<std::vector<ListedContainer>>(tag, [](const auto& list) {
          json::array names;
          for (const auto& each : list)
            names.emplace_back(json::object{{"id", each.id}, {"name", each.name}, {"state", each.state}});
          return json::value(std::move(names));
        }));
  }
  return begin_container(line, tag, what);
}

Call Probe::begin_container(const json::object& line, std::int64_t tag, const std::string& what) {
  const std::string name = text_of(line, "container");
  if (what == "create") return create(line, tag);
  if (what == "inspect") return inspect(line, tag);
  if (what == "exec") return exec(line, tag);
  if (what == "start") return engine_.start(name, done(tag));
  if (what == "stop")
    return engine_.stop(name, std::chrono::seconds(line.at("seconds").as_int64()), done(tag));
  if (what == "kill") return engine_.kill(name, text_of(line, "signal"), done(tag));
  if (what == "remove") return engine_.remove(name, Force::Yes, done(tag));
  if (what == "resize") return engine_.resize(name, {50, 132}, done(tag));
  if (what == "connect") return engine_.network_connect(text_of(line, "network"), name, done(tag));
  if (what == "disconnect") return engine_.network_disconnect(text_of(line, "network"), name, done(tag));
  if (what == "wait") {
    return engine_.wait(name, shown<std::int64_t>(tag, [](std::int64_t exit) { return json::value(exit); }));
  }
  if (what == "logs") {
    return engine_.logs(name, 100, shown<std::string>(tag, [](const std::string& bytes) {
                          std::string outputs[2];
                          (void)Demultiplexer().feed(
                              bytes, [&](Demultiplexer::Output output, std::string_view piece) {
                                outputs[output == Demultiplexer::Output::Error ? 1 : 0] += piece;
                              });
                          return json::value{{"stdout", outputs[0]}, {"stderr", outputs[1]}};
                        }));
  }
  if (what == "attach") {
    return engine_.attach(name, [this, tag, input = text_of(line, "input")](Result<RawStream> stream) {
      if (!stream) return refuse(tag, stream.error());
      copy_stream(std::move(*stream), tag, input);
    });
  }
  refuse(tag, {Reason::Internal, "no such call: " + what});
  return {};
}

Call Probe::create(const json::object& line, std::int64_t tag) {
  ContainerSpec spec;
  spec.image = text_of(line, "image");
  spec.command = texts_of(line, "command");
  spec.environment = texts_of(line, "environment");
  spec.user = text_of(line, "user");
  spec.hostname = text_of(line, "hostname");
  spec.join_network_of = text_of(line, "join");
  spec.seccomp_profile = text_of(line, "seccomp");
  spec.terminal = line.contains("terminal");
  spec.keep_input = line.contains("keep_input");
  if (const json::value* labels = line.if_contains("labels")) {
    spec.labels = json::value_to<std::map<std::string, std::string>>(*labels);
  }
  if (const json::value* tmpfs = line.if_contains("tmpfs")) {
    spec.tmpfs = json::value_to<std::map<std::string, std::string>>(*tmpfs);
  }
  if (const std::string source = text_of(line, "mount"); !source.empty()) {
    spec.mounts.push_back({source, "/mounted", MountAccess::ReadOnly});
  }
  spec.working_directory = "/tmp";
  spec.pids = 64;
  spec.memory_bytes = 64 << 20;
  spec.nano_cpus = 500'000'000;
  spec.shm_bytes = 1 << 20;
  spec.ulimits = {{"nofile", 512, 1024}};
  return engine_.create(spec, text_of(line, "name"), text(tag));
}

Call Probe::inspect(const json::object& line, std::int64_t tag) {
  Demands demands;
  demands.seccomp_profile = text_of(line, "seccomp");
  demands.seccomp_profile_path = "/profile.json";
  demands.cgroup_version = CgroupVersion::One;
  return engine_.inspect(text_of(line, "container"),
                         shown<ContainerState>(tag, [demands](const ContainerState& state) {
                           return json::value{{"id", state.id},
                                              {"name", state.name},
                                              {"image", state.image},
                                              {"running", state.running},
                                              {"pid", state.pid},
                                              {"started_at", state.started_at},
                                              {"exit_code", state.exit_code},
                                              {"labels", json::value_from(state.labels)},
                                              {"network_mode", state.host.network_mode},
                                              {"networks", array_of(state.networks)},
                                              {"problems", array_of(problems(state, demands))}};
                         }));
}

// Create, start, all output, exit code.
Call Probe::exec(const json::object& line, std::int64_t tag) {
  ExecSpec spec;
  spec.command = texts_of(line, "command");
  spec.input = line.contains("input");
  const std::string input = text_of(line, "input");
  return engine_.exec_create(
      text_of(line, "container"), spec, [this, tag, spec, input](const Result<std::string>& id) {
        if (!id) return refuse(tag, id.error());
        copies_[tag].exec = *id;
        calls_[tag] = engine_.exec_start(*id, spec, [this, tag, input](Result<RawStream> stream) {
          if (!stream) return refuse(tag, stream.error());
          copy_stream(std::move(*stream), tag, input);
        });
      });
}

void Probe::copy_stream(RawStream stream, std::int64_t tag, std::string input) {
  Copy& copy = copies_[tag];
  copy.fd = std::move(stream.fd);
  const int fd = copy.fd.get();
  if (!input.empty() && ::send(fd, input.data(), input.size(), MSG_NOSIGNAL) < 0) std::perror("send");
  // To an attach it would mean that we go.
  if (!copy.exec.empty()) ::shutdown(fd, SHUT_WR);
  take(tag, stream.already_read);
  loop_.watch(fd, POLLIN, [this, tag, fd](short) {
    char bytes[4096];
    const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got > 0) return take(tag, {bytes, static_cast<std::size_t>(got)});
    loop_.unwatch(fd);
    end_stream(tag);
  });
}

void Probe::take(std::int64_t tag, std::string_view bytes) {
  Copy& copy = copies_[tag];
  const auto status = copy.frames.feed(bytes, [&](Demultiplexer::Output output, std::string_view piece) {
    (output == Demultiplexer::Output::Error ? copy.error : copy.standard) += piece;
  });
  if (!status) copy.standard += bytes;  // a terminal's
}

void Probe::end_stream(std::int64_t tag) {
  const Copy& copy = copies_[tag];
  json::object told{{"stdout", copy.standard}, {"stderr", copy.error}};
  if (copy.exec.empty()) return answer(tag, told);
  calls_[tag] = engine_.exec_inspect(copy.exec, shown<ExecState>(tag, [told](const ExecState& state) {
                                       json::object all = told;
                                       all["exit_code"] = state.exit_code;
                                       all["running"] = state.running;
                                       return json::value(std::move(all));
                                     }));
}

void Probe::watch_events() {
  Events::Callbacks callbacks;
  callbacks.on_resync = [] { say({{"event", "resync"}}); };
  callbacks.on_lost = [](const Error& error) { say({{"event", "lost"}, {"why", error.detail}}); };
  callbacks.on_event = [](const Event& event) {
    say({{"event", kEventNames[static_cast<std::size_t>(event.kind)]},
         {"container", event.container},
         {"name", event.name},
         {"network", event.network}});
  };
  events_ = std::make_unique<Events>(client_, std::move(callbacks));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: engine_probe SOCKET\n", stderr);
    return 2;
  }
  return Probe(argv[1]).run();
}
