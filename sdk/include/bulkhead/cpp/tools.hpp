// Creates the structs of bh.tools/1 and bh.host.tools/1. Header only; C++20.
#pragma once

#include <cstdint>
#include <string_view>

#include "../abi/ext/tools.h"
#include "basics.hpp"

namespace bh {

// Describes the list of this kind (BH_LIST_...) that all clients share.
inline bh_list_info list_info(std::uint32_t kind) noexcept {
  return {sizeof(bh_list_info), kind, 0, {}};
}

// Describes the progress of a call. `total` is 0 if unknown. Borrows the message.
inline bh_progress progress(double done, double total = 0, std::string_view message = {}) noexcept {
  return {sizeof(bh_progress), 0, done, total, str(message)};
}

// Describes a cancellation for this reason (BH_CANCEL_...). Borrows the text.
inline bh_cancel cancellation(std::uint32_t reason, std::string_view text = {}) noexcept {
  return {sizeof(bh_cancel), reason, str(text)};
}

}  // namespace bh
