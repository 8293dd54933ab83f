// For tests: the real program behind its real walls, with the test as its warden, its gate and its upstream.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/packet_channel.h"
#include "os/spawn.h"
#include "vault/client.h"
#include "vault/service_fixture.h"
#include "vault/tls_server_fixture.h"
#include "wire/grant_codec.h"
#include "wire/messages.h"
#include "wire/sealed.h"

namespace sallyport::vault {

// What root's tests start it as.
inline constexpr os::Ids kVaultIds{12345, 12345};

class VaultProcess : public testing::Test {
 protected:
  VaultProcess() {
    net::test::ignore_sigpipe();
    auto process = os::socket_pair(os::SocketKind::Packet).value();
    auto session = os::socket_pair(os::SocketKind::Packet).value();
    std::vector<std::string> argv = {SALLYPORT_VAULT};
    if (::geteuid() == 0) {
      argv.insert(argv.end(),
                  {"--uid", std::to_string(kVaultIds.uid), "--gid", std::to_string(kVaultIds.gid)});
    }
    os::SpawnSpec spec;
    spec.program = SALLYPORT_VAULT;
    spec.argv = argv;
    spec.descriptors = {{process.second.get(), 3}, {STDERR_FILENO, STDERR_FILENO}};
    child_ = os::spawn(spec).value();
    process_ = std::move(process.first);
    tell_process(wire::ServiceStart{.system_roots = false});
    tell_process(wire::OpenSession{}, {session.second.get()});
    warden_ = net::PacketChannel::make(worker_, std::move(session.first));
    worker_.spawn("server", server_.serve(worker_));
  }
  // Its only way to end: the warden goes.
  ~VaultProcess() override {
    warden_.reset();
    process_.reset();
    const auto ended = os::wait_child_within(child_, std::chrono::seconds(10));
    EXPECT_TRUE(ended && *ended && (*ended)->code == 0);
  }
  VaultProcess(const VaultProcess&) = delete;
  VaultProcess& operator=(const VaultProcess&) = delete;

  void tell_process(const wire::ToService& message, const std::vector<int>& fds = {}) {
    EXPECT_TRUE(os::send_packet(process_.get(), wire::encode(message), fds));
  }
  void send(const wire::ToVault& message, Fd fd = {}) {
    std::vector<Fd> fds;
    if (fd) fds.push_back(std::move(fd));
    EXPECT_TRUE(warden_->send(wire::encode(message), std::move(fds)));
  }
  void send_start(std::string session = "s1") {
    send_start(server_.listener.port(), net::certificate_pem(*server_.ca.certificate).value(),
               std::move(session));
  }
  void send_start(std::uint16_t port, std::string ca_pem, std::string session = "s1") {
    policy::Grant grant = test_grant();
    policy::UpstreamHost& entry = grant.hosts.at(host("forge.test"));
    entry.address = policy::parse_pinned_address("127.0.0.1:" + std::to_string(port));
    entry.ca_pem = std::move(ca_pem);
    send(wire::VaultStart{std::move(session)}, wire::to_memfd(wire::encode_grant(grant)).value());
  }
  static Fd file_with(std::string_view bytes) {
    Fd file(::memfd_create("credential", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return file;
  }

  template <class Message>
  net::Task<Message> expect() {
    auto packet = co_await warden_->receive();
    if (!packet || !*packet) {
      ADD_FAILURE() << "the vault is gone";
      co_return Message{};
    }
    auto message = wire::decode_from_vault((*packet)->bytes);
    auto* wanted = message ? std::get_if<Message>(&*message) : nullptr;
    EXPECT_NE(wanted, nullptr);
    co_return wanted != nullptr ? std::move(*wanted) : Message{};
  }

  static net::Task<Result<upstream::AnswerHead>> fetch(Client& client) {
    auto opened = co_await client.open({.request_id = "r1",
                                        .rule = 0,
                                        .host = host("forge.test"),
                                        .port = 443,
                                        .method = "GET",
                                        .target = "/acme/widget/info/refs?service=git-upload-pack",
                                        .body = upstream::BodyKind::None,
                                        .body_bytes = 0});
    if (!opened) co_return fail(std::move(opened));
    (void)co_await (*opened)->end_body();
    co_return co_await (*opened)->read_head();
  }

  net::Worker worker_;
  TlsServer server_{"forge.test"};
  os::Child child_;
  Fd process_;
  std::unique_ptr<net::PacketChannel> warden_;
};

}  // namespace sallyport::vault
