// How many of something there may be at once: each takes a slot, and has it until the slot is destroyed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace sallyport {

// So many for each key. Remembers no more keys than there are slots taken. Outlives its slots.
template <typename Key>
class SlotsFor {
  using Taken = std::map<Key, std::size_t>;

 public:
  class Slot {
   public:
    Slot(Slot&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), taken_(other.taken_) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (owner_ != nullptr && --taken_->second == 0) owner_->erase(taken_);
    }

   private:
    friend SlotsFor;
    Slot(Taken& owner, Taken::iterator taken) : owner_(&owner), taken_(taken) { ++taken_->second; }

    Taken* owner_;
    Taken::iterator taken_;
  };

  explicit SlotsFor(std::size_t count) : count_(count) {}
  SlotsFor(const SlotsFor&) = delete;
  SlotsFor& operator=(const SlotsFor&) = delete;

  // nullopt: all are taken.
  std::optional<Slot> take(const Key& key) {
    const auto taken = taken_.try_emplace(key, 0).first;
    if (taken->second < count_) return Slot(taken_, taken);
    if (taken->second == 0) taken_.erase(taken);
    return std::nullopt;
  }
  std::size_t taken(const Key& key) const {
    const auto found = taken_.find(key);
    return found == taken_.end() ? 0 : found->second;
  }
  std::size_t keys() const { return taken_.size(); }

 private:
  std::size_t count_;
  Taken taken_;
};

// So many in all. Outlives its slots.
class Slots {
 public:
  class Slot {
   public:
    explicit Slot(std::size_t& taken) : taken_(&taken) { ++taken; }
    Slot(Slot&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (taken_ != nullptr) --*taken_;
    }

   private:
    std::size_t* taken_;
  };

  explicit Slots(std::size_t count) : count_(count) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // nullopt: all are taken.
  std::optional<Slot> take() {
    if (taken_ >= count_) return std::nullopt;
    return Slot(taken_);
  }
  std::size_t taken() const { return taken_; }

 private:
  std::size_t count_;
  std::size_t taken_ = 0;
};

}  // namespace sallyport
