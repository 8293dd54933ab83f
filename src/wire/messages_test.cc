#include "wire/messages.h"

#include <gtest/gtest.h>

#include "os/unix_socket.h"

namespace sallyport::wire {
namespace {

audit::Event full_event() {
  return {.kind = audit::Kind::End,
          .request = "r1",
          .entry = audit::Entry::Tls,
          .destination = "198.18.0.5:443",
          .scheme = "https",
          .host = "github.com",
          .port = 443,
          .method = "POST",
          .path = "/acme/widget/git-receive-pack",
          .reason = Reason::UpstreamTimeout,
          .detail = "detail",
          .rule = "sallyport.toml:3",
          .credential = "github",
          .refs = {{"refs/heads/main", "old", "new"}, {"refs/heads/other", "", "x"}},
          .refs_total = 9,
          .status = 502,
          .bytes_in = 1,
          .bytes_out = 1ULL << 40U,
          .duration = std::chrono::microseconds(77)};
}

// Equal bytes are equal messages: encoding is a function, and decoding it again gave these.
template <class Variant>
void expect_round_trip(const std::vector<Variant>& messages, Result<Variant> (*decode)(std::string_view)) {
  for (const Variant& message : messages) {
    SCOPED_TRACE(message.index());
    const std::string bytes = encode(message);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded) << decoded.error().detail;
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(encode(*decoded), bytes);
    EXPECT_EQ(descriptor_count(*decoded), descriptor_count(message));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size))) << size;
    }
    EXPECT_FALSE(decode(bytes + "x"));
    std::string other_version = bytes;
    other_version[0] = static_cast<char>(kVersion + 1);
    EXPECT_FALSE(decode(other_version));
  }
}

std::vector<ToGate> to_gate() {
  return {
      GateStart{"session", "certificate", "key"},
      GateDoors{DoorMode::Direct, {{DoorKind::Tcp, 443}, {DoorKind::Udp, 53}}},
      GateHostDoors{1000,
                    {{DoorKind::Tcp, HostDoorUse::Proxy, {}},
                     {DoorKind::Udp, HostDoorUse::Dns, {}},
                     {DoorKind::Tcp, HostDoorUse::Fixed,
                      FixedTarget{policy::Scheme::Http, {*policy::HostName::parse("forge.test"), 8080}}}}},
      GatePacketLog{},
      GateVault{},
      GateProbe{true, "probe", "door"},
      AuditWritten{7, true},
      GateGrant{}};
}
std::vector<FromGate> from_gate() {
  return {Ready{}, AuditAppend{8, full_event()}, GrantTaken{}};
}
std::vector<ToVault> to_vault() {
  return {VaultStart{"session"}, VaultStart{"session", 7}, VaultGate{}, VaultCredential{"github", ""},
          VaultCredential{"github", "is gone"}};
}
std::vector<FromVault> from_vault() {
  return {Ready{}, VaultEvent{full_event()}, CredentialLoaded{"github", "problem"}};
}

TEST(Messages, EveryOneIsReadBackAndEveryTruncationRefused) {
  expect_round_trip(to_gate(), decode_to_gate);
  expect_round_trip(from_gate(), decode_from_gate);
  expect_round_trip(to_vault(), decode_to_vault);
  expect_round_trip(from_vault(), decode_from_vault);
}

TEST(Messages, KeepTheirValues) {
  const auto doors = decode_to_gate(encode(to_gate()[1]));
  ASSERT_TRUE(doors);
  const auto& read = std::get<GateDoors>(*doors);
  EXPECT_EQ(read.mode, DoorMode::Direct);
  ASSERT_EQ(read.doors.size(), 2U);
  EXPECT_EQ(read.doors[1].kind, DoorKind::Udp);
  EXPECT_EQ(read.doors[1].port, 53);

  const auto append = decode_from_gate(encode(from_gate()[1]));
  ASSERT_TRUE(append);
  const audit::Event& event = std::get<AuditAppend>(*append).event;
  EXPECT_EQ(event.kind, audit::Kind::End);
  EXPECT_EQ(event.reason, Reason::UpstreamTimeout);
  EXPECT_EQ(event.path, full_event().path);
  EXPECT_EQ(event.refs.at(1).ref, "refs/heads/other");
  EXPECT_EQ(event.status, 502);
  EXPECT_EQ(event.bytes_out, 1ULL << 40U);
  EXPECT_EQ(event.duration, std::chrono::microseconds(77));
}

