#include "vault/service_lane.h"

#include <algorithm>

#include "vault/inject.h"

namespace sallyport::vault {
namespace {

// What is read at once, in either direction. Lives only while bytes are moved.
constexpr std::size_t kPieceBytes = kMaxPayloadBytes;

audit::Event event_of(audit::Kind kind, const RequestHead& head, const policy::Grant& grant) {
  audit::Event event;
  event.kind = kind;
  event.request = head.request_id;
  event.scheme = "https";
  event.host = head.host;
  event.port = head.port;
  event.method = head.method;
  event.path = head.target;
  const bool names_a_rule = !head.request_id.empty() && head.rule < grant.git.size();
  if (names_a_rule) {
    event.rule = grant.git[head.rule].source.str();
    event.credential = grant.git[head.rule].credential;
  }
  return event;
}

}  // namespace

Result<std::shared_ptr<const Secret>> Service::State::line_for(const std::string& credential,
                                                               policy::HostKind kind) {
  const auto held = credentials.find(credential);
  if (held == credentials.end()) {
    return fail(Reason::CredentialUnavailable, "credential '" + credential + "' is not loaded");
  }
  std::shared_ptr<const Secret>& line = held->second.lines[kind];
  if (line == nullptr) {
    auto made = basic_authorization(kind, held->second.token);
    if (!made) return fail(std::move(made));
    line = std::make_shared<const Secret>(std::move(*made));
  }
  return line;
}

Result<std::shared_ptr<const Secret>> Service::State::use(const std::string& credential,
                                                          policy::HostKind kind) {
  if (setup.uses_left == 0) return fail(Reason::UsesSpent, "");
  auto line = line_for(credential, kind);
  if (line) --setup.uses_left;
  return line;
}

void Service::State::alarm(const RequestHead& head, const Error& error) {
  const auto now = net::Clock::now();
  if (now - alarm_minute >= std::chrono::minutes(1)) {
    alarm_minute = now;
    alarms = 0;
  }
  if (alarms++ >= kMaxAlarmsPerMinute) return;
  audit::Event event = event_of(audit::Kind::Alarm, head, *setup.grant);
  event.reason = error.reason;
  event.detail = "the vault refused what the gate sent: " + error.detail;
  // Nothing was sent upstream, so there is nothing to take back when this cannot be written.
  (void)setup.report(std::move(event));
}

ServedLane::ServedLane(std::shared_ptr<Service::State> state, std::unique_ptr<net::Stream> stream)
    : state_(std::move(state)), frames_(std::move(stream)) {}

net::Task<> ServedLane::serve() {
  for (;;) {
    auto next = co_await read_frame();
    if (!next) {
      co_await refuse(std::move(next).error());
      break;
    }
    if (*next == Next::Stop) break;
  }
  if (exchange_ != nullptr) exchange_->abort();
  // Whoever writes the answer may be waiting for a gate that does not read.
  if (!failed_) frames_.stream().close();
  if (answer_done_) co_await answer_done_->wait();
  if (failed_) co_await linger();
}

net::Task<Result<ServedLane::Next>> ServedLane::read_frame() {
  if (order_.idle()) {
    frames_.stream().no_limit();
    if (auto readable = co_await frames_.stream().wait_readable(); !readable) co_return Next::Stop;
    if (!failed_) frames_.stream().limit_total(state_->setup.limits.head);
  }
  auto header = co_await frames_.read_header();
  // After a failure of the answer's side the error is on its way, and the rest is only thrown away.
  if (failed_) co_return Next::Stop;
  if (!header && header.error().reason != Reason::VaultRefused) co_return Next::Stop;
  if (!header) co_return fail(std::move(header));
  if (!*header) co_return Next::Stop;  // the gate hung up
  if (auto accepted = order_.accept(**header); !accepted) co_return fail(std::move(accepted));

  Status done;
  if ((*header)->type == FrameType::RequestHead) {
    done = co_await begin_request((*header)->bytes);
  } else if ((*header)->type == FrameType::Body) {
    done = co_await forward_body((*header)->bytes);
  } else {
    co_await end_body();
  }
  if (!done) co_return fail(std::move(done));
  co_return failed_ ? Next::Stop : Next::Continue;
}

net::Task<Status> ServedLane::begin_request(std::size_t bytes) {
  // The answer before is complete, but its last frame may still wait for the gate to read.
  if (answer_done_) co_await answer_done_->wait();
  answer_done_.reset();
  head_ = {};
  frames_.stream().limit_total(state_->setup.limits.head);
  auto payload = co_await frames_.read_payload(bytes);
  if (!payload) co_return fail(std::move(payload));
  auto head = decode_request_head(*payload);
  if (!head) co_return fail(std::move(head));
  head_ = std::move(*head);
  frames_.stream().limit_idle(state_->setup.limits.silence);

  auto judged = judge(head_, state_->setup.session, *state_->setup.grant);
  if (!judged) co_return fail(std::move(judged));
  order_.begin(head_.body, head_.body_bytes);
  co_return co_await reach_upstream(std::move(*judged));
}

net::Task<Status> ServedLane::reach_upstream(Judged judged) {
  const policy::HostKind kind = state_->setup.grant->kind_of(judged.request.host);
  auto line = state_->use(judged.credential, kind);
  // Before anything is sent: a use that cannot be written down does not happen.
  audit::Event use = event_of(audit::Kind::Credential, head_, *state_->setup.grant);
  if (!line) {
    use.reason = line.error().reason;
    use.detail = line.error().detail;
  }
  auto reported = state_->setup.report(std::move(use));
  if (!line) co_return fail(std::move(line));
  if (!reported) co_return fail(Reason::AuditUnavailable, reported.error().detail);

  auto exchange = co_await state_->setup.open(std::move(judged.request), {judged.credential, *line});
  if (!exchange) co_return fail(std::move(exchange));
  exchange_ = std::move(*exchange);
  body_ended_ = false;
  answer_ended_ = false;
  upstream_takes_body_ = true;
  answer_done_.emplace(state_->worker);
  state_->worker.spawn("vault answer", answer());
  co_return Status();
}

net::Task<Status> ServedLane::forward_body(std::size_t bytes) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(std::min(bytes, kPieceBytes));
  while (bytes > 0) {
    const std::span piece(buffer.get(), std::min(bytes, kPieceBytes));
    if (auto read = co_await frames_.read_exactly(piece); !read) co_return fail(std::move(read));
    bytes -= piece.size();
    // An upstream that takes no more may still answer: the rest is read and thrown away.
    if (!upstream_takes_body_ || failed_) continue;
    auto sent = co_await exchange_->send_body({piece.data(), piece.size()});
    if (!sent) upstream_takes_body_ = false;
  }
  co_return Status();
}

