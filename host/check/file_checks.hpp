// The rules about a plugin's files. None of the plugin's code runs.
#pragma once

#include <optional>
#include <string>

#include "check/report.hpp"
#include "plugin/loader.hpp"

namespace bulkhead::check {

// Checks the library in `path` and its manifest. Returns the verified library, or nothing if a host
// would not map it; the report then says why.
std::optional<CheckedLibrary> check_files(const std::string &path, Report *report);

}  // namespace bulkhead::check
