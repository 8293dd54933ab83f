// Takes out of a server's advertisement (the answer to info/refs) what would send the client to another host
// or make it try what is refused; everything else passes byte for byte. Holds one pkt-line at most.
//
//   fetch, protocol v2:  bundle-uri, packfile-uris, promisor-remote
//   push:                push-cert, push-options
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/git_route.h"

namespace sallyport::git {

class AdvertisementFilter {
 public:
  explicit AdvertisementFilter(policy::GitService service) : service_(service) {}

  // What of `bytes`, and of what was held back before, may go on. UpstreamMalformed when they are no
  // pkt-lines.
  Result<std::string> feed(std::string_view bytes);
  // The answer is complete: UpstreamTruncated in the middle of a pkt-line.
  Status finish() const;

 private:
  void pass(std::string& out, std::string_view whole, std::string_view data);

  policy::GitService service_;
  std::string partial_;
  bool version_2_ = false;
  bool capabilities_seen_ = false;  // push: they stand behind the first ref
};

}  // namespace sallyport::git
