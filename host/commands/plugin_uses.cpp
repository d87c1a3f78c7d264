#include "commands/plugin_uses.hpp"

#include <vector>

namespace bulkhead::program {

std::map<std::string, std::string> uses_of(const Profile &profile) {
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string &plugin, const std::string &what) {
    std::string &text = out[plugin];
    text += (text.empty() ? "" : ", ") + what;
  };
  const auto add_all = [&](const std::vector<PluginUse> &uses, const std::string &section) {
    for (const auto &use : uses) add(use.plugin, section + "." + use.id);
  };
  add_all(profile.transports, "transports");
  add_all(profile.tools, "tools");
  add_all(profile.policies, "policies");
  add_all(profile.telemetry, "telemetry");
  add_all(profile.services, "services");
  for (const auto &[type, plugin] : profile.connectors) add(plugin, "servers of type " + type);
  return out;
}

}  // namespace bulkhead::program
