// The little that an endpoint must see of a message: nothing on the way of an ordinary call.
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
  duplex     // the notification that says: I understand what you send unasked, version 1
};
inline constexpr std::string_view duplex_method = "notifications/bulkhead/duplex";

Envelope peek(std::string_view message);

// The text of the member `id` of a JSON object in parts ("7", "\"a\""); empty: none.
std::string id_of(std::span<const bh_str> parts);

}  // namespace transport_vsock
