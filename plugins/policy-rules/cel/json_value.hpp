// JSON values that expressions read in place.
#pragma once

#include <rapidjson/document.h>

#include "value.hpp"

namespace bulkhead::cel {

// The result refers to `json`, which must outlive it. A number becomes an int if it fits, else a
// uint if it fits, else a double. (5.0 in JSON is also a double; == and < compare numbers of
// different types.) If a key is duplicated, the first is used; the caller should reject duplicate
// keys. The caller must limit the depth when parsing: comparing values nested deeper than 256
// levels ends the evaluation with an error.
Value json_value(const rapidjson::Value &json);

}  // namespace bulkhead::cel
