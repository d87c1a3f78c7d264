// Files that only an administrator can have written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// Reads the whole file, at most `most` bytes. The file and every folder of its path must belong to
// one of `owners` and be writable by their owner only (a folder with the sticky bit also by others,
// who cannot replace files of other users). No link is followed. `path` is absolute.
//
// BH_E_NOT_FOUND: no such file. BH_E_DENIED: others could have written it, or it is not a regular
// file. BH_E_LIMIT: too large. BH_E_IO: not readable. The text names the fault and its path.
Result<std::string> read_trusted(const std::string &path, const std::vector<uid_t> &owners,
                                 std::size_t most);

}  // namespace bulkhead::program
