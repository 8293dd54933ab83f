// One lane's life inside the vault, and what all lanes share. Used by service.cc alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/event.h"
#include "vault/frames.h"
#include "vault/judge.h"
#include "vault/service.h"

namespace sallyport::vault {

struct Service::State {
  State(net::Worker& w, Setup s) : worker(w), setup(std::move(s)) {}

  net::Worker& worker;
  Setup setup;
  // By name. What goes upstream is made once for each host kind, and kept beside the token.
  struct Held {
    Secret token;
    std::map<policy::HostKind, std::shared_ptr<const Secret>> lines;
  };
  std::map<std::string, Held> credentials;
  std::size_t lanes = 0;

  net::Clock::time_point alarm_minute;
  int alarms = 0;

  // CredentialUnavailable when it is not loaded.
  Result<std::shared_ptr<const Secret>> line_for(const std::string& credential, policy::HostKind kind);
  // The same, for a request that uses it up; UsesSpent when the session may not any more.
  Result<std::shared_ptr<const Secret>> use(const std::string& credential, policy::HostKind kind);
  // A gate sent what an honest one does not.
  void alarm(const RequestHead& head, const Error& error);
};

// The reading side is one coroutine for the lane's whole life; each request's answer is written by another,
// which the reading side waits for before it begins the next request or ends.
class ServedLane {
 public:
  ServedLane(std::shared_ptr<Service::State> state, std::unique_ptr<net::Stream> stream);

  net::Task<> serve();

 private:
  // What a frame led to. Stop: the lane has nothing more to read.
  enum class Next : std::uint8_t { Continue, Stop };

  net::Task<Result<Next>> read_frame();
  net::Task<Status> begin_request(std::size_t bytes);
  net::Task<Status> reach_upstream(Judged judged);
  net::Task<Status> forward_body(std::size_t bytes);
  net::Task<> end_body();

  net::Task<> answer();
  net::Task<Status> write_answer();
  void request_part_ended();

  net::Task<> refuse(Error error);
  net::Task<> linger();

  std::shared_ptr<Service::State> state_;
  Frames frames_;
  RequestOrder order_;
  RequestHead head_;

  // One request's. The exchange lives until both its messages ended.
  std::unique_ptr<upstream::Exchange> exchange_;
  std::optional<net::Event> answer_done_;
  bool body_ended_ = false;
  bool answer_ended_ = false;
  bool upstream_takes_body_ = false;
  // An error was or will be sent: nothing else is, and what the gate still sends is thrown away.
  bool failed_ = false;
};

}  // namespace sallyport::vault
