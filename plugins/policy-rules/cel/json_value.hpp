// Converts JSON values to CEL values without copying them.
#pragma once

#include <rapidjson/document.h>

#include "value.hpp"

namespace bulkhead::cel {

// Returns a CEL value that refers to `json`. `json` must outlive the CEL value. A number becomes an
// int if it fits into an int, otherwise a uint if it fits into a uint, and otherwise a double. 5.0
// becomes a double, but == and < compare numbers of different types by value. If an object has
// duplicate keys, a lookup finds the first one, but size(), == and macros include all of them, so
// the caller should reject such objects. The caller must also limit the nesting depth, because
// comparing values that are nested deeper than 256 levels is an evaluation error.
Value json_value(const rapidjson::Value &json);

}  // namespace bulkhead::cel
