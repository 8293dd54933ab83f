#include "control/server.h"

#include <poll.h>
#include <signal.h>

#include "wire/sealed.h"

namespace sallyport::control {
namespace {

// The request, and the three standard descriptors.
constexpr std::size_t kStartDescriptors = 4;
constexpr std::size_t kServeDescriptors = 1;

Result<std::string> read_request(const os::Packet& packet, std::size_t descriptors) {
  if (packet.fds.size() != descriptors) {
    return fail(Reason::Internal, "a request without its descriptors");
  }
  return wire::read_memfd(packet.fds[0], kMaxRequestBytes);
}

}  // namespace

Server::Server(os::EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}

Server::~Server() {
  if (socket_) loop_.unwatch(socket_.get());
}

Status Server::serve() {
  if (auto status = os::set_nonblocking(socket_.get()); !status) return status;
  loop_.watch(socket_.get(), POLLIN, [this](short) { on_readable(); });
  return loop_.run();
}

void Server::on_readable() {
  auto packet = os::recv_packet(socket_.get());
  if (packet && !*packet) return;
  Status status;
  if (!packet) {
    status = fail(std::move(packet));
  } else if ((*packet)->end) {
    status = fail(Reason::SessionEnded, "the command line went away");
  } else {
    status = on_message(std::move(**packet));
  }
  if (status) return;
  loop_.unwatch(socket_.get());
  if (session_) return session_->abandon("the command line went away");
  if (serving_) return serving_->abandon();
  tell(Failed{status.error().detail});
  loop_.stop();
}

Status Server::on_message(os::Packet packet) {
  auto message = decode_to_warden(packet.bytes);
  if (!message) return fail(std::move(message));
  if (const auto* signal = std::get_if<Signal>(&*message)) {
    on_signal(signal->number);
    return {};
  }
  if (session_ || serving_) return fail(Reason::Internal, "a second request on one socket");
  return std::holds_alternative<Serve>(*message) ? start_serving(packet) : start_session(std::move(packet));
}

void Server::on_signal(int number) {
  if (session_) session_->signal(number);
  if (!serving_) return;
  if (number == SIGHUP) serving_->reload();
  if (number == SIGINT || number == SIGTERM) serving_->end();
}

Status Server::start_session(os::Packet packet) {
  auto bytes = read_request(packet, kStartDescriptors);
  if (!bytes) return fail(std::move(bytes));
  auto request = decode_request(*bytes);
  if (!request) return fail(std::move(request));
  session_.emplace(
      loop_, gateway_, std::move(*request),
      std::array{std::move(packet.fds[1]), std::move(packet.fds[2]), std::move(packet.fds[3])},
      session::Session::Callbacks{
          .on_notice = [this](std::string text) { tell(Notice{std::move(text)}); },
          .on_started = [this] { tell(Started{}); },
          .on_stopped = [this] { tell(Stopped{}); },
          .on_finished = [this](int exit_code,
                                std::string summary) { on_end(Finished{exit_code, std::move(summary)}); },
          .on_failed = [this](std::string text) { on_end(Failed{std::move(text)}); },
      });
  session_->start();
  return {};
}

Status Server::start_serving(const os::Packet& packet) {
  auto bytes = read_request(packet, kServeDescriptors);
  if (!bytes) return fail(std::move(bytes));
  auto request = decode_serve_request(*bytes);
  if (!request) return fail(std::move(request));
  serving_.emplace(
      loop_, gateway_, std::move(*request),
      session::ServeSession::Callbacks{
          .on_notice = [this](std::string text) { tell(Notice{std::move(text)}); },
          .on_ready = [this](std::vector<std::string> addresses) { tell(Serving{std::move(addresses)}); },
          .on_reloaded = [this](std::string problem) { tell(Reloaded{std::move(problem)}); },
          .on_finished = [this](std::string summary) { on_end(Finished{0, std::move(summary)}); },
          .on_failed = [this](std::string text) { on_end(Failed{std::move(text)}); },
      });
  serving_->start();
  return {};
}

void Server::on_end(const FromWarden& last_word) {
  tell(last_word);
  loop_.stop();
}

void Server::tell(const FromWarden& message) {
  // A command line that is gone needs no news; its end is noticed by on_readable().
  (void)os::send_packet(socket_.get(), encode(message));
}

}  // namespace sallyport::control
