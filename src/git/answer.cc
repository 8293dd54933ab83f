#include "git/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "git/refusal.h"

namespace sallyport::git {
namespace {

// What a body may be packed with (IANA's names). Any other word would be the upstream's own, and it knows the
// credential.
constexpr std::array<std::string_view, 6> kEncodings{"identity", "gzip", "x-gzip", "deflate", "br", "zstd"};

std::string answer_type(const policy::GitRoute& route) {
  const bool advertisement = route.endpoint == policy::GitEndpoint::Advertisement;
  return advertisement ? advertisement_type(route.service) : result_type(route.service);
}

// Without a word of the upstream's own: it could be the credential, and this goes into the audit log.
std::unexpected<Error> upstream_said(Reason reason, const upstream::AnswerHead& head) {
  return fail(reason, fmt::format("upstream status {}", head.status));
}

}  // namespace

Result<forward::Passage::Reply> GitPassage::begin(upstream::AnswerHead head) {
  if (auto judged = judge_answer(route_, head); !judged) return fail(std::move(judged));
  // The fields are ours, not the upstream's: in their values it could hand the credential on. So no
  // Set-Cookie, no WWW-Authenticate (a credential helper would erase what it holds), no Location, no Alt-Svc
  // either.
  std::vector<http::Field> fields{{"content-type", answer_type(route_)}, {"cache-control", "no-store"}};
  if (const std::string_view encoding = head.header("content-encoding"); !encoding.empty()) {
    fields.push_back({"content-encoding", std::string(encoding)});
  }
  if (route_.endpoint == policy::GitEndpoint::Advertisement) {
    filter_.emplace(route_.service);
    head.body_bytes.reset();
  }
  return Reply{head.status, std::move(fields), head.body_bytes};
}

Result<std::string_view> GitPassage::pass(std::string_view bytes) {
  if (!filter_) return bytes;
  auto filtered = filter_->feed(bytes);
  if (!filtered) return fail(std::move(filtered));
  filtered_ = std::move(*filtered);
  return filtered_;
}

Status judge_answer(const policy::GitRoute& route, const upstream::AnswerHead& head) {
  if (head.status == 401 || head.status == 403) {
    return upstream_said(Reason::UpstreamRefusedCredential, head);
  }
  if (head.status == 404 || head.status == 410) return upstream_said(Reason::UpstreamNotFound, head);
  if (head.status >= 300 && head.status < 400) return upstream_said(Reason::UpstreamRedirect, head);
  if (head.status != 200) return upstream_said(Reason::UpstreamError, head);

  const bool advertisement = route.endpoint == policy::GitEndpoint::Advertisement;
  const std::string wanted = answer_type(route);
  const std::string_view type = head.header("content-type");
  if (type != wanted && !type.starts_with(wanted + ";")) {
    return fail(Reason::UpstreamError, "upstream status 200 with a content type that is not git's");
  }
  // Asked for without Accept-Encoding, and read by the filter.
  const std::string_view encoding = head.header("content-encoding");
  if (advertisement && !encoding.empty()) {
    return fail(Reason::UpstreamMalformed, "an advertisement with a content encoding");
  }
  if (!encoding.empty() && std::ranges::find(kEncodings, encoding) == kEncodings.end()) {
    return fail(Reason::UpstreamMalformed, "an unknown content encoding");
  }
  return {};
}

}  // namespace sallyport::git
