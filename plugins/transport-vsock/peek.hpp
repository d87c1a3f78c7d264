// Parses the few messages that this plugin handles itself. Ordinary calls are not parsed.
#pragma once

#include <bulkhead/abi/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace transport_vsock {

enum class Envelope : std::uint8_t {
  unreadable,  // not a JSON object, or one with neither `method` nor `id`
  request,     // has `method` and `id`
  notification,
  response,  // has `id` and no `method`
  duplex     // a notification: the guest accepts server-initiated messages (version 1)
};
inline constexpr std::string_view duplex_method = "notifications/bulkhead/duplex";

Envelope peek(std::string_view message);
// Returns false for responses and notifications.
bool expects_response(std::string_view message);

// Returns the `id` member of a JSON object, in JSON ("7", "\"a\""). Returns an empty string if
// there is no such member, or if it is longer than 1,024 bytes. The object may be split into
// several parts.
std::string id_of(std::span<const bh_str> parts);

}  // namespace transport_vsock
