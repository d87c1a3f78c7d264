// Caching hints of lists: ttlMs and cacheScope, of MCP 2026-07-28. A list without hints (a list of
// a server that has sessions, or of a tools plugin) has the default hints, which forbid caching.
//
// Used on the reactor thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead {

struct ListHints {
  // Longer times are reduced to this value: one day.
  static constexpr std::uint64_t max_ttl_ms = 86'400'000;

  std::uint64_t ttl_ms = 0;  // the list may be used for this time after it was received
  bool is_public = false;    // it may be used for all users

  // Returns the hints of a list result. Invalid values are treated as absent.
  static ListHints of(const mcp::Scan &scan, std::string_view message) noexcept;
  // Returns the hints of a list that is composed of both lists.
  ListHints with(const ListHints &other) const noexcept {
    return {ttl_ms < other.ttl_ms ? ttl_ms : other.ttl_ms, is_public && other.is_public};
  }
};

// The age of a server's list.
class ListAge {
 public:
  // A list that is out of date is requested again at most once in this time.
  static constexpr std::uint64_t min_refresh_ms = 1'000;

  void received(const ListHints &hints, std::uint64_t now_ns) noexcept {
    hints_ = hints;
    since_ns_ = now_ns;
    failed_ = false;
  }
  // Called when the list could not be read. It is out of date until it has been received.
  void failed(std::uint64_t now_ns) noexcept {
    received({}, now_ns);
    failed_ = true;
  }
  // Returns true if the list has been received from this connection, or could not be read.
  bool known() const noexcept { return since_ns_ != 0; }
  // Returns the hints for a client that receives the list now. `reported` is true if the server
  // reports changes of the list, so the list is up to date.
  ListHints hints(bool reported, std::uint64_t now_ns) const noexcept;
  // Returns true if the list is out of date and should be requested again. `reported` is true if
  // the server reports changes of the list.
  bool needs_refresh(bool reported, std::uint64_t now_ns) const noexcept;

 private:
  ListHints hints_;
  std::uint64_t since_ns_ = 0;  // 0: the list has not been received
  bool failed_ = false;         // the last attempt to read it has failed
};

}  // namespace bulkhead
