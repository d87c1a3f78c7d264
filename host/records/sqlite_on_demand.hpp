// Loads SQLite when a command first reads the session database. All compartments run the same
// executable, so linking the library would map it into each of them.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library. Afterwards, the functions of sqlite3.h can be called; a call before that
// terminates the process with an error message. Returns BH_E_NOT_FOUND if the library is not
// installed. Thread-safe. Repeated calls are cheap.
Result<void> load_sqlite();

}  // namespace bulkhead::program
