// The gateway's key that signs telemetry's audit chains. It is created at first use in
// <state_dir>/secrets/@audit, which holds no plugin's secrets (no instance has such a name). The
// public key is in <state_dir>/audit/supervisor, and the signed statements of each instance in
// <state_dir>/audit/signed.
//
// Thread: any; blocks on files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.hpp"
#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t max_statement_bytes = 512;
// Limit of one instance's list. A full list is thinned: of its older lines only the first of each
// hour is kept, or of each day if that is not enough.
inline constexpr std::uint64_t max_audit_list_bytes = 8u << 20;
inline constexpr std::uint32_t max_audit_chains = 64;  // per instance

struct AuditSignature {
  std::uint64_t unix_s = 0;
  std::string public_key, signature;  // 32 and 64 bytes
};
template <class Ar>
void archive(Ar &ar, AuditSignature &v) {
  auto &[unix_s, public_key, signature] = v;
  ar(unix_s, public_key, signature);
}

// Signs a statement. If it is about a chain ("chain C seq N head HASH"), it is added to the
// instance's list. For a chain, a place is signed only if it is after the last signed one, or equal
// to it; else BH_E_DENIED. BH_E_INVALID: the statement is too long, is not printable ASCII, or is
// about a chain in another form. If the list cannot be written, nothing is signed and the error is
// returned.
Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement);

// A line of a list.
struct SignedPlace {
  std::uint64_t unix_s = 0, seq = 0;
  std::uint32_t chain = 0;
  std::string head;  // 64 hex digits
};
std::optional<SignedPlace> parse_signed_line(std::string_view line);  // without the line end
// The list of an instance, in the order of signing. An incomplete line is left out. Empty: there is
// no list.
std::vector<SignedPlace> signed_places(const std::string &state_dir, const std::string &instance);
// The instances that have a list.
std::vector<std::string> signed_instances(const std::string &state_dir);

}  // namespace bulkhead
