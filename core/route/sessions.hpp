// The table of open sessions, keyed by handle. Owner: the Router. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/slots.hpp"
#include "route/session.hpp"

namespace bulkhead {

// Returns a random start value for the generation numbers in handles (see Slots), so that a handle
// from another process is almost certainly invalid in this process. If the kernel returns no random
// bytes, the value is derived from `otherwise`.
std::uint32_t random_generation(std::uint64_t otherwise);

class Sessions {
 public:
  // `first_generation` is the start value of the generation numbers in handles; see Slots.
  explicit Sessions(std::uint32_t first_generation) : table_(first_generation) {}

  // Opens a session. `peer` is copied. `end`, which receives the session's messages, is borrowed.
  // If `load` is null, the session gets its own ClientLoad.
  Session &open(ClientEnd &end, const bh_peer &peer, std::uint64_t now_ns,
                std::shared_ptr<ClientLoad> load = nullptr);
  // Returns null if no open session has this handle. The pointer is valid until the session is
  // erased.
  Session *find(bh_session handle) noexcept;
  void erase(bh_session handle) { table_.erase(handle); }
  std::size_t size() const noexcept { return table_.size(); }

  // Calls f(const Session &) for each session. f must not open or erase sessions.
  template <class F>
  void for_each(F &&f) const {
    table_.for_each([&](bh_session, const std::unique_ptr<Session> &s) { f(std::as_const(*s)); });
  }
  // Returns all handles. A loop that may open or erase sessions should iterate over these handles
  // and look up each one with find().
  std::vector<bh_session> handles() const;

 private:
  Slots<std::unique_ptr<Session>> table_;
};

}  // namespace bulkhead
