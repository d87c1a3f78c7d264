// Reads files that only an administrator can have written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// Reads a complete file of at most `most` bytes. The file and every folder in its path must belong
// to one of `owners` and be writable only by their owner. (A folder with the sticky bit may also be
// writable by others, since they cannot replace files of other users.) Links are not followed.
// `path` must be absolute.
//
// Returns BH_E_NOT_FOUND if there is no such file, BH_E_DENIED if others could have written it or
// it is not a regular file, BH_E_LIMIT if it is too large, and BH_E_IO if it is not readable. The
// error names the fault and its path.
Result<std::string> read_trusted(const std::string &path, const std::vector<uid_t> &owners,
                                 std::size_t most);

}  // namespace bulkhead::program
