#include "dns/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "dns/message.h"
#include "policy/decide.h"

namespace sallyport::dns {
namespace {

constexpr std::uint16_t kDnsPort = 53;

audit::Event refusal(Reason reason, std::string_view request_id) {
  audit::Event event;
  event.kind = audit::Kind::Refused;
  event.request = request_id;
  event.entry = audit::Entry::Dns;
  event.scheme = "dns";
  event.port = kDnsPort;
  event.reason = reason;
  return event;
}

audit::Event refusal(Reason reason, std::string_view request_id, const Query& query) {
  audit::Event event = refusal(reason, request_id);
  event.host = lowered(query.name);
  event.path = type_name(query.type);
  return event;
}

// What the client reads: dig prints it, systemd-resolved logs it.
std::string why(Reason reason, std::string_view request_id) {
  return fmt::format("{} request {}", info(reason).sentence, request_id);
}

struct Judged {
  Reason reason;  // None: allowed
  std::optional<policy::IpAddress> address;
};

Judged judge(const std::string& name, const policy::Grant& grant, SyntheticAddresses& addresses) {
  const auto host = policy::HostName::parse(name);
  // A name of one label, with an underscore or an odd byte is a fair question, only about no host of ours.
  if (!host) {
    return {host.error().reason == Reason::IpLiteral ? Reason::IpLiteral : Reason::HostNotAllowed, {}};
  }
  const auto decision = policy::decide(grant, policy::ResolveName{*host});
  if (!decision.allowed()) return {decision.reason, {}};
  return {Reason::None, addresses.address_of(*host)};
}

bool is_refused_kind(const Query& query) {
  return query.klass != kClassIn || query.type == kTypeAny || query.type == kTypeAxfr ||
         query.type == kTypeIxfr;
}

}  // namespace

Reply answer(std::string_view bytes, const policy::Grant& grant, SyntheticAddresses& addresses,
             std::string_view request_id) {
  const auto query = parse_query(bytes);
  if (!query) {
    audit::Event event = refusal(Reason::BadDnsQuery, request_id);
    event.detail = query.error().detail;
    if (query.error().what == NoQuery::What::Drop) return {"", event};
    return {write_error(query.error()), event};
  }
  if (is_refused_kind(*query)) {
    audit::Event event = refusal(Reason::BadDnsQuery, request_id, *query);
    event.detail = query->klass == kClassIn ? "this type is never answered" : "the class is not IN";
    Answer refused{.rcode = Rcode::Refused};
    refused.blocked_text = why(Reason::BadDnsQuery, request_id);
    return {write_answer(*query, refused), event};
  }
  const Judged judged = judge(query->name, grant, addresses);
  if (judged.reason != Reason::None) {
    Answer denial{.rcode = Rcode::NxDomain, .ttl_seconds = kNegativeTtlSeconds, .has_soa = true};
    denial.blocked_text = why(judged.reason, request_id);
    return {write_answer(*query, denial), refusal(judged.reason, request_id, *query)};
  }
  if (query->type != kTypeA || !judged.address) {
    return {write_answer(*query, {.ttl_seconds = kNegativeTtlSeconds, .has_soa = true}), std::nullopt};
  }
  Answer found{.ttl_seconds = kSyntheticTtlSeconds};
  found.address.emplace();
  std::copy_n(judged.address->bytes.begin(), found.address->size(), found.address->begin());
  return {write_answer(*query, found), std::nullopt};
}

}  // namespace sallyport::dns