TEST(Messages, NoProcessMaySendWhatIsAnothersToSend) {
  std::vector<std::string> all;
  for (const auto& m : to_gate()) all.push_back(encode(m));
  for (const auto& m : from_gate()) all.push_back(encode(m));
  for (const auto& m : to_vault()) all.push_back(encode(m));
  for (const auto& m : from_vault()) all.push_back(encode(m));
  std::size_t read_by_somebody = 0;
  for (const std::string& bytes : all) {
    const int readers = int{decode_to_gate(bytes).has_value()} + int{decode_from_gate(bytes).has_value()} +
                        int{decode_to_vault(bytes).has_value()} + int{decode_from_vault(bytes).has_value()};
    const bool is_ready = bytes == encode(FromGate(Ready{}));  // gate's and vault's
    EXPECT_EQ(readers, is_ready ? 2 : 1);
    ++read_by_somebody;
  }
  EXPECT_EQ(read_by_somebody, all.size());
  EXPECT_FALSE(decode_from_gate(std::string("\x01\xff", 2)));
}

TEST(Messages, DescriptorsAreCounted) {
  EXPECT_EQ(descriptor_count(ToGate(GateStart{})), 1U);
  EXPECT_EQ(descriptor_count(to_gate()[1]), 2U);
  EXPECT_EQ(descriptor_count(to_gate()[2]), 4U);
  EXPECT_EQ(descriptor_count(ToGate(GateGrant{})), 1U);
  EXPECT_EQ(descriptor_count(ToVault(VaultCredential{"n", ""})), 1U);
  EXPECT_EQ(descriptor_count(ToVault(VaultCredential{"n", "gone"})), 0U);
  EXPECT_EQ(descriptor_count(FromVault(Ready{})), 0U);
}

TEST(Messages, MoreDoorsThanDescriptorsInAPacketAreRefused) {
  GateDoors doors{DoorMode::Direct, {}};
  doors.doors.resize(os::kMaxPacketFds, {DoorKind::Tcp, 1});
  EXPECT_TRUE(decode_to_gate(encode(ToGate(doors))));
  doors.doors.push_back({DoorKind::Tcp, 1});
  EXPECT_FALSE(decode_to_gate(encode(ToGate(doors))));
}

TEST(Messages, HostDoorsThatMakeNoSenseAreRefused) {
  GateHostDoors doors{0, std::vector<HostDoor>(kMaxHostDoors, {DoorKind::Tcp, HostDoorUse::Tls, {}})};
  EXPECT_EQ(descriptor_count(ToGate(doors)), os::kMaxPacketFds);
  EXPECT_TRUE(decode_to_gate(encode(ToGate(doors))));
  doors.doors.push_back({DoorKind::Tcp, HostDoorUse::Tls, {}});
  EXPECT_FALSE(decode_to_gate(encode(ToGate(doors))));
  EXPECT_FALSE(decode_to_gate(encode(ToGate(GateHostDoors{0, {{DoorKind::Udp, HostDoorUse::Proxy, {}}}}))));
  EXPECT_FALSE(decode_to_gate(encode(ToGate(GateHostDoors{0, {{DoorKind::Tcp, HostDoorUse::Fixed, {}}}}))));
}

TEST(Messages, TheLargestEventFitsAPacket) {
  audit::Event event = full_event();
  const std::string huge(10'000, '\xff');
  for (std::string* text : {&event.request, &event.destination, &event.scheme, &event.host, &event.method,
                            &event.path, &event.detail, &event.rule, &event.credential}) {
    *text = huge;
  }
  event.refs.assign(200, {huge, huge, huge});
  const std::string bytes = encode(FromGate(AuditAppend{1, event}));
  EXPECT_LE(bytes.size(), os::kMaxPacketBytes);
  EXPECT_TRUE(decode_from_gate(bytes));
}

TEST(Messages, AnEventOutOfRangeIsRefused) {
  const std::string good = encode(FromGate(AuditAppend{1, audit::Event{}}));
  const std::size_t kind_at = 2 + 8;
  std::string bad_kind = good;
  bad_kind[kind_at] = 8;
  EXPECT_FALSE(decode_from_gate(bad_kind));
  std::string negative_duration = good;
  negative_duration[good.size() - 8] = static_cast<char>(0x80);
  EXPECT_FALSE(decode_from_gate(negative_duration));
}

}  // namespace
}  // namespace sallyport::wire
