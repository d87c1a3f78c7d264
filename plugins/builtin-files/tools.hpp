// Each tool runs on a thread of the host's pool and returns the `result` of its call as JSON. An
// error is returned as a result with isError.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/workspace.hpp"
#include "tool-kit/arguments.hpp"

namespace builtin_files {

inline constexpr std::uint64_t max_text_bytes = 1u << 20;   // file content in one answer
inline constexpr std::size_t max_entries = 2000;            // per call of dir_list or dir_tree
inline constexpr std::uint64_t max_matches = 1000;          // per call of file_search
inline constexpr std::size_t max_wanted_bytes = 4096;       // length of the searched text
inline constexpr std::uint64_t max_edit_bytes = 16u << 20;  // file size for file_edit
inline constexpr mode_t new_file_mode = 0644;
inline constexpr std::uint64_t tool_ms = 10'000;  // time limit for a call of the tools above

class SnapshotStore;

// Progress reports for a call.
struct Progress {
  std::function<void(double done, double total, std::string_view unit)> send;
  std::uint64_t next_ns;  // earliest time of the next report
  std::uint64_t between_ns = 500'000'000;
  double base = 0;  // sum of the finished phases
  double last = 0;  // the latest value, whether reported or not
};

// The data that a tool needs to execute a call.
struct Call {
  const std::vector<Workspace> &workspaces;
  tool_kit::Arguments &arguments;
  const std::atomic<bool> &cancelled;
  std::uint64_t deadline_ns;                            // CLOCK_MONOTONIC; 0 if there is none
  std::vector<std::string> *events = nullptr;           // details of BH_RECORD_FS records
  std::vector<std::string> *snapshot_events = nullptr;  // details of BH_RECORD_SNAPSHOT records
  Progress *progress = nullptr;
  // One store per workspace; empty if snapshots are disabled.
  const std::vector<std::unique_ptr<SnapshotStore>> *snapshots = nullptr;

  // Returns the workspace named in the arguments, or the first workspace by default.
  const Workspace &workspace() const;
  // Like workspace(), but only for writable workspaces. Tools that call this function are offered
  // only if a workspace is writable.
  const Workspace &workspace_to_change() const;
  bool must_stop() const noexcept;
  // Returns the reason why must_stop() returned true.
  std::string_view stop_reason() const noexcept;
  // Reports progress at intervals, starting one second after the call began. `total` is 0 if
  // unknown. `unit` is "files" or "bytes". Runs on the thread of the call.
  void report(double done, double total, std::string_view unit = "files") const;
  // Begins a new phase: the arguments of report() restart at 0, but the reported values continue to
  // grow.
  void next_phase() const noexcept;
  // Records a change. `action` is "created", "modified", "deleted" or "restored".
  void note(std::string_view action, std::string_view path, std::uint64_t size) const;
};

std::string file_read(const Call &call);
std::string dir_list(const Call &call);
std::string dir_tree(const Call &call);
std::string file_info(const Call &call);
std::string file_search(const Call &call);
std::string file_write(const Call &call);
std::string file_edit(const Call &call);
std::string file_move(const Call &call);
std::string file_delete(const Call &call);

struct Tool {
  std::string_view name;
  std::string (*run)(const Call &call);
  bool changes;  // offered only if a workspace is writable
};
inline constexpr Tool tools[] = {
    {"file_read", file_read, false},     {"dir_list", dir_list, false},
    {"dir_tree", dir_tree, false},       {"file_info", file_info, false},
    {"file_search", file_search, false}, {"file_write", file_write, true},
    {"file_edit", file_edit, true},      {"file_move", file_move, true},
    {"file_delete", file_delete, true}};

// Returns the JSON array for tools/list.
std::string definitions(const std::vector<Workspace> &workspaces);

// Returns the error message for a workspace whose write_bytes limit is exhausted.
std::string budget_problem(const Workspace &workspace);

// Returns the name of the file type in an st_mode: "file", "directory", "symlink" or "other".
std::string_view type_name(std::uint32_t mode);

// Returns a time in UTC as a string, such as 2025-11-25T09:30:00Z.
std::string utc_time(std::int64_t unix_seconds);

// Returns one list entry without the closing brace:
// {"KEY":name,"type":...,"size":...,"modified":...
std::string entry_json(std::string_view key, const std::string &name, const struct stat &s);
// Formats the entry as one line: "name  12 bytes  TIME".
std::string entry_line(const std::string &name, const struct stat &s);

}  // namespace builtin_files
