// A table of values that are identified by handles. Each handle contains a generation number, so
// the table rejects stale handles and handles that it never issued. After 2^20 - 1 reuses of a
// slot, its generations repeat.
#pragma once

#include <cstdint>
#include <vector>

namespace bulkhead {

// A handle is (generation << 32 | index + 1) and is never 0. A pointer returned by get() is valid
// until the next insert() or until its entry is erased.
template <class T>
class Slots {
 public:
  // `first_generation` is the first generation of every slot, from 1 to 2^20 - 1. If other
  // processes receive the handles, pass a random value, so that a restarted process uses different
  // handles.
  explicit Slots(std::uint32_t first_generation = 1) noexcept
      : first_generation_(first_generation) {}

  std::uint64_t insert(T value) {
    std::uint32_t index;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
      slots_.back().generation = first_generation_;
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot &slot = slots_[index];
    slot.value = std::move(value);
    slot.used = true;
    ++size_;
    return handle_of(index, slot.generation);
  }

  T *get(std::uint64_t handle) noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(handle) - 1;
    if (index >= slots_.size()) return nullptr;
    Slot &slot = slots_[index];
    if (!slot.used || slot.generation != static_cast<std::uint32_t>(handle >> 32)) return nullptr;
    return &slot.value;
  }
  const T *get(std::uint64_t handle) const noexcept {
    return const_cast<Slots *>(this)->get(handle);
  }

  bool erase(std::uint64_t handle) {
    if (get(handle) == nullptr) return false;
    const std::uint32_t index = static_cast<std::uint32_t>(handle) - 1;
    Slot &slot = slots_[index];
    slot.used = false;
    slot.value = T{};
    // Generations have 20 bits so that handles stay below 2^53, because some handles are sent as
    // JSON numbers.
    slot.generation = (slot.generation + 1) & 0xFFFFF;
    if (slot.generation == 0) slot.generation = 1;
    free_.push_back(index);
    --size_;
    return true;
  }

  std::size_t size() const noexcept { return size_; }

  // Calls f(handle, T&) for each entry. `f` may erase the entry that it is called with, but must
  // not change the table otherwise.
  template <class F>
  void for_each(F &&f) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used) f(handle_of(i, slots_[i].generation), slots_[i].value);
    }
  }
  template <class F>
  void for_each(F &&f) const {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used) f(handle_of(i, slots_[i].generation), slots_[i].value);
    }
  }

 private:
  struct Slot {
    T value{};
    std::uint32_t generation = 1;
    bool used = false;
  };
  static std::uint64_t handle_of(std::uint32_t index, std::uint32_t generation) noexcept {
    return (static_cast<std::uint64_t>(generation) << 32) | (index + 1);
  }

  std::uint32_t first_generation_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace bulkhead
