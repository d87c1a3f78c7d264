// Expands variable references in values. Internal to the profile libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

enum class ExpandMode : std::uint8_t {
  all,       // also expands ${NAME}; any other "${" is an error
  env_only,  // expands only ${env:NAME} and ${secret:NAME}; other "${" are kept (a plugin's syntax)
  inputs,    // expands only ${input:ID}; other "${" are kept
};

struct Expanded {
  struct Problem {
    std::string what;
    bool missing = false;  // the variable is not set, or its value is not text
    bool asked = false;    // an editor would prompt for the value
  };
  std::string text;
  bool referred = false;  // the text contained a reference, so the result must never be shown
  std::vector<Problem> problems;
};

// Expands references in one pass: the values of variables are not expanded again. Problems contain
// variable names, never values. ${input:ID} reads the variable that variable_for() returns for
// `server`.
Expanded expand(std::string_view text, ExpandMode mode, const ProfileEnvironment &environment,
                std::string_view server = {});

}  // namespace bulkhead::profiles
