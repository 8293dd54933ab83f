#include "control/protocol.h"

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <vector>

#include "wire/codec.h"

namespace sallyport::control {
namespace {

// A text for the user is cut to this, so that it fits a packet whatever went wrong.
constexpr std::size_t kMaxText = 32 * 1024;
constexpr std::uint32_t kMaxStrings = 100'000;
// Linux's, SIGRTMAX.
constexpr std::uint32_t kLastSignal = 64;
constexpr std::uint32_t kMaxExitCode = 255;

enum class Tag : std::uint8_t {
  Start = 1,
  Signal,
  Notice,
  Started,
  Stopped,
  Finished,
  Failed,
  Serve,
  Serving,
  Reloaded
};

void put_strings(wire::Writer& out, const std::vector<std::string>& strings) {
  out.u32(static_cast<std::uint32_t>(strings.size()));
  for (const std::string& string : strings) out.string(string);
}

std::vector<std::string> get_strings(wire::Reader& in) {
  std::vector<std::string> strings(in.count(kMaxStrings));
  for (std::string& string : strings) string = in.string(kMaxRequestBytes);
  return strings;
}

void put_sources(wire::Writer& out, const config::Sources& sources) {
  out.string(sources.policy_path).enumerator(sources.policy);
  out.string(sources.config_path).enumerator(sources.config);
  put_strings(out, sources.git_options);
  out.string(sources.trust_folder);
}

config::Sources get_sources(wire::Reader& in) {
  config::Sources sources;
  sources.policy_path = in.string(kMaxRequestBytes);
  sources.policy = in.enumerator(config::Presence::Named);
  sources.config_path = in.string(kMaxRequestBytes);
  sources.config = in.enumerator(config::Presence::Named);
  sources.git_options = get_strings(in);
  sources.trust_folder = in.string(kMaxRequestBytes);
  return sources;
}

void put(wire::Writer& out, const Start&) {
  out.enumerator(Tag::Start);
}
void put(wire::Writer& out, const Signal& signal) {
  out.enumerator(Tag::Signal).u32(static_cast<std::uint32_t>(signal.number));
}
void put(wire::Writer& out, const Notice& notice) {
  out.enumerator(Tag::Notice).string(notice.text.substr(0, kMaxText));
}
void put(wire::Writer& out, const Started&) {
  out.enumerator(Tag::Started);
}
void put(wire::Writer& out, const Stopped&) {
  out.enumerator(Tag::Stopped);
}
void put(wire::Writer& out, const Finished& finished) {
  out.enumerator(Tag::Finished)
      .u32(static_cast<std::uint32_t>(finished.exit_code))
      .string(finished.summary.substr(0, kMaxText));
}
void put(wire::Writer& out, const Failed& failed) {
  out.enumerator(Tag::Failed).string(failed.text.substr(0, kMaxText));
}

void put(wire::Writer& out, const Serve&) {
  out.enumerator(Tag::Serve);
}
void put(wire::Writer& out, const Serving& serving) {
  out.enumerator(Tag::Serving);
  put_strings(out, serving.addresses);
}

void put(wire::Writer& out, const Reloaded& reloaded) {
  out.enumerator(Tag::Reloaded).string(reloaded.problem.substr(0, kMaxText));
}

template <class Variant>
std::string encode_variant(const Variant& message) {
  wire::Writer out;
  std::visit([&](const auto& alternative) { put(out, alternative); }, message);
  return out.take();
}

int number_between(wire::Reader& in, std::uint32_t least, std::uint32_t most) {
  const std::uint32_t value = in.u32();
  if (value < least || value > most) in.refuse();
  return static_cast<int>(value);
}

// Both directions share the tags; what a side may not send is refused here.
template <class Variant>
Result<Variant> decode_variant(std::string_view bytes, std::initializer_list<Tag> permitted) {
  wire::Reader in(bytes);
  const auto tag = static_cast<Tag>(in.u8());
  std::variant<Start, Signal, Notice, Started, Stopped, Finished, Failed, Serve, Serving, Reloaded> message;
  switch (tag) {
    case Tag::Start:
      message = Start{};
      break;
    case Tag::Signal:
      message = Signal{number_between(in, 1, kLastSignal)};
      break;
    case Tag::Notice:
      message = Notice{in.string(kMaxText)};
      break;
    case Tag::Started:
      message = Started{};
      break;
    case Tag::Stopped:
      message = Stopped{};
      break;
    case Tag::Finished: {
      const int code = number_between(in, 0, kMaxExitCode);
      message = Finished{code, in.string(kMaxText)};
      break;
    }
    case Tag::Failed:
      message = Failed{in.string(kMaxText)};
      break;
    case Tag::Serve:
      message = Serve{};
      break;
    case Tag::Serving:
      message = Serving{get_strings(in)};
      break;
    case Tag::Reloaded:
      message = Reloaded{in.string(kMaxText)};
      break;
  }
  const bool may_be_sent = std::ranges::find(permitted, tag) != permitted.end();
  if (!may_be_sent || !in.finished()) return fail(Reason::Internal, "a control message that is none");
  Variant result;
  std::visit(
      [&]<class T>(T& alternative) {
        if constexpr (std::constructible_from<Variant, T>) result = std::move(alternative);
      },
      message);
  return result;
}

}  // namespace

std::string encode(const ToWarden& message) {
  return encode_variant(message);
}
std::string encode(const FromWarden& message) {
  return encode_variant(message);
}

Result<ToWarden> decode_to_warden(std::string_view bytes) {
  return decode_variant<ToWarden>(bytes, {Tag::Start, Tag::Signal, Tag::Serve});
}

Result<FromWarden> decode_from_warden(std::string_view bytes) {
  return decode_variant<FromWarden>(bytes, {Tag::Notice, Tag::Started, Tag::Stopped, Tag::Finished,
                                            Tag::Failed, Tag::Serving, Tag::Reloaded});
}

std::string encode_request(const session::Request& request) {
  wire::Writer out;
  put_strings(out, request.command);
  out.string(request.working_directory).string(request.home);
  put_sources(out, request.sources);
  put_strings(out, request.mounts);
  out.string(request.audit_path);
  put_strings(out, request.environment);
  put_strings(out, request.extra_environment);
  out.string(request.state_folder).flag(request.private_git);
  out.flag(request.terminal_on_stdin);
  return out.take();
}

Result<session::Request> decode_request(std::string_view bytes) {
  wire::Reader in(bytes);
  session::Request request;
  request.command = get_strings(in);
  request.working_directory = in.string(kMaxRequestBytes);
  request.home = in.string(kMaxRequestBytes);
  request.sources = get_sources(in);
  request.mounts = get_strings(in);
  request.audit_path = in.string(kMaxRequestBytes);
  request.environment = get_strings(in);
  request.extra_environment = get_strings(in);
  request.state_folder = in.string(kMaxRequestBytes);
  request.private_git = in.flag();
  request.terminal_on_stdin = in.flag();
  if (!in.finished()) return fail(Reason::Internal, "a request that is none");
  return request;
}

std::string encode_serve_request(const session::ServeRequest& request) {
  wire::Writer out;
  put_sources(out, request.sources);
  out.string(request.audit_path).string(request.ca_file);
  out.u32(static_cast<std::uint32_t>(request.doors.size()));
  for (const session::DoorRequest& door : request.doors) out.enumerator(door.use).string(door.text);
  return out.take();
}

Result<session::ServeRequest> decode_serve_request(std::string_view bytes) {
  wire::Reader in(bytes);
  session::ServeRequest request;
  request.sources = get_sources(in);
  request.audit_path = in.string(kMaxRequestBytes);
  request.ca_file = in.string(kMaxRequestBytes);
  request.doors.resize(in.count(kMaxStrings));
  for (session::DoorRequest& door : request.doors) {
    door.use = in.enumerator(wire::HostDoorUse::Fixed);
    door.text = in.string(kMaxRequestBytes);
  }
  if (!in.finished()) return fail(Reason::Internal, "a request that is none");
  return request;
}

}  // namespace sallyport::control
