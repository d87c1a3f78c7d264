// The session database files in a folder: calls-CHAIN-NUMBER.db. Each chain is written by one
// gateway at a time. A chain's files are numbered consecutively.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace record_store {

struct SegmentFile {
  std::string path;
  std::uint32_t chain = 0, number = 0;
  std::uint64_t bytes = 0;      // including the -wal file
  std::int64_t changed_ns = 0;  // last modification of either file, since 1970
};

std::string segment_name(std::uint32_t chain, std::uint32_t number);
// Returns false if `name` is not the name of a session database file.
bool parse_segment_name(std::string_view name, std::uint32_t *chain, std::uint32_t *number);

// Returns the files ordered by chain, then by number. Returns no files if the folder does not
// exist.
std::vector<SegmentFile> segment_files(const std::string &folder);

}  // namespace record_store
