// What is open under a policy that another may replace: requests, tunnels, connections. Each says what it was
// judged as; when another policy takes force all of them are judged again, and those that it does not allow
// in the same way are ended at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "policy/decide.h"
#include "policy/grant.h"

namespace sallyport::forward {

// A request or a tunnel holds the whole policy by which it began: of so many that follow it may see the
// beginning.
inline constexpr std::uint32_t kMaxPoliciesOutlived = 16;

// What was allowed. Of a Connect the carriage must stay as it is, and so must the way to the upstream where
// there is one; of git the credential, and with one the rule's place, which the vault goes by.
struct Judged {
  policy::Operation operation;                            // no ResolveName: nothing stays open for it
  policy::Carriage carriage = policy::Carriage::Inspect;  // of a Connect
  std::size_t rule = 0;                                   // of git with a credential
  std::string credential = {};                            // of git: its name
  std::uint64_t body_bytes = 0;                           // of HTTP: what may be sent at most
};

class Live {
 public:
  Live() = default;
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // One thing that is open. From the moment of its judgement, with no wait between.
  class Entry {
   public:
    // `live` outlives this.
    Entry(Live& live, Judged judged);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // The policy in force does not allow it any more: whoever has it goes no further.
    bool revoked() const { return revoked_; }
    // How it is ended from now on; empty: it looks at revoked() by itself. `end` waits for nothing and
    // destroys no entry. Of one that is revoked already it is not called.
    void end_by(std::function<void()> end) { end_ = std::move(end); }

   private:
    friend Live;
    Live& live_;
    Judged judged_;
    std::uint32_t outlived_ = 0;
    bool revoked_ = false;
    std::function<void()> end_;
    std::list<Entry*>::iterator place_;
  };

  // `after` takes the place of `before`, and everything that begins from now on is judged by it.
  void judge_again(const policy::Grant& before, const policy::Grant& after);

  std::size_t size() const { return entries_.size(); }

 private:
  std::list<Entry*> entries_;  // each is its owner's
};

}  // namespace sallyport::forward
