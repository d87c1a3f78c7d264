// Is the record what was written? Walks a chain through its files and says which row is the first
// that is not.
//
// Thread: any; reads only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record-store/chain.hpp"
#include "record-store/files.hpp"

namespace record_store {

// A checkpoint as the supervisor has kept it.
struct KnownCheckpoint {
  std::uint64_t seq = 0;
  std::string head;  // 64 hex digits
  std::uint64_t signed_at = 0;
};

struct VerifyOptions {
  static constexpr std::uint64_t max_ms = 600'000;  // of one file
  static constexpr int max_value_bytes = 16 << 20;  // longer ones are no rows of ours

  std::string public_key;  // 32 bytes; empty: signatures are not checked
  std::string instance;    // that the signatures are for; empty: any, but one
  // Of this chain, from the supervisor's own list: rows that it has signed must be there.
  std::vector<KnownCheckpoint> known;
  bool whole_chain = true;  // false: one file, which others may come before and follow
  bool to_the_end = true;   // nothing follows: all that was signed must be there
};

struct VerifyReport {
  std::string broken;  // the first thing that is wrong: file, table, row, what; empty: nothing is
  std::vector<std::string> notes;  // what is not wrong, but worth knowing: gaps, losses, restarts
  std::uint64_t rows = 0, files = 0;
  std::uint64_t checkpoints = 0;    // whose signature was checked, or could have been
  std::uint64_t unsigned_rows = 0;  // behind the last one
  std::uint64_t first_seq = 0;      // of the first row that is there; 1: from the beginning
  std::string instance;             // that the checkpoints name
};

// The files of one chain, in order.
VerifyReport verify_chain(const std::vector<SegmentFile> &files, const VerifyOptions &options);

}  // namespace record_store
