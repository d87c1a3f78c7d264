#include "route/pins.hpp"

#include <algorithm>
#include <set>

#include "bulkhead/abi/ext/policy.h"

namespace bulkhead {
namespace {

// Returns the hash of the definition without the tool's name, so that renamed tools can be
// recognized.
std::string shape_of(const ItemList &tools, const ItemList::Item &item) {
  std::string text(tools.bytes, item.raw.begin, item.key.begin - item.raw.begin);
  text.append(tools.bytes, item.key.end, item.raw.end - item.key.end);
  return to_hex(definition_hash(text));
}

// Returns the definition, or an empty string if it is too long to be stored.
std::string definition_of(const ItemList &tools, const ItemList::Item &item) {
  const std::string_view raw = item.raw.in(tools.bytes);
  return raw.size() > max_pin_definition_bytes ? std::string() : std::string(raw);
}

// Returns true if `text` equals to_hex(hash). Allocates no memory, because it is called for each
// tool call that a policy evaluates.
bool is_hex_of(const DefinitionHash &hash, std::string_view text) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  if (text.size() != 2 * hash.size()) return false;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    if (text[2 * i] != digits[hash[i] >> 4] || text[2 * i + 1] != digits[hash[i] & 15])
      return false;
  }
  return true;
}

}  // namespace

// A server's tool list, and functions that compare it with the pins.
struct Pins::Listed {
  const ItemList &tools;
  const PinRules &rules;
  bool first;                                // no tool of this server has been approved before
  std::set<std::string, std::less<>> names;  // all names in the list

  // Approved tools that are no longer listed, by shape; of tools with the same shape, the first one
  // by name.
  std::map<std::string_view, std::string_view> gone;

  // Returns the name of an approved tool whose definition is the same except for the name, and that
  // is no longer listed: it was probably renamed. Returns an empty string if there is none.
  std::string former_name(std::string_view shape) const {
    const auto at = gone.find(shape);
    return at == gone.end() ? std::string() : std::string(at->second);
  }

  // Compares a listed tool with its pin and updates the pin. Returns true if the pin has changed.
  bool compare(const ItemList::Item &item, ToolPin *pin) const {
    const std::string hash = to_hex(item.hash);
    if (hash == pin->seen) return false;
    if (hash == pin->hash) {  // the server lists the approved definition again
      const bool other = !pin->seen.empty();
      pin->seen.clear();
      pin->seen_shape.clear();
      return other;
    }
    const std::string shape = shape_of(tools, item);
    if (pin->hash.empty() && pin->seen.empty()) {
      pin->renamed_from = first ? std::string() : former_name(shape);
      if (first || (rules.accept_new && pin->renamed_from.empty())) {
        pin->hash = hash;
        pin->shape = shape;
        return true;
      }
    }
    pin->seen = hash;
    pin->seen_shape = shape;
    return true;
  }
};

void Pins::use(const PinRules &rules, const std::vector<ToolPin> &known) {
  rules_ = rules;
  servers_.clear();
  count_ = 0;
  if (!active()) return;
  for (const ToolPin &pin : known) {
    if (count_ == most_pins) return;
    if (servers_[pin.server].insert_or_assign(pin.tool, pin).second) ++count_;
  }
}

std::vector<ToolPin> Pins::all() const {
  std::vector<ToolPin> out;
  for (const auto &[server, tools] : servers_) {
    for (const auto &[tool, pin] : tools) out.push_back(pin);
  }
  return out;
}

// Returns the tool's pin, which is created if necessary. Returns null if the limit on pins has been
// reached or the name is too long.
ToolPin *Pins::pin_of(Tools &tools, const std::string &server, const std::string &tool) {
  const auto at = tools.find(tool);
  if (at != tools.end()) return &at->second;
  if (count_ == most_pins || tool.size() > max_pin_name_bytes) return nullptr;
  ++count_;
  ToolPin &pin = tools[tool];
  pin.server = server;
  pin.tool = tool;
  return &pin;
}

std::vector<PinNews> Pins::listed(const std::string &server, const ItemList &tools) {
  std::vector<PinNews> news;
  if (!active() || tools.items.empty()) return news;
  Tools &known = servers_[server];
  const bool first = std::none_of(known.begin(), known.end(),
                                  [](const auto &each) { return !each.second.hash.empty(); });
  Listed list{tools, rules_, first, {}, {}};
  std::string scratch;
  for (const ItemList::Item &item : tools.items) {
    list.names.emplace(mcp::unquote(item.key.in(tools.bytes), &scratch));
  }
  for (const auto &[name, pin] : known) {
    if (!pin.shape.empty() && !list.names.contains(name)) list.gone.emplace(pin.shape, name);
  }
  for (const ItemList::Item &item : tools.items) {
    const std::string name(mcp::unquote(item.key.in(tools.bytes), &scratch));
    ToolPin *pin = pin_of(known, server, name);
    if (pin == nullptr || !list.compare(item, pin)) continue;
    news.push_back({*pin, definition_of(tools, item)});
  }
  return news;
}

std::set<std::string, std::less<>> Pins::unapproved(std::string_view server) const {
  std::set<std::string, std::less<>> out;
  const auto at = servers_.find(server);
  if (at == servers_.end()) return out;
  for (const auto &[tool, pin] : at->second)
    if (!pin.approved()) out.insert(tool);
  return out;
}

std::uint32_t Pins::state(std::string_view server, std::string_view tool,
                          const DefinitionHash &hash) const {
  const auto at = servers_.find(server);
  if (at == servers_.end()) return BH_PIN_UNKNOWN;
  const auto pin = at->second.find(tool);
  if (pin == at->second.end() || pin->second.hash.empty()) return BH_PIN_UNKNOWN;
  return is_hex_of(hash, pin->second.hash) ? BH_PIN_SAME : BH_PIN_CHANGED;
}

}  // namespace bulkhead
