// Removes message members that rules and approvers would not see. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Removes unknown envelope members and invalid trace members (Scan::bad_traces) from a scanned
// message. If the profile requires it, also removes unknown members of params. If members are
// removed, the shorter message is stored in *room, and *message and *scan then refer to it, so
// *room must outlive them. Returns the number of removed members.
inline std::uint64_t drop_members(const Profile &profile, std::string_view *message,
                                  mcp::Scan *scan, std::string *room) {
  const bool params = scan->unknown_params != 0 && profile.unknown_params == UnknownParams::drop;
  if (!scan->has_to_drop() && !params) return 0;
  const std::uint64_t dropped =
      scan->unknown_members + scan->bad_traces + (params ? scan->unknown_params : 0);
  *room = mcp::without_dropped_members(*message, *scan, params);
  *message = *room;
  mcp::ScanError error;
  // Cannot fail: the remaining members have already been scanned.
  mcp::scan(*message, scan, &error);
  return dropped;
}

}  // namespace bulkhead
