// The resolver: c-ares on the worker's loop.

#include <ares.h>
#include <netinet/in.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <map>
#include <utility>

#include "base/text.h"
#include "net/dial.h"
#include "net/event.h"

namespace sallyport::net {
namespace {

namespace asio = boost::asio;

// How long one server has before the next is asked; doubles when all have been, and late answers are still
// taken. Short enough for kMaxResolvers of them within kResolveLimit.
constexpr int kTryMilliseconds = 600;
constexpr int kTries = 3;

// A pending question. Owned by the coroutine that waits and by c-ares, whichever lives longer.
struct Question {
  Question(Worker& worker, policy::HostName name, std::size_t& all)
      : host(std::move(name)), answered(worker), pending(all) {}

  policy::HostName host;
  Event answered;
  std::size_t& pending;  // the resolver's, which outlives what c-ares is asked
  int status = ARES_SUCCESS;
  std::string_view problem;  // of an answer that cannot be used
  std::vector<policy::IpAddress> addresses;
};

std::optional<policy::IpAddress> address_of(const ares_addrinfo_node& node) {
  policy::IpAddress address;
  if (node.ai_family == AF_INET && node.ai_addrlen >= sizeof(sockaddr_in)) {
    sockaddr_in in;
    std::memcpy(&in, node.ai_addr, sizeof in);
    address.family = policy::Family::V4;
    std::memcpy(address.bytes.data(), &in.sin_addr, sizeof in.sin_addr);
    return address;
  }
  if (node.ai_family == AF_INET6 && node.ai_addrlen >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in;
    std::memcpy(&in, node.ai_addr, sizeof in);
    address.family = policy::Family::V6;
    std::memcpy(address.bytes.data(), &in.sin6_addr, sizeof in.sin6_addr);
    return address;
  }
  return std::nullopt;
}

// What is wrong with the aliases that lead from `host` to the addresses, or "". c-ares follows every alias in
// an answer, whosever it is; only those that hang on the question count.
std::string_view judge_aliases(const policy::HostName& host, const ares_addrinfo_cname* alias) {
  std::vector<std::string> chain{host.str()};
  for (; alias != nullptr; alias = alias->next) {
    const std::string owner = lowered(alias->alias);
    const std::string target = lowered(alias->name);
    // The answers for the two families stand behind each other.
    if (owner == host.str()) chain.resize(1);
    if (owner != chain.back()) return "the answer has an alias of another name";
    if (std::ranges::find(chain, target) != chain.end()) return "its aliases lead in a circle";
    chain.push_back(target);
    if (chain.size() > kMaxCnames + 1) return "too many aliases";
  }
  return "";
}

void take_addresses(const ares_addrinfo& list, Question& question) {
  question.problem = judge_aliases(question.host, list.cnames);
  for (const ares_addrinfo_node* node = list.nodes; node != nullptr; node = node->ai_next) {
    const auto address = address_of(*node);
    if (!address) continue;
    if (question.addresses.size() == kMaxResolvedAddresses) {
      question.problem = "too many addresses";
      return;
    }
    question.addresses.push_back(*address);
  }
}

void on_answer(void* argument, int status, int /*timeouts*/, ares_addrinfo* list) {
  const std::unique_ptr<std::shared_ptr<Question>> holder(static_cast<std::shared_ptr<Question>*>(argument));
  Question& question = **holder;
  question.status = status;
  --question.pending;
  if (list != nullptr) {
    take_addresses(*list, question);
    ares_freeaddrinfo(list);
  }
  question.answered.set();
}

std::string as_csv(const std::vector<policy::PinnedAddress>& servers) {
  constexpr std::uint16_t kDnsPort = 53;
  std::string text;
  for (const policy::PinnedAddress& server : servers) {
    const std::string address = server.address.str();
    if (!text.empty()) text += ',';
    text += server.address.family == policy::Family::V6 ? "[" + address + "]" : address;
    text += ":" + std::to_string(server.port.value_or(kDnsPort));
  }
  return text;
}

class AresResolver final : public Resolver {
 public:
  AresResolver(Worker& worker, Clock::duration limit) : worker_(worker), limit_(limit), timer_(worker.io()) {}
  ~AresResolver() override {
    if (channel_ != nullptr) ares_destroy(channel_);
  }
  AresResolver(const AresResolver&) = delete;
  AresResolver& operator=(const AresResolver&) = delete;

  Status start(const std::vector<policy::PinnedAddress>& servers) {
    ares_options options{};
    char dns_only[] = "b";
    // No hosts file, no aliases from the environment, no search domains: the name that was judged is the name
    // that is asked for.
    options.lookups = dns_only;
    options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
    options.domains = nullptr;
    options.ndomains = 0;
    options.timeout = kTryMilliseconds;
    options.tries = kTries;
    options.sock_state_cb = [](void* self, ares_socket_t socket, int readable, int writable) {
      static_cast<AresResolver*>(self)->watch(socket, readable != 0, writable != 0);
    };
    options.sock_state_cb_data = this;
    const int mask = ARES_OPT_LOOKUPS | ARES_OPT_FLAGS | ARES_OPT_DOMAINS | ARES_OPT_TIMEOUTMS |
                     ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&channel_, &options, mask);
    if (status != ARES_SUCCESS) {
      return fail(Reason::Internal, std::string("resolver: ") + ares_strerror(status));
    }
    systems_ = in_use_ = systems_servers();
    use(servers);
    return {};
  }

