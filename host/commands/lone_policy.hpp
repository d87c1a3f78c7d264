// Loads one of the profile's policy plugins without a gateway, to explain its decisions.
//
// Used on one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/instance.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

// The plugin is configured but never started. The const functions, except warnings(), id() and
// name(), must be called only after load() has succeeded.
class LonePolicy {
 public:
  // Loads and configures the plugin. Returns one line for each error.
  std::vector<std::string> load(const PluginUse &use, const Profile &profile);
  // Returns one line for each warning about the plugin's configuration.
  const std::vector<std::string> &warnings() const { return warnings_; }
  // Returns true if the plugin implements bh.explain/1.
  bool explains() const;
  // Returns the data that the plugin needs, as BH_POLICY_... flags.
  std::uint32_t needs() const;
  // Calls the plugin's bh_explain.explain(). `call` and the result are JSON. Returns
  // BH_E_UNSUPPORTED if the plugin cannot explain its decisions.
  Result<std::string> explain(std::string_view call) const;
  const std::string &id() const { return id_; }      // ID in the profile
  const std::string &name() const { return name_; }  // name of the plugin

 private:
  std::string id_, name_;
  std::vector<std::string> mistakes_, warnings_;
  std::unique_ptr<Reactor> reactor_;
  HostContext context_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace bulkhead::program
