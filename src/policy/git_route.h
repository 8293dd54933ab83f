// A URL of git's smart HTTP protocol, read in exactly one way. Gate and vault both judge with this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/repo.h"

namespace sallyport::policy {

enum class GitService : std::uint8_t { UploadPack, ReceivePack };  // fetch, push
enum class GitEndpoint : std::uint8_t { Advertisement, Rpc };      // GET info/refs?service=, POST git-*-pack

std::string_view name(GitService service);  // "git-upload-pack"

struct GitRoute {
  RepoId repo;
  GitService service;
  GitEndpoint endpoint;
  bool dot_git;  // the client wrote the optional ".git"; it is forwarded as it was asked for

  std::string_view method() const;  // "GET" or "POST"
  // The request target, built from the parts: "/acme/widget.git/info/refs?service=git-upload-pack".
  std::string target() const;
};

inline constexpr std::size_t kMaxTargetBytes = 4096;  // the longest path that any forge accepts

// `target` is the raw origin-form target. No percent-encoding, no empty or dotted segment, no query but
// exactly service=git-upload-pack or service=git-receive-pack on info/refs. Refuses with LfsNotGranted (a
// path with the segments info/lfs), DumbHttp (info/refs without a service, HEAD, objects/...),
// MethodNotAllowed, TargetTooLong, BadRequest, or NotGit.
Result<GitRoute> parse_git_route(const HostName& host, HostKind kind, std::string_view method,
                                 std::string_view target);

}  // namespace sallyport::policy
