// Types for human approval of calls: requests, scopes, responses, grants and outcomes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// The calls that an approval covers. `once` covers one call. `session` covers calls with the same
// digest until the session ends or is initialized again. `minutes` covers calls with the same
// digest from the same client (principal and transport) for that number of minutes. In addition,
// the client process must have the same name, the same rule must require the approval, and the
// definition of the tool must not have changed. A reload that removes or replaces the server ends
// all approvals for it.
//
// If `tool` is set, the approval covers calls to the same tool with any arguments and any _meta,
// but only in the same session or, for a client without a session, from the same peer with the same
// claimed name. Other params (ApprovalQuestion::extra) must be the same.
struct ApprovalScope {
  enum class Kind : std::uint8_t { once, session, minutes };
  static constexpr std::uint32_t max_minutes = 24 * 60, max_tool_minutes = 60;
  Kind kind = Kind::once;
  std::uint32_t minutes = 0;  // for Kind::minutes: from 1 to the maximum; otherwise 0
  bool tool = false;          // must be false for Kind::once

  bool valid() const noexcept {
    if (kind == Kind::minutes) {
      return minutes >= 1 && minutes <= (tool ? max_tool_minutes : max_minutes);
    }
    return kind <= Kind::minutes && minutes == 0 && !(tool && kind == Kind::once);
  }
};
// Returns a text such as "once", "session", "10 minutes", "tool for session" or "tool for 10
// minutes".
std::string to_string(const ApprovalScope &scope);

// The user interface through which the approval request was resolved.
enum class ApprovalSurface : std::uint8_t { none, elicitation, terminal, api };
std::string_view to_string(ApprovalSurface surface) noexcept;

// A request for approval of a call. The strings come from clients, servers and rules. Each of them
// is a single line, and hidden characters have already been made visible, but a program that
// displays a string must also escape the characters that its display interprets (for example,
// HTML).
struct ApprovalQuestion {
  static constexpr std::size_t max_text = 256, max_name = 2048, max_reason = 1024,
                               max_arguments = 16'384, max_meta = 2048, max_extra = 4096;

  std::string id;  // 32 hexadecimal digits: 128 random bits from the kernel
  std::string server, method;
  std::string name;  // original tool or prompt name, or URI
  // Formatted by shown_json(); at most max_arguments bytes. For completion/complete and
  // tasks/update, the complete params.
  std::string arguments;
  bool arguments_cut = false;
  std::uint64_t arguments_bytes = 0;  // size of the arguments in the client's message
  // The members of _meta that the approval covers (see approved_meta), formatted like the
  // arguments. Truncated to max_meta bytes, with a note. May be empty.
  std::string meta;
  // Members of params that no other field contains (mcp::extra_params), formatted like _meta.
  std::string extra;
  // The result of approval_digest(): a hexadecimal SHA-256 of the method, the server, the name and
  // the ApprovedTexts, without masking or truncation.
  std::string digest;
  // `tool_digest` is a SHA-256 like `digest`, but only of the method, the server, the name and
  // `extra`. `definition` is the hash of the tool's listed definition. If the request is not a
  // tools/call of a listed tool, both strings are empty, and the request cannot be approved for
  // arbitrary arguments.
  std::string tool_digest, definition;
  std::string rule, reason;
  std::string process_name, principal, transport, peer;  // identify the client process
  std::string claimed_name;   // clientInfo.name, as claimed by the client; not verified
  std::uint64_t session = 0;  // Session::client()
  // False for a client of MCP 2026-07-28 over HTTP. `session` then identifies all clients with the
  // same transport, principal and peer, so no approval can last for the session.
  bool has_session = true;
  std::uint64_t asked_unix_ms = 0, expires_unix_ms = 0;
};

// An approval whose scope covers more than one call.
struct ApprovalGrant {
  static constexpr std::size_t max_arguments = 256;
  // The approval request for which the grant was given. Its arguments are truncated to
  // max_arguments bytes, and `meta` and `extra` are empty. `expires_unix_ms` is the time at which
  // the grant expires, or 0 if the grant lasts until the session ends.
  ApprovalQuestion question;
  ApprovalScope scope;
  std::uint64_t until_ns = 0;  // on the reactor's clock; 0 if it lasts until the session ends
};

// Pending approval requests and grants, oldest first. Each of the two lists is limited to
// max_bytes; the newest entries beyond this limit are left out.
struct ApprovalList {
  static constexpr std::size_t max_bytes = 2u << 20;
  std::vector<ApprovalQuestion> questions;
  std::uint64_t waiting = 0;  // total number of pending requests
  std::vector<ApprovalGrant> grants;
};

struct ApprovalAnswer {
  std::string id;
  bool allow = false;
  ApprovalScope scope;
  ApprovalSurface surface = ApprovalSurface::api;
  bool revoke = false;  // remove the grant with this id; no call is allowed or denied
};

// How an approval request was resolved. `withdrawn` means that it can no longer be answered: for
// example, the call was cancelled, its client disconnected, its server was removed, or the tool's
// definition changed. `withdrawn` is also the outcome of a grant that has ended (see
// ApprovalOutcome).
enum class ApprovalEnd : std::uint8_t { allowed, denied, expired, withdrawn };
std::string_view to_string(ApprovalEnd end) noexcept;

// Passed to observers when an approval request is resolved, and when a grant ends because it was
// revoked, because the rules, the tool's definition or the server changed, or because there are too
// many grants.
struct ApprovalOutcome {
  const ApprovalQuestion &question;  // borrowed
  ApprovalEnd end;
  ApprovalSurface surface;  // for `allowed`, `denied` and a revoked grant; otherwise `none`
  ApprovalScope scope;      // for `allowed` and a grant that has ended
  std::uint64_t ended_unix_ms;
};
// Returns a description for the log, such as "approval 5d41... allowed by terminal (once) after
// 12 ms: tools/call "x" on server "files", rule "r1", digest ...".
std::string describe(const ApprovalOutcome &outcome);

}  // namespace bulkhead
