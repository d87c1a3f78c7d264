// Compares tool definitions with the approved definitions.
//
// The first list of an unknown server is approved. After that, a changed definition, a renamed tool
// and (unless the profile accepts it) a new tool are not approved. Limit: most_pins; additional
// tools are not approved.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

  // Compares a server's complete tool list with the pins and returns new and changed definitions.
  std::vector<PinNews> listed(const std::string &server, const ItemList &tools);

  // Compares a tool's definition with its approved definition. Returns BH_PIN_... .
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
