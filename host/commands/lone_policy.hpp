// A policy of the profile without a gateway: it is asked what it would decide, and decides nothing.
//
// Thread: one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/instance.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

// Configured, never started.
class LonePolicy {
 public:
  // Empty: it has taken its configuration. Else every mistake, a line each.
  std::vector<std::string> load(const PluginUse &use, const Profile &profile);
  // What it has found while it took its configuration, a line each; it works all the same.
  const std::vector<std::string> &warnings() const { return warnings_; }
  // Can it say why it decides what it does?
  bool explains() const;
  // What it judges: BH_POLICY_... bits.
  std::uint32_t needs() const;
  // bh_explain.explain(): `call` and the answer are JSON. BH_E_UNSUPPORTED: it cannot.
  Result<std::string> explain(std::string_view call) const;
  const std::string &id() const { return id_; }      // as the profile calls it
  const std::string &name() const { return name_; }  // of the plugin

 private:
  std::string id_, name_;
  std::vector<std::string> mistakes_, warnings_;
  std::unique_ptr<Reactor> reactor_;
  HostContext context_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace bulkhead::program
