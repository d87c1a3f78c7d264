// Tools whose definition is not the one that was approved: noted when they are listed, and, where
// the profile says so, neither shown nor called.
#include <string>
#include <utility>

#include "route/router.hpp"

namespace bulkhead {
namespace {

std::string described(const PinNews &news) {
  const ToolPin &pin = news.pin;
  std::string text = "server \"" + pin.server + "\": tool \"" + pin.tool + "\" ";
  if (!pin.renamed_from.empty()) {
    text += "was \"" + pin.renamed_from + "\" until now";
  } else if (pin.hash.empty()) {
    text += "is new";
  } else {
    text += "is not what was approved: its definition was " + pin.hash + " and is " + pin.seen;
  }
  return text + " (`bulkhead pins` shows it)";
}

}  // namespace

// A server has said anew what its tools are.
void Router::tools_listed(const Lane &lane) {
  if (lane.upstream().connector == nullptr) return;  // tools plugins are code that we have checked
  constexpr std::size_t most_lines = 20;
  const auto news = pins_.listed(lane.upstream().name(), lane.items(ItemKind::tool));
  std::size_t lines = 0;
  for (const PinNews &one : news) {
    if (!one.pin.approved() && ++lines <= most_lines) log(BH_LOG_WARN, described(one));
  }
  if (lines > most_lines) {
    log(BH_LOG_WARN, "server \"" + lane.upstream().name() + "\": " +
                         std::to_string(lines - most_lines) + " more tools are not approved");
  }
  if (!news.empty() && hooks_.on_pins) hooks_.on_pins(news);
}

std::uint32_t Router::pin_of(const Upstream &upstream, ItemKind kind, std::string_view tool,
                             const DefinitionHash &hash) const {
  if (!pins_.active() || kind != ItemKind::tool) return BH_PIN_UNKNOWN;
  if (upstream.connector == nullptr) return BH_PIN_SAME;
  return pins_.state(upstream.name(), tool, hash);
}

std::uint32_t Router::pin_of(const Upstream &upstream, ItemKind kind, std::string_view tool,
                             std::string_view raw) const {
  const bool compared = pins_.active() && kind == ItemKind::tool;
  return pin_of(upstream, kind, tool, compared ? definition_hash(raw) : DefinitionHash{});
}

// False: refused, and answered.
bool Router::passes_pins(Exchange &e, const Target &target) {
  if (!pins_.enforces() || target.resolved.kind != ItemKind::tool) return true;
  const std::uint32_t pin =
      pin_of(target.lane->upstream(), ItemKind::tool, e.name, target.resolved.definition_hash);
  if (pin == BH_PIN_SAME) return true;
  refuse(e, Gate::refusal(std::string(Gate::pin_rule),
                          "the definition of this tool is not the one that was approved; "
                          "`bulkhead pins` shows both, `bulkhead pins approve` accepts it"));
  return false;
}

void Router::use_pins() {
  const Pins before = pins_;
  // Where nobody keeps them, the next profile knows nothing of what was seen here.
  const bool kept = hooks_.on_pins != nullptr || !before.active();
  pins_.use(profile_.pins, kept ? profile_.pinned : before.all());
  for (const auto &upstream : upstreams_) {
    for (const auto &lane : upstream->lanes()) {
      if (lane->listed()) tools_listed(*lane);
    }
  }
  if ((before.enforces() || pins_.enforces()) && !(pins_ == before)) policy_changed();
}

}  // namespace bulkhead
