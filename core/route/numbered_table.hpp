// A table of numbered objects with deadlines. Each number contains a generation that changes when
// the slot is reused, so the number of a closed object is invalid until the slot has been reused
// 2^30 - 1 times. Numbers are smaller than 2^53 because they are sent as JSON numbers. Reused slots
// keep the capacity of their strings, so open() and close() allocate no memory in steady state.
//
// Used on the reactor thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace bulkhead {

// The base class of objects in the table. Its members are managed by the table.
template <class T>
class Numbered {
 public:
  std::uint64_t id = 0;  // 0 if closed
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::uint64_t timeout_ms = 0;     // timeout of the most recently armed deadline
  std::uint64_t deadline_tick = 0;  // 0 if not armed
  T *wheel_prev = nullptr, *wheel_next = nullptr;

  bool ended() const noexcept { return id == 0; }

 private:
  friend T;
  Numbered() = default;
};

// T must derive from Numbered<T> and have a function clear() that resets its own members.
template <class T>
class NumberedTable {
 public:
  static constexpr std::uint32_t max_size = 1u << 20;
  static constexpr std::uint64_t tick_ms = 50;  // resolution of deadlines

  // Opens an object with a new number. Returns null if max_size objects are already open.
  T *open() {
    T *object = free_slot();
    if (object == nullptr) return nullptr;
    object->generation = (object->generation + 1) & generation_mask;
    if (object->generation == 0) object->generation = 1;
    object->id = (static_cast<std::uint64_t>(object->generation) << index_bits) | object->index;
    ++size_;
    return object;
  }
  // Returns null if no open object has this number.
  T *get(std::uint64_t id) noexcept {
    const std::uint64_t index = id & (max_size - 1);
    if (id == 0 || index >= slots_.size()) return nullptr;
    T &object = slots_[index];
    return object.id == id ? &object : nullptr;
  }
  // Cancels the object's deadline and frees its slot. The caller must first remove the object from
  // all lists.
  void close(T &object) {
    retire(object);
    recycle(object);
  }
  // retire() and recycle() are the two halves of close(). retire() invalidates the object's number
  // but keeps its members. recycle() frees the slot.
  void retire(T &object) {
    disarm(object);
    object.id = 0;
    --size_;
  }
  void recycle(T &object) {
    object.clear();
    free_.push_back(object.index);
  }
  std::uint32_t size() const noexcept { return size_; }
  // Calls f(const T &) for each open object. f must not open or close objects.
  template <class F>
  void for_each(F &&f) const {
    for (const T &object : slots_) {
      if (object.id != 0) f(object);
    }
  }

  // Sets or replaces the object's deadline. `now_ns` is the time at which the current iteration of
  // the event loop started. If expire() is called in each tick, it reports the object at most two
  // ticks after the timeout, and never early.
  void arm(T &object, std::uint64_t now_ns, std::uint64_t timeout_ms) {
    disarm(object);
    if (armed_ == 0) last_tick_ = now_ns / ns_per_tick;
    const std::uint64_t ticks = (timeout_ms + tick_ms - 1) / tick_ms;
    object.timeout_ms = timeout_ms;
    // Round up: part of the current tick has already passed.
    object.deadline_tick = now_ns / ns_per_tick + ticks + 1;
    T *&head = wheel_[object.deadline_tick % wheel_slots];
    object.wheel_prev = nullptr;
    object.wheel_next = head;
    if (head != nullptr) head->wheel_prev = &object;
    head = &object;
    ++armed_;
  }
  void disarm(T &object) {
    if (object.deadline_tick == 0) return;
    if (object.wheel_prev != nullptr) object.wheel_prev->wheel_next = object.wheel_next;
    if (object.wheel_next != nullptr) object.wheel_next->wheel_prev = object.wheel_prev;
    T *&head = wheel_[object.deadline_tick % wheel_slots];
    if (head == &object) head = object.wheel_next;
    object.wheel_prev = object.wheel_next = nullptr;
    object.deadline_tick = 0;
    --armed_;
  }
  bool any_armed() const noexcept { return armed_ != 0; }

  // Advances the timer wheel to now_ns. For each object whose deadline has passed, disarms the
  // object and appends its number to *due.
  void expire(std::uint64_t now_ns, std::vector<std::uint64_t> *due) {
    const std::uint64_t now_tick = now_ns / ns_per_tick;
    // After a long sleep, visit each wheel slot once instead of once per missed tick.
    const std::uint64_t first =
        std::max(last_tick_ + 1, now_tick >= wheel_slots ? now_tick - wheel_slots + 1 : 0);
    for (std::uint64_t tick = first; tick <= now_tick; ++tick) {
      for (T *object = wheel_[tick % wheel_slots]; object != nullptr;) {
        T *next = object->wheel_next;
        if (object->deadline_tick <= now_tick) {
          due->push_back(object->id);
          disarm(*object);
        }
        object = next;
      }
    }
    last_tick_ = std::max(last_tick_, now_tick);
  }

 private:
  static constexpr std::uint32_t wheel_slots = 1024;
  static constexpr std::uint32_t index_bits = 20;
  static constexpr std::uint32_t generation_mask = (1u << 30) - 1;
  static constexpr std::uint64_t ns_per_tick = tick_ms * 1'000'000u;

  T *free_slot() {
    if (!free_.empty()) {
      T *object = &slots_[free_.back()];
      free_.pop_back();
      return object;
    }
    if (slots_.size() >= max_size) return nullptr;
    T &object = slots_.emplace_back();
    object.index = static_cast<std::uint32_t>(slots_.size() - 1);
    return &object;
  }

  std::deque<T> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t size_ = 0;
  std::uint32_t armed_ = 0;
  std::uint64_t last_tick_ = 0;
  std::vector<T *> wheel_ = std::vector<T *>(wheel_slots);
};

// An intrusive doubly linked list whose links are two members of each element. Does not own the
// elements.
template <class T, T *T::*Prev, T *T::*Next>
struct IntrusiveList {
  T *head = nullptr;
  std::uint32_t size = 0;

  void push(T &element) {
    element.*Prev = nullptr;
    element.*Next = head;
    if (head != nullptr) head->*Prev = &element;
    head = &element;
    ++size;
  }
  void remove(T &element) {
    if (element.*Prev != nullptr) (element.*Prev)->*Next = element.*Next;
    if (element.*Next != nullptr) (element.*Next)->*Prev = element.*Prev;
    if (head == &element) head = element.*Next;
    element.*Prev = element.*Next = nullptr;
    --size;
  }
};

}  // namespace bulkhead
