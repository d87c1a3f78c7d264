// Declares the file tools. Each tool runs on a thread of the host's pool and returns the `result`
// of its call as JSON. Errors are returned as results with isError.
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

inline constexpr std::uint64_t max_text_bytes = 1u << 20;   // file content per response
inline constexpr std::size_t max_entries = 2000;            // per dir_list or dir_tree call
inline constexpr std::uint64_t max_matches = 1000;          // per file_search call
inline constexpr std::size_t max_wanted_bytes = 4096;       // length of a searched string
inline constexpr std::uint64_t max_edit_bytes = 16u << 20;  // maximum file size for file_edit
inline constexpr mode_t new_file_mode = 0644;
inline constexpr std::uint64_t tool_ms = 10'000;  // time limit for a call of one of these tools

class SnapshotStore;

// State for reporting the progress of a call.
struct Progress {
  std::function<void(double done, double total, std::string_view unit)> send;
  std::uint64_t next_ns;  // earliest time of the next report (monotonic)
  std::uint64_t between_ns = 500'000'000;
  double base = 0;  // progress at the start of the current phase
  double last = 0;  // latest progress value, even if it was not sent
};

// The context in which a tool executes a call.
struct Call {
  const std::vector<Workspace> &workspaces;
  tool_kit::Arguments &arguments;
  const std::atomic<bool> &cancelled;
  std::uint64_t deadline_ns;                   // monotonic clock; 0 if the call has no deadline
  std::vector<std::string> *events = nullptr;  // for BH_RECORD_FS records
  std::vector<std::string> *snapshot_events = nullptr;  // for BH_RECORD_SNAPSHOT records
  Progress *progress = nullptr;
  // One store per workspace; empty or null if snapshots are disabled.
  const std::vector<std::unique_ptr<SnapshotStore>> *snapshots = nullptr;

  // Returns the workspace that is selected by the arguments. The default is the first workspace.
  const Workspace &workspace() const;
  // Like workspace(), but considers only writable workspaces. At least one workspace must be
  // writable.
  const Workspace &workspace_to_change() const;
  bool must_stop() const noexcept;
  // Explains why must_stop() returned true.
  std::string_view stop_reason() const noexcept;
  // Reports progress at intervals, beginning one second after the call started. `total` is 0 if
  // unknown. `unit` is "files" or "bytes".
  void report(double done, double total, std::string_view unit = "files") const;
  // Starts a new phase. The arguments of report() restart at 0, but the progress sent to the client
  // continues to increase.
  void next_phase() const noexcept;
  // Records a change. `action` is "created", "modified", "deleted" or "restored". `size` is in
  // bytes.
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

// Returns the tool definitions as a JSON array for tools/list.
std::string definitions(const std::vector<Workspace> &workspaces);

// Returns the error message for a workspace whose write_bytes limit is reached.
std::string budget_problem(const Workspace &workspace);

// Returns the name of a file type: "file", "directory", "symlink" or "other". `mode` is st_mode.
std::string_view type_name(std::uint32_t mode);

// Returns a UTC timestamp such as 2025-11-25T09:30:00Z.
std::string utc_time(std::int64_t unix_seconds);

// Returns the JSON object of a list entry without the closing brace, so members can be added:
// {"KEY":name,"type":...,"size":...,"modified":...
std::string entry_json(std::string_view key, const std::string &name, const struct stat &s);
// Formats a list entry as one line: "name  12 bytes  TIME".
std::string entry_line(const std::string &name, const struct stat &s);

}  // namespace builtin_files
