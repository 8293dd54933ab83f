// What is asked of a container engine, call by call. Containers and images are named as the engine takes
// them: by id, by a part of it, or by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/client.h"
#include "engine/container.h"
#include "engine/container_state.h"

namespace sallyport::engine {

// Sending a tar, and the engine's unpacking it.
inline constexpr std::chrono::milliseconds kImportTimeout{600'000};
// Beside the seconds that a container is given to stop.
inline constexpr std::chrono::milliseconds kStopGrace{20'000};
// Lines of a container's output that are asked for at once.
inline constexpr unsigned kMaxLogLines = 10'000;

struct ListedContainer {
  std::string id;
  std::string name;
  std::string image;  // its digest
  std::string state;  // "running"
  std::map<std::string, std::string> labels;
  std::string network_mode;  // of Docker; Podman says "host" of each
};

struct ImageState {
  std::string id;  // the digest of its content
  std::vector<std::string> tags;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::string working_directory;
  std::vector<std::string> volumes;  // for each of which the engine makes one in every container
  std::string architecture;
};

// Of a volume "local" without options the engine made the folder itself.
struct VolumeState {
  std::string name;
  std::string driver;
  std::map<std::string, std::string> options;

  bool plain() const { return driver == "local" && options.empty(); }
};

struct ExecSpec {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::string user;
  std::string working_directory;
  bool terminal = false;
  bool input = false;  // standard input is the stream's other direction
};

struct ExecState {
  bool running = false;
  std::int64_t exit_code = 0;  // once it runs no more
  std::int64_t pid = 0;
};

struct TerminalSize {
  unsigned rows = 0;
  unsigned columns = 0;
};

enum class Force { No, Yes };

class Engine {
 public:
  explicit Engine(Client& client) : client_(client) {}

  // The new container's id. `name` "": the engine makes one up.
  [[nodiscard]] Call create(const ContainerSpec& spec, std::string_view name, On<std::string> on_id);
  // Done as well when it runs, or is stopped, already.
  [[nodiscard]] Call start(std::string_view container, OnDone on_done);
  [[nodiscard]] Call stop(std::string_view container, std::chrono::seconds patience, OnDone on_done);
  [[nodiscard]] Call kill(std::string_view container, std::string_view signal, OnDone on_done);
  // With its anonymous volumes. Done as well when there is none.
  [[nodiscard]] Call remove(std::string_view container, Force force, OnDone on_done);
  [[nodiscard]] Call inspect(std::string_view container, On<ContainerState> on_state);
  // All that have the label, running or not; `label` "name" or "name=value", or "": all that there are.
  [[nodiscard]] Call list(std::string_view label, On<std::vector<ListedContainer>> on_list);
  // The exit code, when it runs no more, however long that takes.
  [[nodiscard]] Call wait(std::string_view container, On<std::int64_t> on_exit);
  [[nodiscard]] Call resize(std::string_view container, TerminalSize size, OnDone on_done);
  // The last lines of its output: as it is with a terminal, else for a Demultiplexer.
  [[nodiscard]] Call logs(std::string_view container, unsigned lines, On<std::string> on_text);
  // Its input and output from now on. Shutting down one's own side means to leave: it takes the output too.
  [[nodiscard]] Call attach(std::string_view container, On<RawStream> on_stream);

  [[nodiscard]] Call exec_create(std::string_view container, const ExecSpec& spec, On<std::string> on_id);
  [[nodiscard]] Call exec_start(std::string_view exec, const ExecSpec& spec, On<RawStream> on_stream);
  [[nodiscard]] Call exec_inspect(std::string_view exec, On<ExecState> on_state);
  [[nodiscard]] Call exec_resize(std::string_view exec, TerminalSize size, OnDone on_done);

  // A tar of a root folder becomes an image; its id.
  [[nodiscard]] Call import_image(Fd tar, std::string_view repository, std::string_view tag,
                                  On<std::string> on_id);
  [[nodiscard]] Call inspect_image(std::string_view image, On<ImageState> on_state);
  [[nodiscard]] Call inspect_volume(std::string_view volume, On<VolumeState> on_state);

  [[nodiscard]] Call network_connect(std::string_view network, std::string_view container, OnDone on_done);
  [[nodiscard]] Call network_disconnect(std::string_view network, std::string_view container, OnDone on_done);

 private:
  Client& client_;
};

// A part of a target, whatever is in it: all but letters, digits and "-._~" as %XX.
std::string encoded(std::string_view text);

}  // namespace sallyport::engine
