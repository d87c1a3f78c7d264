// Creates the source tree of a new plugin from a template of the SDK.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

struct NewPlugin {
  std::string templates;  // the folder of the templates, which has a folder KIND-LANG for each
  std::string target;     // the folder to create; it may exist if it is empty
  std::string kind;       // tools, policy, telemetry, connector or transport
  std::string language;   // "c" or "c++"
  std::string name;       // the plugin's ID
};

// Returns an error if a new plugin cannot have this name. A name is a plugin ID that begins with a
// letter, and is not reserved by CMake or by Bulkhead.
Result<void> check_plugin_name(std::string_view name);

// Copies the template to the target folder, and renames the plugin in the copy. Returns the names
// of the files, sorted. No existing file is changed. If an error occurs, everything that was
// created is removed. Returns BH_E_INVALID if the kind, the language or the name is invalid.
Result<std::vector<std::string>> create_plugin(const NewPlugin &wanted);

}  // namespace bulkhead::program
