// Work that takes long or waits for what somebody else has a hand in, done by a copy of this process while
// the loop goes on. For processes with one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"
#include "os/spawn.h"

namespace sallyport::os {

class ForkedTask {
 public:
  using Texts = std::vector<std::string>;
  using Say = std::function<void(const std::string& text)>;
  // Runs in the copy: of what it changes in memory nothing is seen here, but what it says.
  using Work = std::function<void(const Say& say)>;
  // All that was said, and whether that is all there was to say: not when it threw, took too long, or said
  // too much.
  using Done = std::function<void(Texts said, Status whole)>;

  static constexpr std::size_t kMaxAnswerBytes = 64 * 1024 * 1024;

  // The copy has the descriptors `kept` and the standard ones; of all others it lets go, so that nobody waits
  // for it to see their end. It ends with this process, unless the work becomes another user: under ActAs it
  // is that user from the start. `done` is called once, by the loop, and may destroy the task.
  static Result<std::unique_ptr<ForkedTask>> start(EventLoop& loop, const Work& work, std::vector<int> kept,
                                                   std::chrono::milliseconds limit, Done done);
  // Kills it when it still runs; `done` is not called then.
  ~ForkedTask();
  ForkedTask(const ForkedTask&) = delete;
  ForkedTask& operator=(const ForkedTask&) = delete;

  // Until the copy has ended, or that time is over. `done` is not called by it.
  void wait(std::chrono::milliseconds limit);

 private:
  ForkedTask(EventLoop& loop, Child child, Fd answer, Done done);

  void run(std::chrono::milliseconds limit);
  void on_readable();
  void give_up(const char* why);
  void on_ended();
  void unwatch();

  EventLoop& loop_;
  Child child_;
  Fd answer_;
  Done done_;
  std::optional<EventLoop::TimerId> timer_;
  std::string text_;
  Status whole_;
};

}  // namespace sallyport::os