  void use(const std::vector<policy::PinnedAddress>& servers) override {
    std::string wanted = servers.empty() ? systems_ : as_csv(servers);
    if (wanted == in_use_) return;
    in_use_ = std::move(wanted);
    ares_set_servers_ports_csv(channel_, in_use_.c_str());
  }

  Task<Result<std::vector<policy::IpAddress>>> resolve(policy::HostName host) override {
    if (pending_ >= kMaxQuestions) {
      co_return fail(Reason::Overloaded, "resolving " + host.str() + ": too many names are asked for");
    }
    ++pending_;
    auto question = std::make_shared<Question>(worker_, host, pending_);
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NOSORT;
    // The callback frees the holder; c-ares calls it exactly once, at the latest in ares_destroy().
    auto holder = std::make_unique<std::shared_ptr<Question>>(question);
    ares_getaddrinfo(channel_, host.str().c_str(), nullptr, &hints, on_answer, holder.release());
    schedule();
    if (!co_await question->answered.wait_for(limit_)) {
      co_return fail(Reason::UpstreamTimeout, "resolving " + host.str());
    }
    if (question->status == ARES_ETIMEOUT) {
      co_return fail(Reason::UpstreamTimeout, "resolving " + host.str() + ": no name server answers");
    }
    if (question->status == ARES_SUCCESS && question->addresses.empty()) question->status = ARES_ENODATA;
    if (question->status != ARES_SUCCESS) question->problem = ares_strerror(question->status);
    if (!question->problem.empty()) {
      co_return fail(Reason::UpstreamUnresolved, host.str() + ": " + std::string(question->problem));
    }
    co_return std::move(question->addresses);
  }

 private:
  // One of c-ares' sockets. The descriptor is c-ares' own: released, never closed here. Owned by the table
  // and by the waits under way.
  struct Watched {
    Watched(Worker& worker, ares_socket_t socket) : descriptor(worker.io(), socket) {}
    ~Watched() {
      if (descriptor.is_open()) descriptor.release();
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    asio::posix::stream_descriptor descriptor;
    bool want_read = false;
    bool want_write = false;
    bool reading = false;  // a wait is under way
    bool writing = false;
  };

  void watch(ares_socket_t socket, bool readable, bool writable) {
    auto found = sockets_.find(socket);
    if (!readable && !writable) {
      if (found == sockets_.end()) return;
      found->second->descriptor.release();
      sockets_.erase(found);
      return;
    }
    if (found == sockets_.end()) {
      found = sockets_.emplace(socket, std::make_shared<Watched>(worker_, socket)).first;
    }
    found->second->want_read = readable;
    found->second->want_write = writable;
    wait_on(found->second);
  }

  void wait_on(const std::shared_ptr<Watched>& watched) {
    if (watched->want_read && !watched->reading) {
      watched->reading = true;
      watched->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                     [this, watched](const boost::system::error_code& error) {
                                       watched->reading = false;
                                       if (!error) ready(watched, Side::Read);
                                     });
    }
    if (watched->want_write && !watched->writing) {
      watched->writing = true;
      watched->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                     [this, watched](const boost::system::error_code& error) {
                                       watched->writing = false;
                                       if (!error) ready(watched, Side::Write);
                                     });
    }
  }

  // Those of resolv.conf.
  std::string systems_servers() const {
    ares_addr_port_node* list = nullptr;
    if (ares_get_servers_ports(channel_, &list) != ARES_SUCCESS) return "";
    std::vector<policy::PinnedAddress> servers;
    for (const ares_addr_port_node* node = list; node != nullptr; node = node->next) {
      policy::PinnedAddress server;
      const bool is_v4 = node->family == AF_INET;
      server.address.family = is_v4 ? policy::Family::V4 : policy::Family::V6;
      std::memcpy(server.address.bytes.data(), &node->addr, is_v4 ? sizeof(in_addr) : sizeof(ares_in6_addr));
      if (node->udp_port != 0) server.port = static_cast<std::uint16_t>(node->udp_port);
      servers.push_back(server);
    }
    ares_free_data(list);
    return as_csv(servers);
  }

  enum class Side : std::uint8_t { Read, Write };

  // c-ares may close the socket in here, which takes it out of the table.
  void ready(const std::shared_ptr<Watched>& watched, Side side) {
    if (!watched->descriptor.is_open()) return;
    const ares_socket_t socket = watched->descriptor.native_handle();
    ares_process_fd(channel_, side == Side::Read ? socket : ARES_SOCKET_BAD,
                    side == Side::Write ? socket : ARES_SOCKET_BAD);
    if (watched->descriptor.is_open()) wait_on(watched);
    schedule();
  }

  // Wakes c-ares when its next try is due.
  void schedule() {
    timeval due{};
    if (ares_timeout(channel_, nullptr, &due) == nullptr) {
      timer_.cancel();
      return;
    }
    timer_.expires_after(std::chrono::seconds(due.tv_sec) + std::chrono::microseconds(due.tv_usec));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      schedule();
    });
  }

  Worker& worker_;
  Clock::duration limit_;
  asio::steady_timer timer_;
  std::map<ares_socket_t, std::shared_ptr<Watched>> sockets_;
  ares_channel channel_ = nullptr;
  std::size_t pending_ = 0;
  std::string systems_;
  std::string in_use_;
};

}  // namespace

Result<std::unique_ptr<Resolver>> Resolver::make(Worker& worker,
                                                 const std::vector<policy::PinnedAddress>& servers,
                                                 Clock::duration limit) {
  auto resolver = std::make_unique<AresResolver>(worker, limit);
  if (auto status = resolver->start(servers); !status) return fail(std::move(status));
  return resolver;
}

}  // namespace sallyport::net
