// Signs telemetry audit chains with the gateway's key. The key is created at first use in
// <state_dir>/secrets/@audit. Plugins cannot use this folder, because "@audit" is not a valid
// instance name. The public key is in <state_dir>/audit/supervisor/public-key, and the list of each
// instance's signed chain positions is in <state_dir>/audit/signed.
//
// Thread-safe. Blocks on file I/O.
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
// Maximum size of an instance's list. A full list is shrunk to at most half of this size: for each
// chain, only the last line and the first line of each hour (or, if that is not enough, of each
// day) are kept. If the list is still too long, its oldest lines are removed.
inline constexpr std::uint64_t max_audit_list_bytes = 8u << 20;
inline constexpr std::uint32_t max_audit_chains = 64;  // limit per instance

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
// instance's list, unless it repeats the last one. It is rejected with BH_E_DENIED if a later
// position in the chain has already been signed, or if the last signed position has the same number
// but another head. Returns BH_E_INVALID if the statement is empty or too long, contains characters
// other than printable ASCII, or starts like a statement about a chain but is malformed. If the
// list cannot be written, returns the error and no signature.
Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement);

// One line of an instance's list.
struct SignedPlace {
  std::uint64_t unix_s = 0, seq = 0;
  std::uint32_t chain = 0;
  std::string head;  // 64 hexadecimal digits
};
std::optional<SignedPlace> parse_signed_line(std::string_view line);  // without the line's end
// Returns the lines of the instance's list, oldest first. Incomplete lines are skipped. Returns an
// empty vector if there is no list.
std::vector<SignedPlace> signed_places(const std::string &state_dir, const std::string &instance);
// Returns the names of the instances that have a list.
std::vector<std::string> signed_instances(const std::string &state_dir);

}  // namespace bulkhead
