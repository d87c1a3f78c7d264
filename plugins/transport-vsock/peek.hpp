// Minimal parsing of messages for special cases. This plugin does not parse ordinary calls.
#pragma once

#include <bulkhead/abi/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace transport_vsock {

enum class Envelope : std::uint8_t {
  unreadable,  // not a JSON object
  request,     // `method` and `id`
  notification,
  response,  // `id` and no `method`
  duplex     // the notification that announces support for server-initiated messages, version 1
};
inline constexpr std::string_view duplex_method = "notifications/bulkhead/duplex";

Envelope peek(std::string_view message);

// Returns the JSON text of the member `id` of an object given in parts ("7", "\"a\""); empty if
// absent.
std::string id_of(std::span<const bh_str> parts);

}  // namespace transport_vsock
