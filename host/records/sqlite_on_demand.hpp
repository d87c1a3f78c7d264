// Loads SQLite when a command reads the session database for the first time. All compartments run
// the same executable, so a library that is linked with it would be mapped into each of them.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library. Returns BH_E_NOT_FOUND if it is not installed. Must be called before the
// functions in sqlite3.h: they also load the library, but terminate the process with an error
// message if it is not installed. Thread-safe. Repeated calls are cheap.
Result<void> load_sqlite();

}  // namespace bulkhead::program
