#include "layers/load.hpp"

#include <algorithm>
#include <utility>

#include "layers/canonical.hpp"
#include "layers/project_screen.hpp"
#include "layers/stack.hpp"
#include "profile/revision.hpp"
#include "profile/rule_sections.hpp"
#include "profile/sections.hpp"
#include "profile/show.hpp"

namespace bulkhead {

std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment,
    std::vector<ProfileHold> *holds) {
  using namespace profiles;
  Diagnostics diagnostics(layers);
  LayerStack stack(layers, diagnostics);
  if (!stack.merge()) return diagnostics.take_errors();
  Profile profile;
  for (const ProfileLayer &layer : layers) {
    // Servers must not be able to read profile files, which may contain credentials. A project file
    // stays readable, because it belongs to the repository that the servers work on, and so does
    // the file of a detected layer, which belongs to another program. The layer of an option, such
    // as --listen, has the option's name instead of a file.
    const bool is_file = !layer.file.empty() && !layer.file.starts_with("--");
    if (is_file && !layer.project && !layer.detected) profile.own_paths.push_back(layer.file);
    profile.own_paths.insert(profile.own_paths.end(), layer.absent.begin(), layer.absent.end());
  }
  Context context{environment, diagnostics, profile};
  read_profile(stack.root, stack.rules, context);
  if (diagnostics.failed()) return diagnostics.take_errors();
  show(stack.root, context);
  add_unapproved(stack.unapproved, context);
  stack.report(&profile, holds);
  profile.notes = diagnostics.take_notes();
  return profile;
}

}  // namespace bulkhead
