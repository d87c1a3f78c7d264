// Compares the tool definitions that servers list with the approved definitions (pins).
//
// The first list from an unknown server is approved automatically. After that, changed definitions
// and renamed tools are not approved. A new tool is approved only if the profile accepts new tools.
// At most most_pins pins are stored; any further tools are not approved.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/items.hpp"
#include "profile/pins.hpp"

namespace bulkhead {

class Pins {
 public:
  // Replaces the rules and all pins.
  void use(const PinRules &rules, const std::vector<ToolPin> &known);

  std::vector<ToolPin> all() const;
  bool operator==(const Pins &) const = default;

  bool active() const noexcept { return rules_.mode != PinRules::Mode::off; }
  bool enforces() const noexcept { return rules_.mode == PinRules::Mode::enforce; }

  // Compares a server's complete tool list with the pins and updates the pins. Returns the new and
  // changed definitions.
  std::vector<PinNews> listed(const std::string &server, const ItemList &tools);

  // Returns the names of this server's tools whose current definitions are not approved. Considers
  // all lists that the server has sent, because they may differ by client capabilities.
  std::set<std::string, std::less<>> unapproved(std::string_view server) const;

  // Compares the hash of a tool's definition with the approved hash. Returns a BH_PIN_... value.
  std::uint32_t state(std::string_view server, std::string_view tool,
                      const DefinitionHash &hash) const;

 private:
  using Tools = std::map<std::string, ToolPin, std::less<>>;
  struct Listed;

  ToolPin *pin_of(Tools &tools, const std::string &server, const std::string &tool);

  PinRules rules_;
  std::map<std::string, Tools, std::less<>> servers_;
  std::size_t count_ = 0;
};

}  // namespace bulkhead
