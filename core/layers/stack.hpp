// Parses the layers of a profile, checks them against each other, and merges them into one tree.
// Internal to core/layers.
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

  // Returns false if errors were reported.
  bool merge();

  Node root{Kind::table, {}};
  std::vector<RuleLayer> rules;
  std::vector<Unapproved> unapproved;

  // Reports the effects of the directives, and stores which parts of the profile the layers
  // protect. Must be called after merge().
  void report(Profile *profile, std::vector<ProfileHold> *holds) const;

 private:
  struct Layer {
    // false if the file was not read or could not be parsed, or was merged into the next layer
    bool readable = false;
    bool v2 = false;
    Node tree;  // in canonical form
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
  std::optional<std::size_t> corp_at_;  // index of the corporation's layer, once it has been read
  std::vector<Node> corp_dirs_;         // plugin_dirs of the corporation's layer
  std::vector<Layer> read_;
  // The listening addresses of transports, from all layers that are not tolerant.
  std::vector<std::string> listen_addresses_;
  bool detects_ = false;
  std::string servers_locked_;  // why tolerant layers cannot add servers; empty: they can
};

}  // namespace bulkhead::profiles