net::Task<> ServedLane::end_body() {
  if (upstream_takes_body_ && !failed_) {
    // As above: why it failed is told by the answer's side.
    (void)co_await exchange_->end_body();
  }
  body_ended_ = true;
  request_part_ended();
}

void ServedLane::request_part_ended() {
  if (!body_ended_ || !answer_ended_) return;
  exchange_.reset();
  if (!failed_) frames_.stream().no_limit();
}

net::Task<> ServedLane::answer() {
  auto written = co_await write_answer();
  if (!written && !failed_) {
    failed_ = true;
    frames_.stream().limit_total(state_->setup.limits.linger);
    (void)co_await frames_.write(FrameType::Error, encode(written.error()));
    (void)co_await frames_.stream().shutdown_write();
    // Wakes a reading side that waits to send body bytes.
    if (exchange_ != nullptr) exchange_->abort();
  }
  answer_done_->set();
}

net::Task<Status> ServedLane::write_answer() {
  auto head = co_await exchange_->read_head();
  if (!head) co_return fail(std::move(head));
  auto payload = encode(*head);
  if (!payload) co_return fail(std::move(payload));
  if (auto sent = co_await frames_.write(FrameType::AnswerHead, *payload); !sent) co_return sent;

  const auto buffer = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  for (;;) {
    auto got = co_await exchange_->read_body({buffer.get(), kPieceBytes});
    if (!got) co_return fail(std::move(got));
    if (*got == 0) break;
    auto sent = co_await frames_.write(FrameType::AnswerBody, {buffer.get(), *got});
    if (!sent) co_return sent;
  }
  // Before the last frame is written: the gate may send its next request as soon as it has read it.
  order_.answer_ended();
  answer_ended_ = true;
  request_part_ended();
  co_return co_await frames_.write(FrameType::AnswerEnd, {});
}

// The reading side found fault. An answer under way is cut short first, so that frames do not mix.
net::Task<> ServedLane::refuse(Error error) {
  if (failed_) co_return;
  failed_ = true;
  frames_.stream().limit_total(state_->setup.limits.linger);
  if (error.reason == Reason::VaultRefused) state_->alarm(head_, error);
  if (exchange_ != nullptr) exchange_->abort();
  if (answer_done_) co_await answer_done_->wait();
  (void)co_await frames_.write(FrameType::Error, encode(error));
  (void)co_await frames_.stream().shutdown_write();
}

// Closing at once could cost the gate the error: a Unix socket that is closed with unread bytes resets its
// peer.
net::Task<> ServedLane::linger() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  for (;;) {
    auto got = co_await frames_.stream().read_some({buffer.get(), kPieceBytes});
    if (!got || *got == 0) break;
  }
  frames_.stream().close();
}

}  // namespace sallyport::vault
