// The gateway's key that signs telemetry audit chains. It is created at first use in
// <state_dir>/secrets/@audit, a folder that no plugin can use because no instance has such a name.
// The public key is in <state_dir>/audit/supervisor, and the signed statements of each instance are
// in <state_dir>/audit/signed.
//
// Thread-safe; blocks on file I/O.
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
// Maximum size of an instance's list. A full list is thinned: only the first of the older lines in
// each hour is kept, or the first in each day if that is not enough.
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

// Signs a statement. A statement about a chain ("chain C seq N head HASH") is also added to the
// instance's list. Returns BH_E_DENIED if its position precedes the last signed position. Returns
// BH_E_INVALID if the statement is too long, is not printable ASCII, or refers to a chain but has
// another format. If the list cannot be written, nothing is signed and the error is returned.
Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement);

// One line of a list.
struct SignedPlace {
  std::uint64_t unix_s = 0, seq = 0;
  std::uint32_t chain = 0;
  std::string head;  // 64 hex digits
};
std::optional<SignedPlace> parse_signed_line(std::string_view line);  // without line ending
// Returns an instance's list in signing order, or an empty vector if there is no list. An
// incomplete line is omitted.
std::vector<SignedPlace> signed_places(const std::string &state_dir, const std::string &instance);
// Returns the instances that have a list.
std::vector<std::string> signed_instances(const std::string &state_dir);

}  // namespace bulkhead
