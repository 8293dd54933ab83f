// What happens to containers, as the engine tells it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/client.h"

namespace sallyport::engine {

// One event; a longer one is dropped, and the owner lists anew. Labels are most of it.
inline constexpr std::size_t kMaxEventBytes = 1024 * 1024;
// Between attempts to reach an engine that is gone: doubled from the first to the second.
inline constexpr std::chrono::milliseconds kMinReconnectInterval{100};
inline constexpr std::chrono::milliseconds kMaxReconnectInterval{5'000};
// Of the events seen last, to drop those that are told again. The engine itself keeps 256.
inline constexpr std::size_t kMaxRememberedEvents = 512;

enum class EventKind { Create, Start, Pause, Unpause, Die, Destroy, OutOfMemory, Connect, Disconnect };

struct Event {
  EventKind kind = EventKind::Create;
  std::string container;  // its id
  std::string name;       // the container's; "" with Connect and Disconnect
  std::string network;    // of Connect and Disconnect: its name
  std::string network_id;
  // The engine's, and the container's labels among them, which may take their names: an exit code, say, is
  // only known from inspect.
  std::map<std::string, std::string> attributes;
  std::int64_t time_ns = 0;
};

// One line of GET /events; nullopt for an event that is none of the above.
Result<std::optional<Event>> read_event(std::string_view line);

class Events {
 public:
  struct Callbacks {
    // The stream stands, for the first time or again: list everything, since events may have been missed. Not
    // before this, or what happens between the list and the stream would be missed.
    std::function<void()> on_resync;
    std::function<void(const Event&)> on_event;
    // It is gone, and tried again.
    std::function<void(const Error&)> on_lost;
  };

  // Begins at the loop's next turn. The client is negotiated, and outlives this. Callbacks may destroy it.
  Events(Client& client, Callbacks callbacks);
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events();

 private:
  void connect();
  void open();
  void take(std::string_view bytes);
  // False when a callback has destroyed this.
  bool take_line(std::string_view line);
  bool seen(const Event& event);
  void lose(const Error& error);
  template <class Callback, class... Arguments>
  bool call(const Callback& callback, const Arguments&... arguments);

  Client& client_;
  Callbacks callbacks_;
  Call call_;
  std::optional<os::EventLoop::TimerId> retry_;
  std::chrono::milliseconds back_off_ = kMinReconnectInterval;
  std::string line_;       // what has come of the next one
  bool skipping_ = false;  // the line is too long: up to its end
  std::int64_t last_time_ns_ = 0;
  std::deque<std::string> remembered_;
  bool* gone_ = nullptr;
};

}  // namespace sallyport::engine
