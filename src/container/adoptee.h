// A container of somebody else's, from the first look at it to its end. One that is laxer than one of ours
// would be is refused, and stopped.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "container/host.h"
#include "engine/container_state.h"
#include "os/event_loop.h"

namespace sallyport::container {

class Adoptee {
 public:
  using OnAdopted = std::function<void(Status)>;

  // `on_death`: of its first process, after it was adopted; once.
  Adoptee(os::EventLoop& loop, Host& host, std::string session, std::function<void()> on_death)
      : loop_(loop), host_(host), session_(std::move(session)), on_death_(std::move(on_death)) {}
  Adoptee(const Adoptee&) = delete;
  Adoptee& operator=(const Adoptee&) = delete;
  // It is killed, if it was adopted.
  ~Adoptee();

  // Once. The error of a laxer one has a line for each thing that is wrong, with the remedy.
  void adopt(const std::string& container, OnAdopted on_adopted);
  // As the engine told of it last.
  const engine::ContainerState& state() const { return state_; }
  // Of its first process, which is proved to be alive.
  Result<Fd> open_namespace(const char* kind) const;
  // Kills it; `on_gone` comes later, once it is dead.
  void end(std::function<void()> on_gone);

 private:
  void on_first_look(Result<engine::ContainerState> state);
  void look_at_next_volume();
  void judge();
  void on_second_look(const Result<engine::ContainerState>& state);
  void refuse(const std::vector<std::string>& problems);
  void answer(const Status& status);
  void on_process_end();
  bool alive() const;

  os::EventLoop& loop_;
  Host& host_;
  std::string session_;
  std::function<void()> on_death_;
  std::function<void()> on_gone_;
  OnAdopted on_adopted_;
  engine::ContainerState state_;
  std::vector<std::string> volumes_;  // that are still to be asked about
  std::set<std::string> plain_volumes_;
  Fd pidfd_;
  bool watched_ = false;
  engine::Call call_;
};

}  // namespace sallyport::container
