#include "git/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/text.h"
#include "forward/transfer.h"
#include "git/answer.h"
#include "git/limits.h"
#include "git/pktline.h"
#include "git/push.h"
#include "git/refusal.h"
#include "http/limits.h"
#include "http/reply.h"
#include "policy/decide.h"

namespace sallyport::git {
namespace {

using policy::GitEndpoint;
using policy::GitService;

// Reasons that git can be told inside a 200: policy's, the upstream's and our own. A request that could not
// be read gets its HTTP status instead.
bool is_told_in_band(Reason reason) {
  return info(reason).origin != Origin::Client || info(reason).status == 403;
}

// What is wrong with the list itself, and not with the connection it came on.
bool is_about_the_list(Reason reason) {
  return reason == Reason::BadPush || reason == Reason::PushCertificate || reason == Reason::PushOptions;
}

std::string_view one_line(Reason reason) {
  std::string_view sentence = info(reason).sentence;
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return sentence;
}

// One request, from its head to its last audit line.
class Serving {
 public:
  Serving(const Context& context, const ClientSide& client, http::Connection& connection,
          http::RequestHead head);

  net::Task<Fate> run();

 private:
  // What can be said of the request before its body.
  Status read_head();
  Status check_media() const;
  // The list of refs at the body's start, and that there is no pack where there must be none.
  net::Task<Status> read_push();
  net::Task<Status> expect_no_pack();
  net::Task<Result<bool>> is_probe();

  net::Task<Fate> carry();
  net::Task<Fate> answer_probe();
  upstream::Request upstream_request() const;

  net::Task<Status> record_begin();
  net::Task<Fate> refuse(Error error);  // before Begin: leaves the one audit line
  net::Task<Fate> tell_refusal(Reason reason, int upstream_status = 0);
  net::Task<Status> tell_in_band(const http::Refusal& refusal);
  std::string particulars(Reason reason, int upstream_status) const;
  Fate fate() const { return connection_.reusable() ? Fate::KeepAlive : Fate::Close; }

  bool is_rpc() const { return route_ && route_->endpoint == GitEndpoint::Rpc; }
  bool is_push() const { return is_rpc() && route_->service == GitService::ReceivePack; }

  const Context& context_;
  const ClientSide& client_;
  http::Connection& connection_;
  http::RequestHead head_;
  net::Clock::time_point started_ = net::Clock::now();
  audit::Event event_;

