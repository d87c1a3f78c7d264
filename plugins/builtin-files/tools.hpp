// The tools. Each runs on a thread of the host's pool and gives the `result` of its call as JSON
// text; what goes wrong is a result with isError.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"
#include "tool-kit/arguments.hpp"

namespace builtin_files {

inline constexpr std::uint64_t max_text_bytes = 1u << 20;  // of file content in one answer
inline constexpr std::size_t max_entries = 2000;           // of one dir_list
inline constexpr std::uint64_t max_matches = 1000;         // of one file_search
inline constexpr std::size_t max_wanted_bytes = 4096;      // of what file_search looks for
inline constexpr std::uint64_t search_ms = 10'000;         // one file_search ends by then

// What a tool may use of its call.
struct Call {
  const std::vector<Workspace> &workspaces;
  tool_kit::Arguments &arguments;
  const std::atomic<bool> &cancelled;
  std::uint64_t deadline_ns;  // CLOCK_MONOTONIC; 0: none

  // The workspace that the arguments name; the first one if they name none.
  const Workspace &workspace() const;
  bool must_stop() const noexcept;
};

std::string file_read(const Call &call);
std::string dir_list(const Call &call);
std::string file_info(const Call &call);
std::string file_search(const Call &call);

struct Tool {
  std::string_view name;
  std::string (*run)(const Call &call);
};
inline constexpr Tool tools[] = {{"file_read", file_read},
                                 {"dir_list", dir_list},
                                 {"file_info", file_info},
                                 {"file_search", file_search}};

// The JSON array for tools/list.
std::string definitions(const std::vector<Workspace> &workspaces);

// "file", "directory", "symlink" or "other", from st_mode.
std::string_view type_name(std::uint32_t mode);

// 2025-11-25T09:30:00Z
std::string utc_time(std::int64_t unix_seconds);

}  // namespace builtin_files
