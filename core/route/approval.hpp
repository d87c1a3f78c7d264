// Human approval types: questions, answers, scopes and outcomes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// The calls that an answer covers: one call; calls with the same digest until the session ends; or,
// for some minutes, calls with the same digest from the same client (principal and transport). If
// `tool` is set, an answer covers calls to the same tool with any arguments, but only in the same
// session.
struct ApprovalScope {
  enum class Kind : std::uint8_t { once, session, minutes };
  static constexpr std::uint32_t max_minutes = 24 * 60, max_tool_minutes = 60;
  Kind kind = Kind::once;
  std::uint32_t minutes = 0;  // 1 to the maximum for Kind::minutes, otherwise 0
  bool tool = false;          // not with Kind::once

  bool valid() const noexcept {
    if (kind == Kind::minutes) {
      return minutes >= 1 && minutes <= (tool ? max_tool_minutes : max_minutes);
    }
    return kind <= Kind::minutes && minutes == 0 && !(tool && kind == Kind::once);
  }
};
// Returns "once", "session", "10 minutes", "tool for session" or "tool for 10 minutes".
std::string to_string(const ApprovalScope &scope);

// The surface on which the question was answered.
enum class ApprovalSurface : std::uint8_t { none, elicitation, terminal, api };
std::string_view to_string(ApprovalSurface surface) noexcept;

// An approval question. Its strings come from clients, servers and rules. Hidden characters are
// made visible, but a program that displays the strings must escape the characters that its display
// interprets.
struct ApprovalQuestion {
  static constexpr std::size_t max_text = 256, max_name = 2048, max_reason = 1024,
                               max_arguments = 16'384, max_meta = 2048, max_extra = 4096;

  std::string id;  // 32 hexadecimal digits; 128 bits from the kernel's generator
  std::string server, method;
  std::string name;       // original tool or prompt name, or URI
  std::string arguments;  // see shown_json.hpp, at most max_arguments bytes
  bool arguments_cut = false;
  std::uint64_t arguments_bytes = 0;  // size in the message
  // _meta without the progress token and trace, formatted like the arguments; may be empty.
  // Truncated to max_meta bytes, with a note.
  std::string meta;
  // The other members of params (mcp::extra_params), formatted like _meta.
  std::string extra;
  // Hexadecimal SHA-256 over method, server, name, and the bytes of the arguments, `meta` and
  // `extra`.
  std::string digest;
  // tool_digest is the same hash over method, server, name and `extra`. `definition` is the hash of
  // the listed definition. Both are empty if the target is not a listed tool. Such a target cannot
  // be approved for any arguments.
  std::string tool_digest, definition;
  std::string rule, reason;
  std::string process_name, principal, transport, peer;  // of the client
  std::string claimed_name;  // clientInfo.name, as claimed by the client; not verified
  std::uint64_t session = 0;
  std::uint64_t asked_unix_ms = 0, expires_unix_ms = 0;
};

// An approval that covers more than one call.
struct ApprovalGrant {
  static constexpr std::size_t max_arguments = 256;
  // The answered question, with its id. Its arguments are truncated, and _meta and the other
  // members are empty. Its expiry time is the time at which the grant ends, or 0 if the grant lasts
  // until the session ends.
  ApprovalQuestion question;
  ApprovalScope scope;
  std::uint64_t until_ns = 0;  // 0: until the session ends
};

// Pending questions and grants, oldest first, up to max_bytes each.
struct ApprovalList {
  static constexpr std::size_t max_bytes = 2u << 20;
  std::vector<ApprovalQuestion> questions;
  std::uint64_t waiting = 0;  // total number of pending questions
  std::vector<ApprovalGrant> grants;
};

struct ApprovalAnswer {
  std::string id;
  bool allow = false;
  ApprovalScope scope;
  ApprovalSurface surface = ApprovalSurface::api;
  bool revoke = false;  // ends the grant with this id, without allowing or denying a call
};

// How a question ended. `withdrawn` means that the call was cancelled, or that its client or server
// is gone.
enum class ApprovalEnd : std::uint8_t { allowed, denied, expired, withdrawn };
std::string_view to_string(ApprovalEnd end) noexcept;

struct ApprovalOutcome {
  const ApprovalQuestion &question;  // borrowed
  ApprovalEnd end;
  ApprovalSurface surface;  // set for allowed and denied
  ApprovalScope scope;      // set for allowed
  std::uint64_t ended_unix_ms;
};
// Returns a description such as "allowed by terminal (once): tools/call "x" at "files", rule r1,
// digest ..., asked for 12 s".
std::string describe(const ApprovalOutcome &outcome);

}  // namespace bulkhead
