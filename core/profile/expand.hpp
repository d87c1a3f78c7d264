// References to variables in values. Internal to the rooms of profiles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::profiles {

enum class ExpandMode : std::uint8_t {
  all,       // ${NAME} too; everything else that begins with "${" is an error
  env_only,  // ${env:NAME} and ${secret:NAME} only; other "${" pass (a plugin's own syntax)
  inputs,    // ${input:ID} only; other "${" pass
};

struct Expanded {
  struct Problem {
    std::string what;
    bool missing = false;  // the variable is not set, or its value is not text
    bool asked = false;    // an editor would prompt for it
  };
  std::string text;
  bool referred = false;  // the text held a reference: never show the result
  std::vector<Problem> problems;
};

// One pass: values of variables are not expanded again. Problems contain names of variables, never
// values. ${input:ID} reads the variable that variable_for() names for `server`.
Expanded expand(std::string_view text, ExpandMode mode, const ProfileEnvironment &environment,
                std::string_view server = {});

}  // namespace bulkhead::profiles
