// JSON as values, read in place.
#pragma once

#include <rapidjson/document.h>

#include "value.hpp"

namespace bulkhead::cel {

// Points into `json`, which must outlive it. A number is an int if it fits, else a uint if it fits,
// else a double (JSON's 5.0 is a double, too; == and < compare numbers across kinds). Of a key that
// stands twice the first counts: refuse such a text before. Bound the depth when parsing: comparing
// values that nest deeper than 256 ends an evaluation with an error.
Value json_value(const rapidjson::Value &json);

}  // namespace bulkhead::cel
