// Requests to list and answer approvals. Another process sends them to the endpoint; the processes
// in between forward them without parsing them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/archive.hpp"
#include "host.hpp"

namespace bulkhead {

enum class ApprovalRequest : std::uint32_t {
  list = 1,  // archived ApprovalWatch; the response is an archived ApprovalList
  answer     // archived ApprovalAnswer; the response is empty
};

struct ApprovalWatch {
  std::uint64_t watch_ms = 0;  // see Host::approvals()
};

// Handles a request. `value` is untrusted: the sender may be compromised.
Result<std::string> answer_approval_request(Host &host, std::uint32_t request,
                                            std::string_view value);

// ---- serialization ---------------------------------------------------------------------------

template <class Ar>
void archive(Ar &ar, ApprovalWatch &v) {
  auto &[watch_ms] = v;
  ar(watch_ms);
}
template <class Ar>
void archive(Ar &ar, ApprovalScope &v) {
  auto &[kind, minutes, tool] = v;
  ar(kind, minutes, tool);
}
template <class Ar>
void archive(Ar &ar, ApprovalAnswer &v) {
  auto &[id, allow, scope, surface, revoke] = v;
  ar(id, allow, scope, surface, revoke);
}
template <class Ar>
void archive(Ar &ar, ApprovalQuestion &v) {
  auto &[id, server, method, name, arguments, arguments_cut, arguments_bytes, meta, extra, digest,
         tool_digest, definition, rule, reason, process_name, principal, transport, peer,
         claimed_name, session, has_session, asked_unix_ms, expires_unix_ms] = v;
  ar(id, server, method, name, arguments, arguments_cut, arguments_bytes, meta, extra, digest,
     tool_digest, definition, rule, reason, process_name, principal, transport, peer, claimed_name,
     session, has_session, asked_unix_ms, expires_unix_ms);
}
template <class Ar>
void archive(Ar &ar, ApprovalGrant &v) {
  auto &[question, scope, until_ns] = v;
  ar(question, scope, until_ns);
}
template <class Ar>
void archive(Ar &ar, ApprovalList &v) {
  auto &[questions, waiting, grants] = v;
  ar(questions, waiting, grants);
}

}  // namespace bulkhead
