#include "route/pin_watch.hpp"

#include <string>
#include <utility>

#include "bulkhead/abi/ext/policy.h"
#include "route/lane.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

std::string described(const PinNews &news) {
  const ToolPin &pin = news.pin;
  std::string text = "server \"" + pin.server + "\": tool \"" + pin.tool + "\" ";
  if (!pin.renamed_from.empty()) {
    text += "was renamed from \"" + pin.renamed_from + "\"";
  } else if (pin.hash.empty()) {
    text += "is new";
  } else {
    text += "differs from its approved definition: the hash was " + pin.hash + " and is now " +
            pin.seen;
  }
  return text + " (`bulkhead pins` shows it)";
}

}  // namespace

PinWatch::PinWatch(const Profile &profile, Log log, OnNews on_news)
    : profile_(profile), log_(std::move(log)), on_news_(std::move(on_news)) {
  pins_.use(profile.pins, profile.pinned);
}

void PinWatch::listed(const Lane &lane) {
  // Tools from tools plugins are not compared with pins, because these plugins are reviewed code.
  if (lane.upstream().connector == nullptr) return;
  constexpr std::size_t most_lines = 20;
  const auto news = pins_.listed(lane.upstream().name(), lane.items(ItemKind::tool));
  std::size_t lines = 0;
  for (const PinNews &one : news) {
    if (!one.pin.approved() && ++lines <= most_lines) log_(BH_LOG_WARN, described(one));
  }
  if (lines > most_lines) {
    log_(BH_LOG_WARN, "server \"" + lane.upstream().name() + "\": " +
                          std::to_string(lines - most_lines) + " more tools are not approved");
  }
  if (!news.empty() && on_news_) on_news_(news);
}

bool PinWatch::use_profile(const std::vector<const Lane *> &lanes) {
  const Pins before = pins_;
  // If observed definitions are not stored, the new profile does not contain them, so the current
  // pins are kept.
  const bool kept = on_news_ != nullptr || !before.active();
  pins_.use(profile_.pins, kept ? profile_.pinned : before.all());
  for (const Lane *lane : lanes) listed(*lane);
  return (before.enforces() || pins_.enforces()) && !(pins_ == before);
}

std::uint32_t PinWatch::state(const Lane &lane, ItemKind kind, std::string_view tool,
                              const DefinitionHash &hash) const {
  if (!pins_.active() || kind != ItemKind::tool) return BH_PIN_UNKNOWN;
  const Upstream &upstream = lane.upstream();
  if (upstream.connector == nullptr) return BH_PIN_SAME;
  const std::uint32_t own = pins_.state(upstream.name(), tool, hash);
  const bool shared = own == BH_PIN_SAME && upstream.def().pool_size > 1;
  return shared ? state_in_pool(lane, tool, hash) : own;
}

// Returns the state of the first connection of the lane's pool whose definition is not approved.
// Connections that do not list the tool are left out, because they do not receive its calls.
std::uint32_t PinWatch::state_in_pool(const Lane &lane, std::string_view tool,
                                      const DefinitionHash &hash) const {
  const Lane *first = lane.pool_of != nullptr ? lane.pool_of : &lane;
  for (const auto &other : lane.upstream().lanes()) {
    const bool member = other.get() == first || other->pool_of == first;
    if (!member || !other->listed()) continue;
    const ItemList &tools = other->items(ItemKind::tool);
    if (tools.find(hash) != nullptr) continue;
    const ItemList::Item *item = tools.find_named(tool);
    if (item == nullptr) continue;
    const std::uint32_t state = pins_.state(lane.upstream().name(), tool, item->hash);
    if (state != BH_PIN_SAME) return state;
  }
  return BH_PIN_SAME;
}

std::uint32_t PinWatch::state(const Lane &lane, ItemKind kind, std::string_view tool,
                              std::string_view definition) const {
  const bool compared = pins_.active() && kind == ItemKind::tool;
  return state(lane, kind, tool, compared ? definition_hash(definition) : DefinitionHash{});
}

void PinWatch::add_unapproved(const Upstream &upstream, ServerStatus *status) const {
  if (!pins_.active() || upstream.connector == nullptr) return;
  auto names = pins_.unapproved(upstream.name());
  // Adds listed tools that have no pin because the limit on pins was reached or the name is too
  // long.
  if (const Lane *lane = upstream.shown_lane()) {
    const ItemList &tools = lane->items(ItemKind::tool);
    std::string scratch;
    for (const ItemList::Item &item : tools.items) {
      const std::string_view name = mcp::unquote(item.key.in(tools.bytes), &scratch);
      if (pins_.state(upstream.name(), name, item.hash) != BH_PIN_SAME) names.emplace(name);
    }
  }
  status->unapproved_tools = static_cast<std::uint32_t>(names.size());
  status->unapproved_hidden = enforces() && !names.empty();
}

}  // namespace bulkhead
