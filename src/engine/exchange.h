// One request to the engine and its answer, on a connection of its own: what Client is made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "engine/answer_reader.h"
#include "engine/pending.h"
#include "os/event_loop.h"

namespace sallyport::engine {

// For a request whose caller says nothing else; the engine takes seconds for some when the disk is busy.
inline constexpr std::chrono::milliseconds kRequestTimeout{30'000};
// How long until a connection is tried again when the engine's backlog is full.
inline constexpr std::chrono::milliseconds kConnectInterval{50};

struct Request {
  std::string method = "GET";
  std::string target;        // "/containers/json?all=1", encoded, without version
  std::string body;          // JSON
  std::optional<Fd> file{};  // instead: a regular file, sent whole
  // Until the answer is whole; of a stream until its head is there. nullopt: until it comes.
  std::optional<std::chrono::milliseconds> timeout = kRequestTimeout;
};

// Of any status.
struct Answer {
  int status = 0;
  std::string body;
};

// A connection that the engine has handed over to one container's input and output.
struct RawStream {
  Fd fd;                     // non-blocking
  std::string already_read;  // the first bytes that came
};

// Called in this order; after on_end no more.
struct Listener {
  std::function<void()> on_open = [] {};        // the answer is 200
  std::function<void(std::string)> on_bytes{};  // a piece of the body
  std::function<void(Error)> on_end{};          // it failed, or the engine ended it
};

// Says what to do about a socket at which no engine can be asked: `error` is connect(2)'s.
Error cannot_connect(const std::string& socket_path, int error);

// The engine's own words in an answer that is none of success.
Error refusal(const Answer& answer, std::string_view what);

class Exchange : public Pending {
 public:
  struct Ending {
    Result<Answer> answer;
    Fd connection;  // of a Raw one
  };
  // Called once, last of all: it may destroy this.
  using OnEnd = std::function<void(Ending)>;
  // Of a Stream: "" once, when its head is there.
  using OnPiece = std::function<void(std::string)>;
  // Frees its place for the next one.
  using OnRelease = std::function<void(Exchange*)>;

  Exchange(os::EventLoop& loop, const std::string& socket_path, std::string_view api, Request request,
           BodyKind kind, OnEnd on_end, OnPiece on_piece);
  ~Exchange() override;

  void on_release(OnRelease callback) { on_release_ = std::move(callback); }
  // Begins; until then only its time runs.
  void connect();
  // Ends it with an error at the loop's next turn.
  void fail_later(Error error);

 private:
  void watch();
  void on_event(short revents);
  bool write_some();
  bool write_file();
  void read_some();
  bool deliver();
  void succeed();
  void finish(Ending ending);
  void close();
  void give_up(Error error) { finish({std::unexpected(std::move(error)), Fd()}); }
  Error timed_out() const;

  os::EventLoop& loop_;
  const std::string& socket_path_;
  std::string what_;  // "GET /info", for messages
  Request request_;
  std::string head_;            // and the body that is no file
  std::size_t written_ = 0;     // of head and body
  std::size_t body_bytes_ = 0;  // of the file, when there is one
  bool sent_ = false;
  bool told_open_ = false;
  bool* gone_ = nullptr;  // of a deliver() that is under way
  AnswerReader reader_;
  BodyKind kind_;
  OnEnd on_end_;
  OnPiece on_piece_;
  OnRelease on_release_;
  Fd socket_;
  std::optional<os::EventLoop::TimerId> deadline_;
  std::optional<os::EventLoop::TimerId> turn_;
};

}  // namespace sallyport::engine
