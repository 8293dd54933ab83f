#include "policy/git_route.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"

namespace sallyport::policy {
namespace {

using Segments = std::vector<std::string_view>;

constexpr std::string_view kDotGit = ".git";
constexpr std::string_view kServiceQuery = "service=";
constexpr std::string_view kUploadArchive = "git-upload-archive";

// What a path may consist of. Everything else is refused before anything is looked at: '%' (no encoding has
// one reading), ';' (path parameters), '\\' and '#' (some readers' separators), controls, space, bytes over
// 0x7e.
bool is_target_char(char c) {
  return is_visible(c) && std::string_view("%;\\#\"<>^`{|}").find(c) == std::string_view::npos;
}

std::optional<GitService> service_from_name(std::string_view text) {
  if (text == name(GitService::UploadPack)) return GitService::UploadPack;
  if (text == name(GitService::ReceivePack)) return GitService::ReceivePack;
  return std::nullopt;
}

struct Target {
  Segments segments;
  std::optional<std::string_view> query;
};

Result<Target> split_target(std::string_view target) {
  if (target.size() > kMaxTargetBytes) return fail(Reason::TargetTooLong, "the target is over 4096 bytes");
  if (!target.starts_with('/')) return fail(Reason::BadRequest, "the target does not begin with '/'");
  if (!std::ranges::all_of(target, is_target_char)) {
    return fail(Reason::BadRequest,
                "the target has a character that has no single reading: '" + escaped(target) + "'");
  }
  Target result;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) result.query = target.substr(question + 1);
  const std::string_view path =
      target.substr(1, question == std::string_view::npos ? question : question - 1);
  if (path.empty()) return fail(Reason::NotGit, "the path is '/'");
  result.segments = split(path, '/');
  const auto dotted = [](std::string_view segment) {
    return segment.empty() || segment == "." || segment == "..";
  };
  if (std::ranges::any_of(result.segments, dotted)) {
    return fail(Reason::BadRequest, "the path has an empty or dotted segment: '" + escaped(path) + "'");
  }
  return result;
}

// Where a path's tail begins: the part behind a repository, which has two segments or more.
constexpr std::size_t kMinRepoSegments = 2;

// What is not a smart-HTTP endpoint but belongs to git: each has its own words for the user.
std::optional<Reason> known_refusal(const Target& target) {
  const Segments& segments = target.segments;
  constexpr std::array<std::string_view, 2> kLfs{"info", "lfs"};
  if (!std::ranges::search(segments, kLfs).empty()) return Reason::LfsNotGranted;
  if (segments.size() <= kMinRepoSegments) return std::nullopt;
  const std::span tail = std::span(segments).subspan(kMinRepoSegments);
  if (std::ranges::find(tail, "objects") != tail.end() || tail.back() == "HEAD") return Reason::DumbHttp;
  const bool info_refs = tail.size() >= 2 && tail[tail.size() - 2] == "info" && tail.back() == "refs";
  if (info_refs && !target.query) return Reason::DumbHttp;
  return std::nullopt;
}

struct Endpoint {
  GitEndpoint endpoint;
  GitService service;
  std::size_t segments;  // how many of the path's last ones it takes
};

Result<Endpoint> find_endpoint(const Target& target) {
  const Segments& segments = target.segments;
  if (segments.size() >= 2 && segments[segments.size() - 2] == "info" && segments.back() == "refs") {
    const std::string_view query = target.query.value_or("");
    if (!query.starts_with(kServiceQuery)) return fail(Reason::BadRequest, "the query is not service=...");
    const std::string_view wanted = query.substr(kServiceQuery.size());
    if (const auto service = service_from_name(wanted)) {
      return Endpoint{GitEndpoint::Advertisement, *service, 2};
    }
    if (wanted == kUploadArchive) return fail(Reason::NotGit, "git-upload-archive is not offered");
    return fail(Reason::BadRequest, "the query names no service of git's: '" + escaped(query) + "'");
  }
  if (const auto service = service_from_name(segments.back())) {
    if (target.query) {
      return fail(Reason::BadRequest, "a query where git has none: '" + escaped(*target.query) + "'");
    }
    return Endpoint{GitEndpoint::Rpc, *service, 1};
  }
  return fail(Reason::NotGit, "no endpoint of git's: '" + escaped(segments.back()) + "'");
}

// Words that end a repository's path for one server or another: inside one they would give the path a second
// reading on a host whose groups nest.
bool is_protocol_word(std::string_view segment) {
  constexpr std::array<std::string_view, 3> kWords{"info", "objects", kUploadArchive};
  return std::ranges::find(kWords, segment) != kWords.end() || service_from_name(segment).has_value();
}

struct RepoPath {
  std::vector<std::string> segments;
  bool dot_git;
};

Result<RepoPath> parse_repo_path(std::span<const std::string_view> segments, HostKind kind) {
  const bool right_count = nests(kind)
                               ? segments.size() >= kMinRepoSegments && segments.size() <= kMaxRepoSegments
                               : segments.size() == kMinRepoSegments;
  if (!right_count) return fail(Reason::NotGit, "the path has not the number of segments of a repository");
  RepoPath repo{{segments.begin(), segments.end()}, segments.back().ends_with(kDotGit)};
  if (repo.dot_git) repo.segments.back().resize(repo.segments.back().size() - kDotGit.size());
  for (const std::string& segment : repo.segments) {
    if (!is_repo_segment(segment)) {
      return fail(Reason::BadRequest, "'" + escaped(segment) + "' is not a repository's segment");
    }
  }
  if (std::ranges::any_of(std::span(repo.segments).subspan(kMinRepoSegments), is_protocol_word)) {
    return fail(Reason::BadRequest, "the path has a word of git's protocol inside");
  }
  return repo;
}

}  // namespace

std::string_view name(GitService service) {
  switch (service) {
    case GitService::UploadPack:
      return "git-upload-pack";
    case GitService::ReceivePack:
      return "git-receive-pack";
  }
  return "";
}

std::string_view GitRoute::method() const {
  switch (endpoint) {
    case GitEndpoint::Advertisement:
      return "GET";
    case GitEndpoint::Rpc:
      return "POST";
  }
  return "";
}

std::string GitRoute::target() const {
  std::string target;
  for (const std::string& segment : repo.segments) target += '/' + segment;
  if (dot_git) target += kDotGit;
  switch (endpoint) {
    case GitEndpoint::Advertisement:
      target += "/info/refs?service=";
      break;
    case GitEndpoint::Rpc:
      target += '/';
      break;
  }
  return target += name(service);
}

Result<GitRoute> parse_git_route(const HostName& host, HostKind kind, std::string_view method,
                                 std::string_view target) {
  Result<Target> parts = split_target(target);
  if (!parts) return fail(std::move(parts));
  if (const auto reason = known_refusal(*parts)) return fail(*reason, escaped(target));
  Result<Endpoint> endpoint = find_endpoint(*parts);
  if (!endpoint) return fail(std::move(endpoint));

  const std::span segments(parts->segments);
  Result<RepoPath> repo = parse_repo_path(segments.first(segments.size() - endpoint->segments), kind);
  if (!repo) return fail(std::move(repo));
  GitRoute route{RepoId{host, std::move(repo->segments)}, endpoint->service, endpoint->endpoint,
                 repo->dot_git};
  if (method != route.method()) {
    return fail(Reason::MethodNotAllowed, "this path takes " + std::string(route.method()));
  }
  return route;
}

}  // namespace sallyport::policy
