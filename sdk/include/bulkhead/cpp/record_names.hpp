// The names of the numeric constants in records (bulkhead/abi/ext/telemetry.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../abi/ext/policy.h"
#include "../abi/ext/telemetry.h"

namespace bh {

// Returns the name of a BH_OUTCOME_... constant as a static string: "ok", "error", "refused",
// "timeout" or "cancelled". Returns "unknown" for any other value.
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

// Returns the name of the verdict in bh_record.action (BH_VERDICT_...): "allow", "ask", "block" or
// "rewrite". Returns an empty string for any other value.
constexpr std::string_view action_name(std::uint32_t action) noexcept {
  switch (action) {
    case BH_VERDICT_ALLOW:
      return "allow";
    case BH_VERDICT_ASK:
      return "ask";
    case BH_VERDICT_BLOCK:
      return "block";
    case BH_VERDICT_REWRITE:
      return "rewrite";
    default:
      return {};
  }
}

// Returns a revision number of a record as text, for example "2025-11-25" for 20251125. Returns an
// empty string if the number does not have eight digits.
inline std::string revision_text(std::uint32_t revision) {
  if (revision < 10'000'000 || revision > 99'999'999) return {};
  std::string out = std::to_string(revision);
  out.insert(6, 1, '-').insert(4, 1, '-');
  return out;
}

}  // namespace bh
