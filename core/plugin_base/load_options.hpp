// Builds the options with which a profile's plugins are loaded. Every process that loads plugins
// uses these functions, so that none of them omits a check.
#pragma once

#include "plugin/loader.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// For a plugin that the profile does not pin, such as a connector.
inline LoadOptions load_options(const Profile &profile) {
  LoadOptions out;
  out.dirs = profile.plugin_dirs;
  out.init_timeout_ms = profile.limits.plugin_init_ms;
  out.trust = profile.plugin_trust;
  return out;
}

// For library_of(use).
inline LoadOptions load_options(const Profile &profile, const PluginUse &use) {
  LoadOptions out = load_options(profile);
  out.sha256 = digest_of(use);
  out.is_program_copy = !use.file.path.empty() && use.file.is_program_copy;
  return out;
}

}  // namespace bulkhead
