#include "profile/stack.hpp"

#include <algorithm>
#include <utility>

#include "profile/detected.hpp"
#include "profile/layers.hpp"
#include "profile/parse.hpp"
#include "profile/v2.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kDetects = "detect_servers";

// The corporation alone has directives.
void refuse_directives(Node &layer, Diagnostics &diagnostics) {
  for (const Member &member : layer.members)
    if (member.name == "directives")
      diagnostics.error(member.place, "directives", "only the corporation's profile has directives",
                        kUnknownKey);
  std::erase_if(layer.members, [](const Member &member) { return member.name == "directives"; });
}

}  // namespace

bool LayerStack::merge() {
  read_all();
  look_at_switches();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].detected) read_detected_layer(i);
    if (read_[i].there) add(i);
  }
  // What is left of a broken file would only produce errors that follow from the first.
  if (diagnostics_.failed()) return false;
  corp_.apply(root, &rules);
  return !diagnostics_.failed();
}

void LayerStack::report(Profile *profile, std::vector<ProfileHold> *holds) const {
  corp_.report(profile, holds);
  if (holds != nullptr && !fixed_.empty()) holds->push_back({{"mcpServers"}, false, fixed_});
}

// One that is no person's own file: what is wrong with it must not stop the gateway.
bool LayerStack::gives_way(std::size_t index) const {
  const ProfileLayer &layer = layers_[index];
  return layer.lenient || layer.project || layer.detected;
}

// Other programs' files are nobody's business where they are not used.
void LayerStack::read_detected_layer(std::size_t index) {
  if (!detects_ || !fixed_.empty()) return;
  Layer &layer = read_[index];
  const auto number = static_cast<std::uint16_t>(index);
  layer.there = read_detected(layers_[index], number, &layer.tree, diagnostics_);
  if (layer.there) take_capsem_keys(layer.tree, false, false, diagnostics_);
}

void LayerStack::read_all() {
  Node base;
  bool extends = false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer &layer = read_[i];
    Node tree;
    if (layers_[i].detected ||
        !parse_layer(layers_[i], static_cast<std::uint16_t>(i), {}, &tree, diagnostics_))
      continue;
    layer.v2 = !gives_way(i) && is_v2(tree);
    if (layer.v2) tree = from_v2(std::move(tree), layers_[i].corp, diagnostics_);
    tree = canonical_layer(std::move(tree), layers_[i], diagnostics_);
    if (extends) {
      const Place place = tree.place;
      merge_extended(base, std::move(tree));
      tree = std::move(base);
      tree.place = place;
    }
    extends = layers_[i].extended;
    if (extends) {
      base = std::move(tree);
      continue;
    }
    // A project's definitions are compared with what was approved as they were written.
    if (!layers_[i].project) take_capsem_keys(tree, layer.v2, !gives_way(i), diagnostics_);
    layer.tree = std::move(tree);
    layer.there = true;
  }
}

// What says how other layers are used is looked at before any of them is.
void LayerStack::look_at_switches() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!read_[i].there || gives_way(i)) continue;
    Node &tree = read_[i].tree;
    add_listens(tree, &listens_);
    detects_ = detects_ || read_[i].v2;
    if (const Node *detects = tree.find(kDetects))
      detects_ = diagnostics_.boolean(*detects, std::string(kDetects)).value_or(false);
    for (const Fixed &fixed : read_editable(tree, diagnostics_)) {
      if (layers_[i].corp)
        corp_.fix(fixed);
      else if (fixed.name == "mcpServers")
        fixed_ = "editable.mcpServers is false (" + diagnostics_.origin(fixed.place).file + ":" +
                 std::to_string(fixed.place.line) + ")";
    }
  }
}

void LayerStack::leave_out_servers(Node &tree) {
  for (const Member &section : tree.members) {
    if (section.name != "mcpServers") continue;
    for (const Member &entry : section.value.members)
      diagnostics_.note(entry.place, "server " + in_quotes(entry.name) + " is left out: " + fixed_);
  }
  std::erase_if(tree.members, [](const Member &member) { return member.name == "mcpServers"; });
}

void LayerStack::add(std::size_t index) {
  const ProfileLayer &layer = layers_[index];
  const auto number = static_cast<std::uint16_t>(index);
  Node tree = std::move(read_[index].tree);
  if (layer.corp) {
    corp_.take(tree, number);
  } else {
    refuse_directives(tree, diagnostics_);
    corp_.screen(tree, root, gives_way(index));
  }
  if (gives_way(index) && !fixed_.empty()) leave_out_servers(tree);
  if (layer.project) {
    tree = screen_project(std::move(tree), layer, root, &unapproved, diagnostics_);
    take_capsem_keys(tree, false, false, diagnostics_);
  }
  if (layer.detected) screen_detected(tree, root, listens_, diagnostics_);
  collect_rules(tree, number, &rules);
  merge_layer(root, std::move(tree));
}

}  // namespace bulkhead::profiles
