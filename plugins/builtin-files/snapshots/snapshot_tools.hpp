// The tools for snapshots; see tools.hpp. Each needs a Call with stores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "builtin-files/snapshots/store.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

inline constexpr std::uint64_t snapshot_ms =
    600'000;  // a call ends by then, or by its own deadline

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

// For tools/list, like definitions(): objects with commas between them.
std::string snapshot_definitions(const std::vector<Workspace> &workspaces);

// ---- what several of them need ---------------------------------------------------------------

// The store of the workspace that the call names.
SnapshotStore &store_of(const Call &call);
SnapshotStore &store_to_change(const Call &call);

// 1 to 64 of letters, digits, "_" and "-".
bool is_snapshot_name(std::string_view name) noexcept;

// "just now", "1 min ago", "5 min ago", "2 hr ago".
std::string age_of(const Head &head);

// As tools take paths, without "./", "//" and "/" at the end.
std::string plain_path(std::string_view path);

// A part of a long text, with a line behind it that says how to get the next one.
std::string page_of(std::string_view text, std::uint64_t start, std::uint64_t length);

// An automatic snapshot, for who waits for no answer. Empty, or why there is none.
std::string take_automatic(const Call &call, SnapshotStore *store);

}  // namespace builtin_files
