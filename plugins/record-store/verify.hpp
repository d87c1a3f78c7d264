// Verifies a chain across its files and reports the first row that does not match.
//
// Thread: any; read-only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record-store/chain.hpp"
#include "record-store/files.hpp"

namespace record_store {

// A checkpoint from the supervisor's list.
struct KnownCheckpoint {
  std::uint64_t seq = 0;
  std::string head;  // 64 hex digits
  std::uint64_t signed_at = 0;
};

struct VerifyOptions {
  static constexpr std::uint64_t max_ms = 600'000;  // limit per file
  static constexpr int max_value_bytes = 16 << 20;  // longer values are not from this program

  std::string public_key;  // 32 bytes; empty: signatures are not checked
  std::string instance;    // expected in the signatures; empty: any, but the same in all
  // Checkpoints of this chain from the supervisor's list; the signed rows must exist.
  std::vector<KnownCheckpoint> known;
  bool whole_chain = true;  // false: a single file, with possible predecessors and successors
  bool to_the_end = true;   // the end of the chain: all signed rows must exist
};

struct VerifyReport {
  std::string broken;              // the first error: file, table, row, reason; empty: none
  std::vector<std::string> notes;  // events that are not errors: gaps, losses, restarts
  std::uint64_t rows = 0, files = 0;
  std::uint64_t checkpoints = 0;    // with a valid signature, or unchecked if there is no key
  std::uint64_t unsigned_rows = 0;  // after the last checkpoint
  std::uint64_t first_seq = 0;      // of the first existing row; 1: from the beginning
  std::string instance;             // named in the checkpoints
};

// Verifies the files of one chain, given in order.
VerifyReport verify_chain(const std::vector<SegmentFile> &files, const VerifyOptions &options);

}  // namespace record_store
