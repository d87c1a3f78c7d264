// Names of the numeric constants in records (bulkhead/abi/ext/telemetry.h), for plugins that write
// them as text.
#pragma once

#include <cstdint>
#include <string_view>

#include "../abi/ext/telemetry.h"

namespace bh {

// Returns the name of BH_OUTCOME_... as a static string: "ok", "error", "refused", "timeout",
// "cancelled" or "unknown".
constexpr std::string_view outcome_name(std::uint32_t outcome) noexcept {
  switch (outcome) {
    case BH_OUTCOME_OK:
      return "ok";
    case BH_OUTCOME_ERROR:
      return "error";
    case BH_OUTCOME_REFUSED:
      return "refused";
    case BH_OUTCOME_TIMEOUT:
      return "timeout";
    case BH_OUTCOME_CANCELLED:
      return "cancelled";
    default:
      return "unknown";
  }
}

}  // namespace bh
