// References to variables in values. Internal to core/profile.
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
    bool missing = false;  // a variable that is not set, or not text
    bool asked = false;    // it is one that an editor would ask a person for
  };
  std::string text;
  bool referred = false;  // the text held a reference: never show the result
  std::vector<Problem> problems;
};

// One pass: what a variable holds is not looked at again. The problems name variables, never
// values. An editor's ${input:ID} is the variable that variable_for() names for `server`.
Expanded expand(std::string_view text, ExpandMode mode, const ProfileEnvironment &environment,
                std::string_view server = {});

}  // namespace bulkhead::profiles
