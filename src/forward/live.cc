#include "forward/live.h"

#include <utility>

#include "base/visitor.h"

namespace sallyport::forward {
namespace {

// Such a connection leads to no upstream by itself, and holds no policy: each of its requests is judged
// alone.
bool is_only_a_way_in(const Judged& judged) {
  return std::holds_alternative<policy::Connect>(judged.operation) &&
         (judged.carriage == policy::Carriage::Inspect || judged.carriage == policy::Carriage::PlainHttp);
}

const policy::HostName& host_of(const policy::Operation& operation) {
  return std::visit(
      Visitor{[](const policy::UseGit& git) -> const policy::HostName& { return git.route.repo.host; },
              [](const auto& other) -> const policy::HostName& { return other.host; }},
      operation);
}

bool is_alike(const Judged& judged, const policy::Decision& decision, const policy::Grant& after) {
  return std::visit(Visitor{[](const policy::ResolveName&) { return false; },
                            [&](const policy::Connect&) { return decision.carriage == judged.carriage; },
                            [&](const policy::UseGit&) {
                              const std::size_t rule = decision.rule.value().index;
                              if (after.git[rule].credential != judged.credential) return false;
                              return judged.credential.empty() || rule == judged.rule;
                            },
                            [&](const policy::UseHttp&) {
                              return judged.body_bytes <= after.allow[decision.rule.value().index].max_body;
                            }},
                    judged.operation);
}

bool allows(const Judged& judged, const policy::Grant& before, const policy::Grant& after) {
  const policy::Decision decision = policy::decide(after, judged.operation);
  if (!decision.allowed() || !is_alike(judged, decision, after)) return false;
  const policy::HostName& host = host_of(judged.operation);
  return is_only_a_way_in(judged) || before.upstream(host) == after.upstream(host);
}

}  // namespace

Live::Entry::Entry(Live& live, Judged judged) : live_(live), judged_(std::move(judged)) {
  place_ = live_.entries_.insert(live_.entries_.end(), this);
}

Live::Entry::~Entry() {
  live_.entries_.erase(place_);
}

void Live::judge_again(const policy::Grant& before, const policy::Grant& after) {
  for (Entry* entry : entries_) {
    if (entry->revoked_) continue;
    if (!is_only_a_way_in(entry->judged_)) ++entry->outlived_;
    if (entry->outlived_ <= kMaxPoliciesOutlived && allows(entry->judged_, before, after)) continue;
    entry->revoked_ = true;
    if (entry->end_) entry->end_();
  }
}

}  // namespace sallyport::forward
