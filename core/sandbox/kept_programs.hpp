// Prevents servers from changing the files that the gateway executes. A changed executable or
// plugin would run outside every sandbox the next time it is started or loaded.
#pragma once

#include <string>
#include <vector>

#include "sandbox/path_walk.hpp"
#include "sandbox/same_mounts.hpp"
#include "sandbox/view_steps.hpp"

namespace bulkhead {

// Makes the programs, which are absolute paths of files and folders, read-only where a step makes
// them writable. A file's folder becomes read-only too, unless the definition grants exactly that
// folder: a mount on the file alone would disappear if another program (such as a compiler)
// replaced the file. A folder that contains a link to a program, or in which a missing program
// could be created, also becomes read-only. Must be called after all paths have been granted. Adds
// a note if it changes a step. If a program cannot be found because the budget is used up, the
// server must not start.
void keep_programs(const std::vector<std::string> &programs, const MountTable &mounts,
                   ViewSteps *steps, std::vector<std::string> *notes, WalkBudget *budget);

}  // namespace bulkhead
