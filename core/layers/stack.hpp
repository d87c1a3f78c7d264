// The layers of a load on their way into one tree: read, checked against each other, merged.
// Internal to core/profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "corporation/corp_layer.hpp"
#include "corporation/editable.hpp"
#include "layers/project_screen.hpp"
#include "profile/diagnostics.hpp"
#include "profile/layer.hpp"
#include "profile/rule_sections.hpp"

namespace bulkhead::profiles {

class LayerStack {
 public:
  LayerStack(const std::vector<ProfileLayer> &layers, Diagnostics &diagnostics)
      : layers_(layers), diagnostics_(diagnostics), corp_(diagnostics), read_(layers.size()) {}

  // False: there are errors.
  bool merge();

  Node root{Kind::table, {}};
  std::vector<RuleLayer> rules;
  std::vector<Unapproved> unapproved;

  // After merge(): what directives did, and what the layers keep from other changes.
  void report(Profile *profile, std::vector<ProfileHold> *holds) const;

 private:
  struct Layer {
    bool readable = false;  // false: not readable, or part of the next one
    bool v2 = false;
    Node tree;  // canonical
  };

  void read_all();
  void read_detected_layer(std::size_t index);
  void read_switches();
  void read_corp_layer(std::size_t index);
  bool above_corp(std::size_t index) const;
  void keep_corp_dirs();
  bool is_tolerant(std::size_t index) const;
  void add(std::size_t index);
  void leave_out_servers(Node &tree);

  const std::vector<ProfileLayer> &layers_;
  Diagnostics &diagnostics_;
  CorpLayer corp_;
  std::optional<std::size_t> corp_at_;  // from where its directives are known
  std::vector<Node> corp_dirs_;         // its plugin_dirs
  std::vector<Layer> read_;
  std::vector<std::string> listen_addresses_;  // of the transports of all layers
  bool detects_ = false;
  std::string servers_locked_;  // why nobody adds servers; empty: they can be added
};

}  // namespace bulkhead::profiles
