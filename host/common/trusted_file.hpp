// Files that only an administrator can have written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

// The whole file, of at most `most` bytes. It and every folder on its way belong to one of `owners`
// and can be written by their owner only (a folder with the sticky bit also by others, who cannot
// replace what is not theirs). No link is followed. `path` is absolute.
//
// BH_E_NOT_FOUND: there is no such file; BH_E_DENIED: others could have written it, or it is no
// regular file; BH_E_LIMIT: larger; BH_E_IO: not readable. The text names what is wrong and where.
Result<std::string> read_trusted(const std::string &path, const std::vector<uid_t> &owners,
                                 std::size_t most);

}  // namespace bulkhead::program
