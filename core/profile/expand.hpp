// Expands variable references in values. Internal to the profile libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

enum class ExpandMode : std::uint8_t {
  all,  // expands ${env:NAME}, ${NAME} and ${input:ID}; any other "${" is an error
  // Expands only ${env:NAME}. ${secret:NAME} is an error. Any other "${" is kept, because it is
  // part of the plugin's syntax.
  env_only,
  inputs,  // expands only ${input:ID}; keeps any other "${"
};

struct Expanded {
  struct Problem {
    std::string what;
    bool missing = false;  // the variable is unset (except for ${input:ID}) or not UTF-8
    bool asked = false;    // the variable for an ${input:ID} is unset
  };
  std::string text;
  // True if the text contained a reference. The result must then not be displayed.
  bool referred = false;
  std::vector<Problem> problems;
};

// Expands references in one pass: references in the values of variables are not expanded. Problems
// contain variable names but never values. ${input:ID} is replaced with the value of the
// environment variable whose name is variable_for(server, ID).
Expanded expand(std::string_view text, ExpandMode mode, const ProfileEnvironment &environment,
                std::string_view server = {});

}  // namespace bulkhead::profiles
