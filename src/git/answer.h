// What git's client gets of an upstream's answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "forward/transfer.h"
#include "git/advertisement.h"
#include "policy/git_route.h"
#include "upstream/exchange.h"

namespace sallyport::git {

// Whether an answer may be passed on: 200 with git's content type. Everything else is an Upstream* reason;
// neither a redirect's target nor a login page ever reaches the client.
Status judge_answer(const policy::GitRoute& route, const upstream::AnswerHead& head);

class GitPassage final : public forward::Passage {
 public:
  explicit GitPassage(const policy::GitRoute& route) : route_(route) {}

  Result<Reply> begin(upstream::AnswerHead head) override;
  Result<std::string_view> pass(std::string_view bytes) override;
  Status end() override { return filter_ ? filter_->finish() : Status{}; }

 private:
  const policy::GitRoute& route_;
  std::optional<AdvertisementFilter> filter_;
  std::string filtered_;
};

}  // namespace sallyport::git
