// Minimal parsing of messages for special cases. Ordinary calls are not parsed in this plugin.
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
  duplex     // notification that announces support for server-initiated messages, version 1
};
inline constexpr std::string_view duplex_method = "notifications/bulkhead/duplex";

Envelope peek(std::string_view message);

// Returns the JSON text of the member `id` ("7", "\"a\"") of an object given in parts, or an empty
// string if it is missing.
std::string id_of(std::span<const bh_str> parts);

}  // namespace transport_vsock
