#include "engine/exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "engine/fields.h"
#include "os/unix_socket.h"

namespace sallyport::engine {
namespace {

// Read or written at once.
constexpr std::size_t kPieceBytes = 32 * 1024;
// Of the engine's own message in ours.
constexpr std::size_t kMaxMessageBytes = 1024;

std::string starting_command(const std::string& socket_path) {
  if (socket_path.find("podman") == std::string::npos) return "sudo systemctl start docker";
  const bool own = socket_path.starts_with("/run/user/");
  return own ? "systemctl --user start podman.socket" : "sudo systemctl start podman.socket";
}

Result<std::size_t> size_of_body(const Request& request) {
  if (!request.file) return request.body.size();
  struct stat status{};
  if (::fstat(request.file->get(), &status) == 0 && S_ISREG(status.st_mode)) {
    return static_cast<std::size_t>(status.st_size);
  }
  return fail(Reason::Internal, "what shall be sent to the container engine is no regular file");
}

std::string head_of(const Request& request, std::string_view api, BodyKind kind, std::size_t body_bytes) {
  std::string head =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: sallyport\r\n", request.method, api, request.target);
  head += kind == BodyKind::Raw ? "Connection: Upgrade\r\nUpgrade: tcp\r\n" : "Connection: close\r\n";
  if (request.file) head += "Content-Type: application/x-tar\r\n";
  if (!request.body.empty()) head += "Content-Type: application/json\r\n";
  if (request.method != "GET" || body_bytes > 0) head += fmt::format("Content-Length: {}\r\n", body_bytes);
  return head + "\r\n";
}

}  // namespace

Error cannot_connect(const std::string& socket_path, int error) {
  const std::string path = escaped(socket_path);
  std::string text;
  if (error == ENOENT || error == ENOTDIR) {
    text = fmt::format("there is no container engine at {}: start it with `{}`", path,
                       starting_command(socket_path));
  } else if (error == ECONNREFUSED) {
    text = fmt::format("the container engine at {} does not run: start it with `{}`", path,
                       starting_command(socket_path));
  } else if (error == EACCES || error == EPERM) {
    text = fmt::format(
        "the container engine at {} may not be used by this user. Root may, and members of the group docker: "
        "`sudo usermod -aG docker $USER`, then log in again (whoever may use it can become root)",
        path);
  } else {
    text = fmt::format("the container engine at {} cannot be reached: {}", path, errno_text(error));
  }
  return {Reason::EngineUnavailable, std::move(text)};
}

Error refusal(const Answer& answer, std::string_view what) {
  constexpr int kNotFound = 404;
  const Reason reason = answer.status == kNotFound ? Reason::EngineNotFound : Reason::EngineRefused;
  std::string message;
  if (const auto document = parse_json(answer.body, what)) {
    std::string problem;
    message = Fields(*document, problem).text_or_empty("message");
  }
  if (message.empty()) message = "it does not say why";
  return {reason, fmt::format("the container engine answered {} with {}: {}", what, answer.status,
                              escaped(message, kMaxMessageBytes))};
}

Exchange::Exchange(os::EventLoop& loop, const std::string& socket_path, std::string_view api, Request request,
                   BodyKind kind, OnEnd on_end, OnPiece on_piece)
    : loop_(loop),
      socket_path_(socket_path),
      what_(fmt::format("{} {}", request.method, request.target.substr(0, request.target.find('?')))),
      request_(std::move(request)),
      reader_(kind),
      kind_(kind),
      on_end_(std::move(on_end)),
      on_piece_(std::move(on_piece)) {
  if (auto bytes = size_of_body(request_)) {
    head_ = head_of(request_, api, kind, *bytes) + std::exchange(request_.body, {});
    body_bytes_ = *bytes;
  } else {
    fail_later(std::move(bytes).error());
  }
  if (request_.timeout) deadline_ = loop_.after(*request_.timeout, [this] { give_up(timed_out()); });
}

Exchange::~Exchange() {
  close();
  if (gone_ != nullptr) *gone_ = true;
}

Error Exchange::timed_out() const {
  return {Reason::EngineUnavailable,
          fmt::format("the container engine at {} did not answer {} within {} seconds", escaped(socket_path_),
                      what_, std::chrono::duration<double>(*request_.timeout).count())};
}

void Exchange::fail_later(Error error) {
  turn_ = loop_.after(std::chrono::milliseconds(0), [this, error = std::move(error)] { give_up(error); });
}

void Exchange::connect() {
  if (turn_) return;  // it has failed already
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) {
    return fail_later(cannot_connect(socket_path_, ENAMETOOLONG));
  }
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return fail_later(cannot_connect(socket_path_, errno));
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    sent_ = write_some();
    return watch();
  }
  // A Unix socket connects at once or not at all; EAGAIN: the backlog is full.
  if (!os::would_block(errno)) return fail_later(cannot_connect(socket_path_, errno));
  socket_.reset();
  turn_ = loop_.after(kConnectInterval, [this] {
    turn_.reset();
    connect();
  });
}

