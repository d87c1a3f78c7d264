// The files of a folder: calls-CHAIN-NUMBER.db. A chain is what one gateway at a time writes; its
// files follow each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace record_store {

struct SegmentFile {
  std::string path;
  std::uint32_t chain = 0, number = 0;
  std::uint64_t bytes = 0;      // of it and its -wal
  std::int64_t changed_ns = 0;  // the later of the two; since 1970
};

std::string segment_name(std::uint32_t chain, std::uint32_t number);
// False: not one of ours.
bool parse_segment_name(std::string_view name, std::uint32_t *chain, std::uint32_t *number);

// By chain, then number. Empty when there is no such folder.
std::vector<SegmentFile> segment_files(const std::string &folder);

}  // namespace record_store
