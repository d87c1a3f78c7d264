// What conditions may name, and what it is in one call.
#pragma once

#include <cstdint>

#include "cel/environment.hpp"

namespace bulkhead::rules {

enum class Event : std::uint8_t { request, response };

// Slots of the environments. Those behind kCommon mean another thing in each of the two.
enum Root : std::uint32_t {
  kMethod,
  kServer,
  kTool,
  kPrompt,
  kUri,
  kProcess,
  kTransport,
  kPrincipal,
  kPeer,
  kSessionId,
  kSessionCalls,
  kSessionAge,
  kTime,
  kCommon,
  // mcp.request
  kArguments = kCommon,
  kArgumentsText,
  kMeta,
  kAnnotations,
  kDescription,
  kPinned,
  // mcp.response
  kStatus = kCommon,
  kIsError,
  kContent,
  kStructured,
  kText,
  kRoots = kPinned + 1
};

constexpr std::uint64_t bit(std::uint32_t slot) {
  return std::uint64_t{1} << slot;
}
inline constexpr std::uint64_t kArgumentBits = bit(kArguments) | bit(kArgumentsText);
inline constexpr std::uint64_t kDefinitionBits = bit(kAnnotations) | bit(kDescription);
inline constexpr std::uint64_t kResultBits =
    bit(kStatus) | bit(kIsError) | bit(kContent) | bit(kStructured) | bit(kText);

// Each lives forever.
const cel::Environment &environment(Event event);

}  // namespace bulkhead::rules
