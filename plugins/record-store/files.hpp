// The files of a folder: calls-CHAIN-NUMBER.db. A chain has one writing gateway at a time; its
// files are numbered consecutively.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace record_store {

struct SegmentFile {
  std::string path;
  std::uint32_t chain = 0, number = 0;
  std::uint64_t bytes = 0;      // including its -wal
  std::int64_t changed_ns = 0;  // latest modification of both; since 1970
};

std::string segment_name(std::uint32_t chain, std::uint32_t number);
// False: not the name of a session database file.
bool parse_segment_name(std::string_view name, std::uint32_t *chain, std::uint32_t *number);

// Ordered by chain, then number. Empty if the folder does not exist.
std::vector<SegmentFile> segment_files(const std::string &folder);

}  // namespace record_store
