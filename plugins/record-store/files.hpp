// Names and lists the files of the session database: calls-CHAIN-NUMBER.db. Each chain is written
// by one gateway at a time, and its files are numbered consecutively.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace record_store {

struct SegmentFile {
  std::string path;
  std::uint32_t chain = 0, number = 0;
  std::uint64_t bytes = 0;      // includes the -wal file
  std::int64_t changed_ns = 0;  // last modification of the file or its -wal file, since 1970
};

std::string segment_name(std::uint32_t chain, std::uint32_t number);
// Returns false if `name` is not the name of a session database file.
bool parse_segment_name(std::string_view name, std::uint32_t *chain, std::uint32_t *number);

// Returns the files in a folder, ordered by chain and number. If the folder does not exist, the
// result is empty.
std::vector<SegmentFile> segment_files(const std::string &folder);

}  // namespace record_store