void Exchange::watch() {
  const int events = sent_ ? POLLIN : POLLIN | POLLOUT;
  loop_.watch(socket_.get(), static_cast<short>(events), [this](short revents) { on_event(revents); });
}

void Exchange::on_event(short revents) {
  if (!sent_ && (revents & POLLOUT) != 0) {
    // An engine that refuses does not read on: then its answer says why, and not the broken pipe.
    sent_ = write_some();
    if (sent_) watch();
  }
  if ((revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_some();
}

// True when there is nothing more to write, or nobody who reads it.
bool Exchange::write_some() {
  while (written_ < head_.size()) {
    const ssize_t wrote =
        ::send(socket_.get(), head_.data() + written_, head_.size() - written_, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return !os::would_block(errno);
    written_ += static_cast<std::size_t>(wrote);
  }
  return write_file();
}

bool Exchange::write_file() {
  std::array<char, kPieceBytes> piece;
  while (request_.file && written_ - head_.size() < body_bytes_) {
    const std::size_t at = written_ - head_.size();
    const ssize_t got = ::pread(request_.file->get(), piece.data(), std::min(piece.size(), body_bytes_ - at),
                                static_cast<off_t>(at));
    if (got <= 0) {  // it was cut meanwhile: the engine shall not wait for the rest
      ::shutdown(socket_.get(), SHUT_WR);
      return true;
    }
    const ssize_t wrote = ::send(socket_.get(), piece.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return !os::would_block(errno);
    written_ += static_cast<std::size_t>(wrote);
  }
  return true;
}

void Exchange::read_some() {
  std::array<char, kPieceBytes> piece;
  const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (got < 0 && (os::would_block(errno) || errno == EINTR)) return;
  const Status status = got > 0 ? reader_.feed({piece.data(), static_cast<std::size_t>(got)}) : reader_.end();
  if (kind_ == BodyKind::Stream && reader_.head_done() && reader_.good() && !deliver()) return;
  if (!status) return give_up({status.error().reason, fmt::format("{}: {}", what_, status.error().detail)});
  if (got <= 0 || reader_.done()) succeed();
}

// False when a callback has destroyed this.
bool Exchange::deliver() {
  bool gone = false;
  gone_ = &gone;
  const OnPiece on_piece = on_piece_;  // outlives this
  if (!std::exchange(told_open_, true)) {
    if (deadline_) loop_.cancel(*deadline_);
    on_piece({});
  }
  if (!gone) {
    std::string bytes = reader_.take_body();
    if (!bytes.empty()) on_piece(std::move(bytes));
  }
  if (!gone) gone_ = nullptr;
  return !gone;
}

void Exchange::succeed() {
  Ending ending{Answer{reader_.status(), reader_.take_body()}, Fd()};
  if (kind_ == BodyKind::Raw && reader_.good()) {
    loop_.unwatch(socket_.get());
    ending.connection = std::move(socket_);
  }
  finish(std::move(ending));
}

void Exchange::finish(Ending ending) {
  close();
  const OnEnd on_end = std::move(on_end_);
  on_end(std::move(ending));  // may destroy this
}

void Exchange::close() {
  if (deadline_) loop_.cancel(*deadline_);
  if (turn_) loop_.cancel(*turn_);
  if (socket_) loop_.unwatch(socket_.get());
  socket_.reset();
  if (on_release_) std::exchange(on_release_, nullptr)(this);
}

}  // namespace sallyport::engine
