#include "layers/stack.hpp"

#include <algorithm>
#include <utility>

#include "formats/capsem_profile.hpp"
#include "formats/detected.hpp"
#include "layers/canonical.hpp"
#include "profile/parse.hpp"
#include "profile/settings.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kDetects = "detect_servers";
constexpr std::string_view kPluginDirs = "plugin_dirs";

// Reports directives as errors and removes them. Only the corporation's layer may contain them.
void refuse_directives(Node &layer, Diagnostics &diagnostics) {
  for (const Member &member : layer.members)
    if (member.name == "directives")
      diagnostics.error(member.place, "directives",
                        "only the corporation's profile can have directives", kUnknownKey);
  std::erase_if(layer.members, [](const Member &member) { return member.name == "directives"; });
}

}  // namespace

bool LayerStack::merge() {
  read_all();
  read_switches();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].detected) read_detected_layer(i);
    if (read_[i].readable) add(i);
  }
  // Stop after an error: checking an incomplete tree would produce misleading errors.
  if (diagnostics_.failed()) return false;
  keep_corp_dirs();
  corp_.apply(root, &rules);
  return !diagnostics_.failed();
}

void LayerStack::report(Profile *profile, std::vector<ProfileHold> *holds) const {
  std::vector<ProfileHold> all;
  corp_.report(profile, &all);
  for (const ProfileHold &hold : all)
    if (hold.path.front() == "mcpServers") profile->server_holds.push_back(hold);
  // Not added to server_holds, because this lock applies to files but not to servers that plugins
  // or a controlling program add at run time.
  if (!servers_locked_.empty()) all.push_back({{"mcpServers"}, false, servers_locked_});
  if (holds != nullptr) holds->insert(holds->end(), all.begin(), all.end());
}

// Returns true for layers whose errors must not prevent the gateway from starting.
bool LayerStack::is_tolerant(std::size_t index) const {
  const ProfileLayer &layer = layers_[index];
  return layer.lenient || layer.project || layer.detected;
}

// Parses another program's file only if its servers are used.
void LayerStack::read_detected_layer(std::size_t index) {
  if (!detects_ || !servers_locked_.empty()) return;
  Layer &layer = read_[index];
  const auto number = static_cast<std::uint16_t>(index);
  layer.readable = read_detected(layers_[index], number, &layer.tree, diagnostics_);
  if (layer.readable) translate_capsem_keys(layer.tree, false, false, diagnostics_);
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
    layer.v2 = !is_tolerant(i) && is_v2(tree);
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
    // Project definitions are translated later, in add(), because they must first be compared with
    // the approved definitions as written.
    if (!layers_[i].project) translate_capsem_keys(tree, layer.v2, !is_tolerant(i), diagnostics_);
    layer.tree = std::move(tree);
    layer.readable = true;
  }
}

// Reads the keys that determine how other layers are used.
void LayerStack::read_switches() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!read_[i].readable || is_tolerant(i)) continue;
    Node &tree = read_[i].tree;
    add_listens(tree, &listen_addresses_);
    const Node *detects = tree.find(kDetects);
    const bool wanted = detects != nullptr
                            ? diagnostics_.boolean(*detects, std::string(kDetects)).value_or(false)
                            : detects_ || read_[i].v2;
    if (!above_corp(i) || !corp_.holds({std::string(kDetects)})) detects_ = wanted;
    for (const LockedSection &fixed : read_editable(tree, diagnostics_)) {
      if (layers_[i].corp)
        corp_.lock_section(fixed);
      else if (fixed.name == "mcpServers")
        servers_locked_ = "editable.mcpServers is false (" + diagnostics_.origin(fixed.place).file +
                          ":" + std::to_string(fixed.place.line) + ")";
    }
    if (layers_[i].corp) read_corp_layer(i);
  }
}

void LayerStack::read_corp_layer(std::size_t index) {
  Node &tree = read_[index].tree;
  corp_.read_directives(tree, static_cast<std::uint16_t>(index));
  corp_at_ = index;
  const Node *dirs = tree.find(kPluginDirs);
  if (dirs != nullptr && dirs->kind == Kind::array) corp_dirs_ = dirs->items;
}

bool LayerStack::above_corp(std::size_t index) const {
  return corp_at_.has_value() && index > *corp_at_;
}

// If a higher layer has replaced the corporation's plugin folders, inserts them before its own, so
// that they are searched first.
void LayerStack::keep_corp_dirs() {
  for (Member &member : root.members) {
    if (member.name != kPluginDirs || member.value.kind != Kind::array) continue;
    if (!above_corp(member.place.layer)) continue;
    std::vector<Node> &items = member.value.items;
    items.insert(items.begin(), corp_dirs_.begin(), corp_dirs_.end());
  }
}

void LayerStack::leave_out_servers(Node &tree) {
  for (const Member &section : tree.members) {
    if (section.name != "mcpServers") continue;
    for (const Member &entry : section.value.members)
      diagnostics_.note(entry.place,
                        "server " + in_quotes(entry.name) + " is skipped: " + servers_locked_);
  }
  std::erase_if(tree.members, [](const Member &member) { return member.name == "mcpServers"; });
}

void LayerStack::add(std::size_t index) {
  const ProfileLayer &layer = layers_[index];
  const auto number = static_cast<std::uint16_t>(index);
  Node tree = std::move(read_[index].tree);
  // In a project file, screen_project() drops directives together with all other sections.
  if (!layer.corp && !layer.project) refuse_directives(tree, diagnostics_);
  if (above_corp(index)) corp_.screen(tree, root, is_tolerant(index));
  if (is_tolerant(index) && !servers_locked_.empty()) leave_out_servers(tree);
  if (layer.project) {
    tree =
        screen_project(std::move(tree), layer, root, listen_addresses_, &unapproved, diagnostics_);
    translate_capsem_keys(tree, false, false, diagnostics_);
  }
  if (layer.detected) screen_detected(tree, root, listen_addresses_, diagnostics_);
  collect_rules(tree, number, &rules);
  keep_revocations(root, &tree);
  merge_layer(root, std::move(tree));
}

}  // namespace bulkhead::profiles
