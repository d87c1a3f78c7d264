// Defines the roots: the names that conditions may use, and their slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cel/environment.hpp"

namespace bulkhead::rules {

// The event that a rule applies to (the `on` key).
enum class Event : std::uint8_t { request, response, input_request, input_response, notification };
inline constexpr std::size_t kEvents = 5;
std::string_view to_string(Event event) noexcept;  // "mcp.request"
std::optional<Event> event_named(std::string_view on) noexcept;

// Slots of the roots in an Environment. The meaning of kCommon and all later slots depends on the
// event.
enum Root : std::uint32_t {
  kMethod,
  kServer,
  kTool,
  kPrompt,
  kUri,
  kUriNormalized,
  kProcess,
  kTransport,
  kPrincipal,
  kPeer,
  kClaimedName,
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
  kExtra,
  kCompletion,
  kCompletionContext,
  // mcp.response
  kStatus = kCommon,
  kIsError,
  kContent,
  kStructured,
  kText,
  // mcp.input_request
  kInputParams = kCommon,
  kInputText,
  // mcp.input_response
  kInputResult = kCommon,
  kResultText,
  kInputAction,
  // mcp.notification
  kNoteParams = kCommon,
  kNoteText,
  kRecipient,
  kRoots = kCompletionContext + 1
};

constexpr std::uint64_t bit(std::uint32_t slot) {
  return std::uint64_t{1} << slot;
}
inline constexpr std::uint64_t kArgumentBits = bit(kArguments) | bit(kArgumentsText);
// The roots for members of params other than the arguments.
inline constexpr std::uint64_t kBesideBits =
    bit(kExtra) | bit(kCompletion) | bit(kCompletionContext);
inline constexpr std::uint64_t kDefinitionBits = bit(kAnnotations) | bit(kDescription);
inline constexpr std::uint64_t kResultBits =
    bit(kStatus) | bit(kIsError) | bit(kContent) | bit(kStructured) | bit(kText);

// The members with the content of a result: of tools/call, resources/read and prompts/get.
// mcp.response.content and rewrites of response.content refer to these members.
inline constexpr std::array<std::string_view, 3> kContentNames = {"content", "contents",
                                                                  "messages"};

// The first two body slots for input requests, input responses and notifications.
inline constexpr std::uint64_t kBodyBits = bit(kCommon) | bit(kCommon + 1);

// Returns the roots that are declared for the rules of an event. The returned object is static.
const cel::Environment &environment(Event event);

}  // namespace bulkhead::rules
