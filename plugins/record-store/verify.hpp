// Verifies a hash chain across its files and reports the first row that does not match.
//
// Thread-safe. The files are not modified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record-store/chain.hpp"
#include "record-store/files.hpp"

namespace record_store {

// A checkpoint from the supervisor's list of checkpoints that it has signed.
struct KnownCheckpoint {
  std::uint64_t seq = 0;
  std::string head;  // 64 hex digits
  std::uint64_t signed_at = 0;
};

struct VerifyOptions {
  static constexpr std::uint64_t max_ms = 600'000;  // time limit for each file
  static constexpr int max_value_bytes = 16 << 20;  // longer values are never written

  std::string public_key;  // 32 bytes; if empty, signatures are not checked
  // The instance that all signatures must name. If empty, any instance is accepted, but all
  // signatures must name the same one.
  std::string instance;
  // The checkpoints of this chain in the supervisor's list, sorted by seq. Their rows must match.
  std::vector<KnownCheckpoint> known;
  bool whole_chain = true;  // false for a single file, which may have predecessors and successors
  bool to_the_end = true;   // the files include the end of the chain, so all signed rows must exist
};

struct VerifyReport {
  std::string broken;  // file, table, row and reason of the first error; empty if there is none
  std::vector<std::string> notes;  // gaps, losses and restarts, which are not errors
  std::uint64_t rows = 0, files = 0;
  // The number of checkpoints with a valid signature, or of all checkpoints if there is no key.
  std::uint64_t checkpoints = 0;
  std::uint64_t unsigned_rows = 0;  // rows after the last checkpoint
  std::uint64_t first_seq = 0;      // seq of the first row; 1 if no rows are missing at the start
  std::string instance;             // the instance that the checkpoints name
};

// Verifies the files of one chain. The files must be in order.
VerifyReport verify_chain(const std::vector<SegmentFile> &files, const VerifyOptions &options);

}  // namespace record_store
