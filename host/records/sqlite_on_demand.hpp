// SQLite, loaded on first use by a command that reads the session database. All compartments run
// the same executable, so a linked library would be mapped into each of them.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library; afterwards the functions of sqlite3.h can be called. Returns BH_E_NOT_FOUND if
// it is not installed. Repeated calls are cheap. A process that calls a function of sqlite3.h
// before the library is loaded exits with the same message. Thread-safe.
Result<void> load_sqlite();

}  // namespace bulkhead::program