  std::optional<policy::GitRoute> route_;
  std::size_t rule_ = 0;
  std::optional<forward::Live::Entry> live_;  // once it is allowed
  std::optional<PushCommands> push_;
  std::string prefix_;            // the list anew, and what came behind it
  std::uint64_t list_bytes_ = 0;  // how long the list was as the client wrote it
};

Serving::Serving(const Context& context, const ClientSide& client, http::Connection& connection,
                 http::RequestHead head)
    : context_(context),
      client_(client),
      connection_(connection),
      head_(std::move(head)),
      event_(forward::event_of(client, head_)) {}

net::Task<Fate> Serving::run() {
  connection_.limit_body_idle(context_.grant.timeouts.idle);
  if (auto readable = read_head(); !readable) co_return co_await refuse(std::move(readable).error());

  const policy::Decision decision = policy::decide(context_.grant, policy::UseGit{*route_, client_.port});
  if (decision.rule) {
    event_.rule = policy::source_of(context_.grant, *decision.rule).str();
    if (decision.rule->kind == policy::RuleRef::Kind::Git) {
      rule_ = decision.rule->index;
      event_.credential = context_.grant.git[rule_].credential;
    }
  }
  if (decision.allowed()) {
    live_.emplace(context_.live, forward::Judged{.operation = policy::UseGit{*route_, client_.port},
                                                 .rule = rule_,
                                                 .credential = event_.credential});
  }
  if (is_push()) {
    auto pushed = co_await read_push();
    // Who may not push is told so even when the list cannot be read.
    if (!pushed && (decision.allowed() || !is_about_the_list(pushed.error().reason))) {
      co_return co_await refuse(std::move(pushed).error());
    }
  }
  if (!decision.allowed()) co_return co_await refuse({decision.reason, {}});

  const auto probe = co_await is_probe();
  if (!probe) co_return co_await refuse(probe.error());
  if (live_->revoked()) co_return co_await refuse({Reason::Revoked, {}});
  if (auto recorded = co_await record_begin(); !recorded) {
    co_return co_await tell_refusal(Reason::AuditUnavailable);
  }
  if (*probe) co_return co_await answer_probe();
  co_return co_await carry();
}

// ---- reading and judging ----

Status Serving::read_head() {
  if (head_.host.host != client_.host || head_.host.port != client_.port) {
    connection_.close_after_response();
    return fail(Reason::HostMismatch, "Host is " + head_.host.host.str());
  }
  auto route =
      policy::parse_git_route(client_.host, context_.grant.kind_of(client_.host), head_.method, head_.target);
  // That only git is allowed would be wrong where other rules name the host.
  const bool not_git_alone = context_.grant.allow.names(client_.host);
  if (!route && route.error().reason == Reason::NotGit && not_git_alone) {
    return fail(Reason::RepoNotGranted, std::move(route).error().detail);
  }
  if (!route) return fail(std::move(route));
  route_ = std::move(*route);
  event_.path = route_->target();
  for (const std::string_view name : upstream::kForwardedHeaders) {
    if (auto once = head_.single(name); !once) return fail(std::move(once));
  }
  const std::string_view protocol = *head_.single("git-protocol");
  const auto allowed = [](char c) {
    return is_alnum(c) || std::string_view("=:._-").find(c) != std::string_view::npos;
  };
  if (protocol.size() > kMaxGitProtocolBytes || !std::ranges::all_of(protocol, allowed)) {
    return fail(Reason::BadRequest, "Git-Protocol '" + escaped(protocol) + "'");
  }
  return check_media();
}

Status Serving::check_media() const {
  if (!is_rpc()) return {};
  const std::string_view type = *head_.single("content-type");
  if (type != request_type(route_->service)) {
    return fail(Reason::BadContentType, "'" + escaped(type) + "'");
  }
  const std::string_view encoding = *head_.single("content-encoding");
  // A compressed list of commands would have to be inflated to be judged, and git never sends one.
  const bool allowed = encoding.empty() || encoding == "identity" ||
                       (encoding == "gzip" && route_->service == GitService::UploadPack);
  if (!allowed) return fail(Reason::BadContentEncoding, "'" + escaped(encoding) + "'");
  return {};
}

net::Task<Status> Serving::read_push() {
  if (auto told = co_await connection_.send_continue(); !told) co_return told;
  PushReader reader;
  std::string buffer(http::kReadBytes, '\0');
  std::string_view behind;
  while (!reader.finished()) {
    const auto got = co_await connection_.read_body(buffer);
    if (!got) co_return fail(Result(got));
    if (*got == 0) co_return fail(Reason::BadPush, "the body ends inside the list of commands");
    const std::string_view bytes = std::string_view(buffer).substr(0, *got);
    const auto taken = reader.feed(bytes);
    if (!taken) co_return fail(Result(taken));
    list_bytes_ += *taken;
    behind = bytes.substr(*taken);
  }
  push_ = reader.take();
  event_.refs_total = static_cast<std::uint32_t>(push_->commands.size());
  for (const RefUpdate& update : push_->commands) {
    if (event_.refs.size() == audit::Event::kMaxRefs) break;
    event_.refs.push_back({update.ref, update.old_id, update.new_id});
  }
  if (push_->has_options()) co_return fail(Reason::PushOptions, "");
  prefix_ = serialise(*push_);
  prefix_ += behind;
  if (push_->has_pack()) co_return Status{};
  if (!behind.empty()) co_return fail(Reason::BadPush, "bytes behind a list that needs no pack");
  co_return co_await expect_no_pack();
}

net::Task<Status> Serving::expect_no_pack() {
  char byte = 0;
  const auto got = co_await connection_.read_body({&byte, 1});
  if (!got) co_return fail(Result(got));
  if (*got > 0) co_return fail(Reason::BadPush, "bytes behind a list that needs no pack");
  co_return Status{};
}

// Before a large request git asks with a body of "0000" whether it would be taken.
net::Task<Result<bool>> Serving::is_probe() {
  if (is_push()) co_return push_->probe();
  const bool has_its_size = is_rpc() && head_.body == http::BodyKind::Declared &&
                            head_.body_bytes == kFlushPkt.size() && head_.single("content-encoding")->empty();
  if (!has_its_size) co_return false;
  if (auto told = co_await connection_.send_continue(); !told) co_return fail(std::move(told));
  std::string buffer(kFlushPkt.size(), '\0');
  while (!connection_.body_finished()) {
    const auto got = co_await connection_.read_body(buffer);
    if (!got) co_return fail(Result(got));
    prefix_ += buffer.substr(0, *got);
  }
  co_return prefix_ == kFlushPkt;
}

// ---- carrying it out ----

net::Task<Fate> Serving::answer_probe() {
  forward::Outcome outcome;
  outcome.bytes_in = kFlushPkt.size();
  event_.detail = "git's probe, answered here";
  const Status replied = co_await http::reply(connection_, 200, result_type(route_->service), "");
  if (!replied) outcome.error = replied.error();
  context_.recorder.note(forward::end_of(event_, outcome, started_));
  co_return fate();
}

net::Task<Fate> Serving::carry() {
  const bool anonymous = context_.grant.git[rule_].credential.empty();
  upstream::Opener& opener = anonymous ? context_.direct : context_.vault;
  GitPassage passage(*route_);
  const forward::Outcome outcome = co_await forward::carry({.connection = connection_,
                                                            .live = *live_,
                                                            .opener = opener,
                                                            .request = upstream_request(),
                                                            .passage = passage,
                                                            .upstream_idle = context_.grant.timeouts.idle,
                                                            .prefix = std::move(prefix_)});
  context_.recorder.note(forward::end_of(event_, outcome, started_));
  if (outcome.error.reason != Reason::None) {
    co_return co_await tell_refusal(outcome.error.reason, outcome.upstream_status);
  }
  // The answer came early: git still sends, and would send all of it again if the connection closed.
  co_await connection_.drain_body(kMaxDrainBytes);
  co_return fate();
}

upstream::Request Serving::upstream_request() const {
  upstream::Request request{.request_id = event_.request,
                            .rule = rule_,
                            .host = route_->repo.host,
                            .port = client_.port,
                            .method = std::string(route_->method()),
                            .target = route_->target()};
  for (const http::Field& field : head_.fields) {
    const bool forwarded =
        std::ranges::find(upstream::kForwardedHeaders, field.name) != std::end(upstream::kForwardedHeaders);
    // The filter reads advertisements: they must come as they are.
    const bool encoded_advertisement = !is_rpc() && field.name == "accept-encoding";
    if (forwarded && !encoded_advertisement) request.headers.push_back({field.name, field.value});
  }
  if (!is_rpc()) return request;
  const bool chunked = head_.body == http::BodyKind::Chunked;
  request.body = chunked ? upstream::BodyKind::Open : upstream::BodyKind::Declared;
  if (!chunked) request.body_bytes = head_.body_bytes;
  // The list goes out as it was written anew.
  if (push_ && !chunked) request.body_bytes += serialise(*push_).size() - list_bytes_;
  return request;
}

// ---- the audit log ----

net::Task<Status> Serving::record_begin() {
  event_.kind = audit::Kind::Begin;
  audit::Event begin = event_;
  if (auto recorded = co_await context_.recorder.record(std::move(begin)); !recorded) co_return recorded;
  const std::size_t total = push_ ? push_->commands.size() : 0;
  for (std::size_t i = audit::Event::kMaxRefs; i < total; i += audit::Event::kMaxRefs) {
    audit::Event more;
    more.kind = audit::Kind::Refs;
    more.request = event_.request;
    more.refs_total = event_.refs_total;
    for (std::size_t j = i; j < std::min(total, i + audit::Event::kMaxRefs); ++j) {
      const RefUpdate& update = push_->commands[j];
      more.refs.push_back({update.ref, update.old_id, update.new_id});
    }
    if (auto recorded = co_await context_.recorder.record(std::move(more)); !recorded) co_return recorded;
  }
  co_return Status{};
}

// ---- saying no ----

net::Task<Fate> Serving::refuse(Error error) {
  const Reason reason = error.reason;
  co_await context_.recorder.refuse(event_, std::move(error));
  co_return co_await tell_refusal(reason);
}

net::Task<Fate> Serving::tell_refusal(Reason reason, int upstream_status) {
  if (connection_.response_begun()) co_return Fate::Close;  // it was cut, and the client has seen that
  if (reason == Reason::ClientClosed || reason == Reason::ClientTimeout) {
    connection_.abort();
    co_return Fate::Close;
  }
  const http::Refusal refusal{
      .reason = reason, .particulars = particulars(reason, upstream_status), .request_id = event_.request};
  if (reason == Reason::LfsNotGranted) {
    co_await http::reply(connection_, info(reason).status, std::string(kLfsType),
                         lfs_refusal(info(reason).sentence, event_.request));
  } else if (is_rpc() && is_told_in_band(reason)) {
    co_await tell_in_band(refusal);
  } else {
    co_await http::refuse(connection_, refusal);
  }
  co_return fate();
}

// git reads the answer to a POST only when it is a 200 and its own request was taken whole.
net::Task<Status> Serving::tell_in_band(const http::Refusal& refusal) {
  std::optional<std::string> body;
  const std::string text = http::refusal_text(refusal);
  if (!is_push()) {
    body = fetch_refusal(text);
  } else if (push_) {
    body = push_refusal(*push_, text, one_line(refusal.reason));
  }
  if (!body) co_return co_await http::refuse(connection_, refusal);
  if (auto told = co_await connection_.send_continue(); !told) co_return told;
  const auto drained = co_await connection_.drain_body(kMaxDrainBytes);
  if (!drained && drained.error().reason != Reason::TooLarge) co_return drained;
  if (!drained) co_return co_await http::refuse(connection_, refusal);
  co_return co_await http::reply(connection_, 200, result_type(route_->service), *std::move(body));
}

std::string Serving::particulars(Reason reason, int upstream_status) const {
  if (!route_) return {};
  std::string text = route_->repo.str();
  if (upstream_status != 0) text += fmt::format(": upstream status {}", upstream_status);
  const bool by_policy = info(reason).origin == Origin::Client && info(reason).status == 403;
  if (!by_policy) return text;
  return text + forward::how_to_allow(reason, policy::UseGit{*route_, client_.port});
}

}  // namespace

net::Task<Fate> serve(const Context& context, const ClientSide& client, http::Connection& connection,
                      http::RequestHead head) {
  Serving serving(context, client, connection, std::move(head));
  co_return co_await serving.run();
}

}  // namespace sallyport::git
