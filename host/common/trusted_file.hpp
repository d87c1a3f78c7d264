// Reads files that only trusted users, such as root, can have written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// Reads a file of at most `most` bytes. The file and every directory in its path must belong to one
// of `owners` and be writable only by that owner. (If a directory has the sticky bit, others may
// have write permission, because they cannot replace other users' files in it.) Symbolic links are
// not followed.
//
// Returns BH_E_INVALID if the path is not absolute or contains "..", BH_E_NOT_FOUND if the file
// does not exist, BH_E_DENIED if others could have written the file or it is not a regular file,
// BH_E_LIMIT if it is too large, and BH_E_IO if it cannot be read. The error text names the path
// that caused the error.
Result<std::string> read_trusted(const std::string &path, const std::vector<uid_t> &owners,
                                 std::size_t most);

}  // namespace bulkhead::program
