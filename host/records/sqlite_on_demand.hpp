// SQLite for the commands that read the session database, loaded when the first of them needs it.
// The program is also that of every compartment; a library that it links would be mapped in all of
// them, whatever they parse.
#pragma once

#include "base/result.hpp"

namespace bulkhead::program {

// Loads the library; after that the functions of sqlite3.h work. BH_E_NOT_FOUND: it is not
// installed. Cheap when it is loaded already. Thread: any. A function of sqlite3.h that is called
// before ends the process with the same text.
Result<void> load_sqlite();

}  // namespace bulkhead::program
