// SQLite, loaded on first use by a command that reads the session database. Every compartment runs
// the same executable, and a linked library would be mapped into all of them.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library; afterwards the functions of sqlite3.h can be called. Returns BH_E_NOT_FOUND if
// it is not installed. Repeated calls are cheap. If a function of sqlite3.h is called before the
// library is loaded, the process ends with the same message. Thread-safe.
Result<void> load_sqlite();

}  // namespace bulkhead::program
