// What a person is asked before a call goes on, and what they say: values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// For which calls an answer holds: this one; calls with the same digest for as long as the session
// lasts; or for some minutes, of the same client (principal and transport).
struct ApprovalScope {
  enum class Kind : std::uint8_t { once, session, minutes };
  static constexpr std::uint32_t max_minutes = 24 * 60;
  Kind kind = Kind::once;
  std::uint32_t minutes = 0;  // 1 to max_minutes with Kind::minutes, else 0

  bool valid() const noexcept {
    return kind == Kind::minutes ? minutes >= 1 && minutes <= max_minutes
                                 : kind <= Kind::minutes && minutes == 0;
  }
};
std::string to_string(const ApprovalScope &scope);  // "once", "session", "10 minutes"

// Who can be asked.
enum class ApprovalSurface : std::uint8_t { none, elicitation, terminal, api };
std::string_view to_string(ApprovalSurface surface) noexcept;

// What is asked. Texts come from clients, servers and rules: hidden characters are visible, but
// whoever shows them still has to know what its screen obeys.
struct ApprovalQuestion {
  static constexpr std::size_t max_text = 256, max_name = 2048, max_reason = 1024,
                               max_arguments = 16'384, max_meta = 2048, max_extra = 4096;

  std::string id;  // 32 hexadecimal digits; 128 bits from the kernel's generator
  std::string server, method;
  std::string name;       // original tool or prompt name, or URI
  std::string arguments;  // see shown_json.hpp, at most max_arguments bytes
  bool arguments_cut = false;
  std::uint64_t arguments_bytes = 0;  // as they came
  // Of _meta what is no progress token and no trace, shown as arguments are; empty: there is none.
  // Of more than max_meta bytes the beginning, and it says so.
  std::string meta;
  // Members of params that have no place above (mcp::extra_params), shown as _meta is.
  std::string extra;
  // SHA-256 of method, server, name and the bytes of the arguments, of that of _meta and of the
  // other members, in hex.
  std::string digest;
  std::string rule, reason;
  std::string process_name, principal, transport, peer;  // of the client
  std::uint64_t session = 0;
  std::uint64_t asked_unix_ms = 0, expires_unix_ms = 0;
};

// Those that wait, oldest first, as many as have room.
struct ApprovalList {
  static constexpr std::size_t max_bytes = 2u << 20;
  std::vector<ApprovalQuestion> questions;
  std::uint64_t waiting = 0;  // all of them
};

struct ApprovalAnswer {
  std::string id;
  bool allow = false;
  ApprovalScope scope;
  ApprovalSurface surface = ApprovalSurface::api;
};

// How a question ended. withdrawn: the call has gone (cancelled, its client or its server away).
enum class ApprovalEnd : std::uint8_t { allowed, denied, expired, withdrawn };
std::string_view to_string(ApprovalEnd end) noexcept;

struct ApprovalOutcome {
  const ApprovalQuestion &question;  // borrowed
  ApprovalEnd end;
  ApprovalSurface surface;  // of allowed and denied
  ApprovalScope scope;      // of allowed
  std::uint64_t ended_unix_ms;
};
// "allowed by terminal (once): tools/call "x" at "files", rule r1, digest ..., asked for 12 s".
std::string describe(const ApprovalOutcome &outcome);

}  // namespace bulkhead
