// Completes the steps of a planned view (child_view.hpp).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/child_view.hpp"

namespace bulkhead {

// The steps by path, so each folder precedes its contents.
using ViewSteps = std::map<std::string, ViewStep, std::less<>>;

// Returns the step that determines whether a path is visible, which is the step for the path itself
// or for its nearest parent. Returns null if there is none.
const ViewStep *nearest_step(const ViewSteps &steps, std::string_view path);

// Returns the folders to mirror so that `places` stay hidden. For a place in one of `tops`, these
// are all folders between them, including the top. For other places, it is only the nearest
// existing parent. `tops` are the home directories, and other folders that are treated like them.
std::set<std::string> folders_to_mirror(const std::vector<std::string> &tops,
                                        const std::set<std::string> &places);

inline constexpr std::size_t most_mirrored = 4096;  // maximum visible entries of a mirrored folder

// Adds steps that show the entries of a mirrored folder, except sockets, hidden paths that are not
// named links, entries that have a step, and other spellings of these paths in a folder that
// ignores case. Returns the number of entries beyond most_mirrored, which are not shown.
std::size_t add_entries(const std::string &folder, const std::set<std::string> &hidden,
                        const std::set<std::string> &named_links, ViewSteps *steps);

// Prevents a server from moving away a hidden or read-only path in a folder that it can change, by
// renaming one of the path's parents: mounts each parent onto itself, because a mount point cannot
// be renamed or removed. Files cannot be renamed from one such parent to another (EXDEV). Returns
// the reason if this would need more than ChildView::most_pins mounts, otherwise an empty string.
std::string pin_parents(ViewSteps *steps);

// Moves the steps to the view, in the order in which they are applied: each folder precedes its
// contents. As a result, secrets in a granted folder stay hidden, and a path granted in a hidden
// folder is visible. Creates mount targets in the server's private cache folders.
void order_steps(ViewSteps *steps, ChildView *view);

}  // namespace bulkhead
