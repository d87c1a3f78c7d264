// SQLite, loaded at the first use by a command that reads the session database. The same executable
// runs in every compartment, and a linked library would be mapped in all of them.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library, after which the functions of sqlite3.h can be called. BH_E_NOT_FOUND: it is
// not installed. Repeated calls are cheap. A function of sqlite3.h that is called before ends the
// process with the same text. Thread: any.
Result<void> load_sqlite();

}  // namespace bulkhead::program
