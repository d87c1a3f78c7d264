// The open sessions, by handle. Owner: the Router. Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/slots.hpp"
#include "route/session.hpp"

namespace bulkhead {

// A number to begin with that differs from process to process, for handles that leave the process:
// one that another process, or the one before, has given out must not be taken for ours.
// `otherwise` is used when the kernel gives no random number.
std::uint32_t random_generation(std::uint64_t otherwise);

class Sessions {
 public:
  // `first_generation`: of the handles; see Slots.
  explicit Sessions(std::uint32_t first_generation) : table_(first_generation) {}

  // A session for this peer, which `end` leads to. The peer is copied, the end borrowed.
  Session &open(ClientEnd &end, const bh_peer &peer, std::uint64_t now_ns);
  // Null: there is no such session, or no longer. Valid until it is erased.
  Session *find(bh_session handle) noexcept;
  void erase(bh_session handle) { table_.erase(handle); }
  std::size_t size() const noexcept { return table_.size(); }

  // f(const Session &) for each; f opens and erases none.
  template <class F>
  void for_each(F &&f) const {
    table_.for_each([&](bh_session, const std::unique_ptr<Session> &s) { f(std::as_const(*s)); });
  }
  // For loops whose body may open or erase sessions: find() says which are still there.
  std::vector<bh_session> handles() const;

 private:
  Slots<std::unique_ptr<Session>> table_;
};

}  // namespace bulkhead
