// A lane's queue of calls in order of arrival. The calls wait for a free slot or for the server.
// The queue counts their total size; the messages themselves are in Call::parked.
//
// Owner: the LaneQueue. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace bulkhead {

class WaitingCalls {
 public:
  struct Call {
    std::uint64_t exchange;
    std::uint64_t bytes;
  };

  bool empty() const noexcept { return calls_.empty(); }
  std::size_t size() const noexcept { return calls_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }

  void push(Call call) {
    bytes_ += call.bytes;
    calls_.push_back(call);
  }
  Call pop() {  // requires !empty()
    const Call call = calls_.front();
    calls_.pop_front();
    bytes_ -= call.bytes;
    return call;
  }
  template <class Which>
  void erase_if(Which which) {
    std::erase_if(calls_, [&](const Call &call) {
      if (!which(call.exchange)) return false;
      bytes_ -= call.bytes;
      return true;
    });
  }
  void clear() noexcept {
    calls_.clear();
    bytes_ = 0;
  }

 private:
  std::deque<Call> calls_;
  std::uint64_t bytes_ = 0;
};

}  // namespace bulkhead
