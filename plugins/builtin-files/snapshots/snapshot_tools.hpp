// Declares the snapshot tools. The Call passed to a snapshot tool must have snapshot stores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "builtin-files/snapshots/store.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

inline constexpr std::uint64_t snapshot_ms =
    600'000;  // time limit for a call; the deadline of the call may be earlier

std::string snapshots_create(const Call &call);
std::string snapshots_delete(const Call &call);
std::string snapshots_list(const Call &call);
std::string snapshots_compact(const Call &call);
std::string snapshots_changes(const Call &call);
std::string snapshots_revert(const Call &call);
std::string snapshots_history(const Call &call);

inline constexpr Tool snapshot_tools[] = {{"snapshots_create", snapshots_create, false},
                                          {"snapshots_delete", snapshots_delete, false},
                                          {"snapshots_list", snapshots_list, false},
                                          {"snapshots_compact", snapshots_compact, false},
                                          {"snapshots_changes", snapshots_changes, false},
                                          {"snapshots_history", snapshots_history, false},
                                          {"snapshots_revert", snapshots_revert, true}};

// Returns the definitions of the snapshot tools for tools/list, separated by commas.
std::string snapshot_definitions(const std::vector<Workspace> &workspaces);

// ---- shared helpers --------------------------------------------------------------------------

// Returns the store of the workspace that the call selects.
SnapshotStore &store_of(const Call &call);
SnapshotStore &store_to_change(const Call &call);

// Returns true if `name` consists of 1 to 64 letters, digits, "_" and "-".
bool is_snapshot_name(std::string_view name) noexcept;

// Returns the age of a snapshot, such as "just now", "1 min ago" or "2 hr ago".
std::string age_of(const Head &head);

// Normalizes a path argument: removes "." components, repeated slashes and a trailing slash.
std::string plain_path(std::string_view path);

// Returns up to `length` bytes of `text` from offset `start`, but at least one character. If text
// remains, appends a line with the start_index of the next page.
std::string page_of(std::string_view text, std::uint64_t start, std::uint64_t length);

// Takes an automatic snapshot. Returns the error, or an empty string on success.
std::string take_automatic(const Call &call, SnapshotStore *store);

}  // namespace builtin_files
