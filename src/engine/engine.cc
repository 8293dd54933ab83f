#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <initializer_list>
#include <utility>

#include "base/text.h"
#include "engine/fields.h"

namespace sallyport::engine {
namespace {

namespace json = boost::json;

constexpr int kNotModified = 304;  // it is so already
constexpr int kNotFound = 404;

Request get(std::string target) {
  return {.method = "GET", .target = std::move(target), .body = {}};
}

Request post(std::string target, std::string body = {}) {
  return {.method = "POST", .target = std::move(target), .body = std::move(body)};
}

// What was asked, for messages.
std::string words(const Request& request) {
  return fmt::format("{} {}", request.method, request.target.substr(0, request.target.find('?')));
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

// Success, and `also`, are done; the rest is an error.
Call done(Client& client, Request request, std::initializer_list<int> also, OnDone on_done) {
  const std::string what = words(request);
  return client.request(std::move(request), [what, also = std::vector<int>(also),
                                             on_done = std::move(on_done)](Result<Answer> answer) {
    if (!answer) return on_done(std::unexpected(std::move(answer).error()));
    const bool fine = is_success(answer->status) || std::ranges::find(also, answer->status) != also.end();
    on_done(fine ? Status() : std::unexpected(refusal(*answer, what)));
  });
}

// What `read` makes of the body of a success.
template <class T>
Call answered(Client& client, Request request, On<T> on_value, Result<T> (*read)(std::string_view body)) {
  const std::string what = words(request);
  return client.request(std::move(request),
                        [what, read, on_value = std::move(on_value)](Result<Answer> answer) {
                          if (!answer) return on_value(std::unexpected(std::move(answer).error()));
                          if (!is_success(answer->status))
                            return on_value(std::unexpected(refusal(*answer, what)));
                          on_value(read(answer->body));
                        });
}

// Reads one object of the answer; what it complains of is an error.
template <class T, class Read>
Result<T> read_object(std::string_view body, std::string_view what, Read read) {
  auto document = parse_json(body, what);
  if (!document) return fail(std::move(document));
  std::string problem;
  Fields fields(*document, problem);
  T value = read(fields);
  if (problem.empty()) return value;
  return fail(Reason::EngineRefused,
              fmt::format("the container engine's answer to {} makes no sense: {}", what, problem));
}

Result<std::string> read_id(std::string_view body) {
  return read_object<std::string>(body, "create", [](Fields& fields) { return fields.text("Id"); });
}

Result<std::string> as_it_is(std::string_view body) {
  return std::string(body);
}

Result<std::int64_t> read_exit(std::string_view body) {
  return read_object<std::int64_t>(body, "wait", [](Fields& fields) { return fields.number("StatusCode"); });
}

Result<ExecState> read_exec(std::string_view body) {
  return read_object<ExecState>(body, "exec inspect", [](Fields& fields) {
    return ExecState{fields.flag("Running"), fields.number_or_zero("ExitCode"), fields.number_or_zero("Pid")};
  });
}

Result<VolumeState> read_volume(std::string_view body) {
  return read_object<VolumeState>(body, "volume inspect", [](Fields& fields) {
    return VolumeState{fields.text("Name"), fields.text("Driver"), fields.text_map("Options")};
  });
}

Result<ImageState> read_image(std::string_view body) {
  return read_object<ImageState>(body, "image inspect", [](Fields& fields) {
    ImageState image;
    image.id = fields.text("Id");
    image.tags = fields.texts("RepoTags");
    image.architecture = fields.text_or_empty("Architecture");
    Fields config = fields.object_or_empty("Config");
    image.user = config.text_or_empty("User");
    image.entrypoint = config.texts("Entrypoint");
    image.command = config.texts("Cmd");
    image.environment = config.texts("Env");
    image.working_directory = config.text_or_empty("WorkingDir");
    for (const auto& [path, nothing] : config.members("Volumes")) image.volumes.push_back(path);
    return image;
  });
}

ListedContainer read_listed(Fields& from) {
  const auto names = from.texts("Names");
  ListedContainer listed{
      from.text("Id"),         names.empty() ? "" : names.front(),
      from.text("ImageID"),    from.text("State"),
      from.text_map("Labels"), from.object_or_empty("HostConfig").text_or_empty("NetworkMode")};
  if (listed.name.starts_with('/')) listed.name.erase(0, 1);
  return listed;
}

Result<std::vector<ListedContainer>> read_list(std::string_view body) {
  auto document = parse_json(body, "list");
  if (!document) return fail(std::move(document));
  // As a member, so that there is one way to read.
  const json::value whole = json::object{{"containers", std::move(*document)}};
  std::string problem;
  std::vector<ListedContainer> list;
  for (Fields& each : Fields(whole, problem).objects("containers")) list.push_back(read_listed(each));
  if (problem.empty()) return list;
  return fail(Reason::EngineRefused,
              fmt::format("the container engine's answer to list makes no sense: {}", problem));
}

// The last line of the engine's progress; an error of its own is one of those lines, in an answer 200.
Result<std::string> read_import(std::string_view body) {
  std::string id;
  for (const std::string_view line : split(body, '\n')) {
    if (trimmed(line).empty() || trimmed(line) == "\r") continue;
    auto document = parse_json(line, "import");
    if (!document) return fail(std::move(document));
    std::string problem;
    Fields fields(*document, problem);
    if (const std::string error = fields.text_or_empty("error"); !error.empty()) {
      return fail(Reason::EngineRefused,
                  fmt::format("the container engine could not import the image: {}", escaped(error)));
    }
    id = fields.text_or_empty("status");
  }
  if (id.starts_with("sha256:")) return id;
  return fail(Reason::EngineRefused, "the container engine imported an image, and does not say which");
}

std::string container_target(std::string_view container, std::string_view what) {
  return fmt::format("/containers/{}/{}", encoded(container), what);
}

std::string size_query(TerminalSize size) {
  return fmt::format("resize?h={}&w={}", size.rows, size.columns);
}

json::array list_of(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

}  // namespace

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_alnum(c) || std::string_view("-._~").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Call Engine::create(const ContainerSpec& spec, std::string_view name, On<std::string> on_id) {
  std::string target = "/containers/create";
  if (!name.empty()) target += "?name=" + encoded(name);
  return answered<std::string>(client_, post(std::move(target), create_body(spec)), std::move(on_id),
                               read_id);
}

Call Engine::start(std::string_view container, OnDone on_done) {
  return done(client_, post(container_target(container, "start")), {kNotModified}, std::move(on_done));
}

Call Engine::stop(std::string_view container, std::chrono::seconds patience, OnDone on_done) {
  Request request = post(container_target(container, fmt::format("stop?t={}", patience.count())));
  request.timeout = patience + kStopGrace;
  return done(client_, std::move(request), {kNotModified}, std::move(on_done));
}

Call Engine::kill(std::string_view container, std::string_view signal, OnDone on_done) {
  return done(client_, post(container_target(container, "kill?signal=" + encoded(signal))), {},
              std::move(on_done));
}

Call Engine::remove(std::string_view container, Force force, OnDone on_done) {
  Request request{
      .method = "DELETE", .target = fmt::format("/containers/{}?v=1", encoded(container)), .body = {}};
  if (force == Force::Yes) request.target += "&force=1";
  return done(client_, std::move(request), {kNotFound}, std::move(on_done));
}

Call Engine::inspect(std::string_view container, On<ContainerState> on_state) {
  return answered<ContainerState>(client_, get(container_target(container, "json")), std::move(on_state),
                                  read_container_state);
}

Call Engine::list(std::string_view label, On<std::vector<ListedContainer>> on_list) {
  json::object filter;
  if (!label.empty()) filter["label"] = {label};
  const std::string filters = json::serialize(filter);
  return answered<std::vector<ListedContainer>>(
      client_, get("/containers/json?all=1&filters=" + encoded(filters)), std::move(on_list), read_list);
}

Call Engine::wait(std::string_view container, On<std::int64_t> on_exit) {
  Request request = post(container_target(container, "wait"));
  request.timeout = std::nullopt;
  return answered<std::int64_t>(client_, std::move(request), std::move(on_exit), read_exit);
}

Call Engine::resize(std::string_view container, TerminalSize size, OnDone on_done) {
  return done(client_, post(container_target(container, size_query(size))), {}, std::move(on_done));
}

Call Engine::logs(std::string_view container, unsigned lines, On<std::string> on_text) {
  const unsigned tail = std::min(lines, kMaxLogLines);
  return answered<std::string>(
      client_, get(container_target(container, fmt::format("logs?stdout=1&stderr=1&tail={}", tail))),
      std::move(on_text), as_it_is);
}

Call Engine::attach(std::string_view container, On<RawStream> on_stream) {
  return client_.raw(post(container_target(container, "attach?stream=1&stdin=1&stdout=1&stderr=1")),
                     std::move(on_stream));
}

Call Engine::exec_create(std::string_view container, const ExecSpec& spec, On<std::string> on_id) {
  json::object body{{"Cmd", list_of(spec.command)},
                    {"AttachStdin", spec.input},
                    {"AttachStdout", true},
                    {"AttachStderr", true},
                    {"Tty", spec.terminal}};
  if (!spec.environment.empty()) body.emplace("Env", list_of(spec.environment));
  if (!spec.user.empty()) body.emplace("User", spec.user);
  if (!spec.working_directory.empty()) body.emplace("WorkingDir", spec.working_directory);
  return answered<std::string>(client_, post(container_target(container, "exec"), json::serialize(body)),
                               std::move(on_id), read_id);
}

Call Engine::exec_start(std::string_view exec, const ExecSpec& spec, On<RawStream> on_stream) {
  const json::object body{{"Detach", false}, {"Tty", spec.terminal}};
  return client_.raw(post(fmt::format("/exec/{}/start", encoded(exec)), json::serialize(body)),
                     std::move(on_stream));
}

Call Engine::exec_inspect(std::string_view exec, On<ExecState> on_state) {
  return answered<ExecState>(client_, get(fmt::format("/exec/{}/json", encoded(exec))), std::move(on_state),
                             read_exec);
}

Call Engine::exec_resize(std::string_view exec, TerminalSize size, OnDone on_done) {
  return done(client_, post(fmt::format("/exec/{}/{}", encoded(exec), size_query(size))), {},
              std::move(on_done));
}

Call Engine::import_image(Fd tar, std::string_view repository, std::string_view tag, On<std::string> on_id) {
  // Together: Podman 4.3 does not look at a parameter "tag" here.
  Request request =
      post(fmt::format("/images/create?fromSrc=-&repo={}", encoded(fmt::format("{}:{}", repository, tag))));
  request.file = std::move(tar);
  request.timeout = kImportTimeout;
  return answered<std::string>(client_, std::move(request), std::move(on_id), read_import);
}

Call Engine::inspect_image(std::string_view image, On<ImageState> on_state) {
  return answered<ImageState>(client_, get(fmt::format("/images/{}/json", encoded(image))),
                              std::move(on_state), read_image);
}

Call Engine::inspect_volume(std::string_view volume, On<VolumeState> on_state) {
  return answered<VolumeState>(client_, get(fmt::format("/volumes/{}", encoded(volume))), std::move(on_state),
                               read_volume);
}

Call Engine::network_connect(std::string_view network, std::string_view container, OnDone on_done) {
  const json::object body{{"Container", container}};
  return done(client_, post(fmt::format("/networks/{}/connect", encoded(network)), json::serialize(body)), {},
              std::move(on_done));
}

Call Engine::network_disconnect(std::string_view network, std::string_view container, OnDone on_done) {
  const json::object body{{"Container", container}, {"Force", true}};
  return done(client_, post(fmt::format("/networks/{}/disconnect", encoded(network)), json::serialize(body)),
              {}, std::move(on_done));
}

}  // namespace sallyport::engine
