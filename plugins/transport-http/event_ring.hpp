// Stores the events of a session's streams, so that a client can resume the streams. The size of
// the ring is limited in bytes. If the ring is full, the oldest events are dropped and counted.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace transport_http {

class EventRing {
 public:
  // Memory overhead per event, in bytes.
  static constexpr std::size_t overhead = 96;

  struct Entry {
    std::uint64_t stream;
    std::uint32_t sequence;
    bool written;  // written to a connection, but possibly lost
    std::uint64_t at_ns;
    std::string data;
  };

  // Adds an event. Returns the number of events that were dropped. If the new event alone exceeds
  // the limit, it is dropped itself.
  std::uint32_t add(Entry entry, std::uint64_t bound) {
    const std::size_t cost = entry.data.size() + overhead;
    if (cost > bound) return 1;
    std::uint32_t dropped = 0;
    while (bytes_ + cost > bound) {
      pop();
      ++dropped;
    }
    if (!entries_) entries_ = std::make_unique<std::deque<Entry>>();
    entries_->push_back(std::move(entry));
    bytes_ += cost;
    return dropped;
  }

  // Calls f(Entry &) for each event of the stream after `sequence`, oldest first.
  template <class F>
  void replay(std::uint64_t stream, std::uint32_t sequence, F &&f) {
    if (!entries_) return;
    for (Entry &entry : *entries_) {
      if (entry.stream == stream && entry.sequence > sequence) f(entry);
    }
  }

  // Returns true if the ring contains events from the stream.
  bool knows(std::uint64_t stream) const {
    if (!entries_) return false;
    for (const Entry &entry : *entries_) {
      if (entry.stream == stream) return true;
    }
    return false;
  }

  // Drops the oldest events that were written before at_ns, up to the first unwritten event.
  void expire(std::uint64_t at_ns) {
    while (entries_ && entries_->front().written && entries_->front().at_ns < at_ns) pop();
  }

  // Returns the time at which the oldest event was written, or UINT64_MAX if no event can expire.
  std::uint64_t oldest_ns() const {
    return entries_ && entries_->front().written ? entries_->front().at_ns : UINT64_MAX;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void pop() {
    bytes_ -= entries_->front().data.size() + overhead;
    entries_->pop_front();
    if (entries_->empty()) entries_.reset();  // an empty ring uses no memory
  }

  std::unique_ptr<std::deque<Entry>> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace transport_http
