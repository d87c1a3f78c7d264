// Compares what servers list with what was approved. Owner: the Router. Thread: [io].
//
// The first list of a server that is not known yet is approved as it is; from then on a definition
// that is another, a tool under another name, and (unless the profile accepts them) a new tool are
// not. Bound: most_pins; a tool beyond it is not approved.
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
  // Forgets what was known.
  void use(const PinRules &rules, const std::vector<ToolPin> &known);

  std::vector<ToolPin> all() const;
  bool operator==(const Pins &) const = default;

  bool active() const noexcept { return rules_.mode != PinRules::Mode::off; }
  bool enforces() const noexcept { return rules_.mode == PinRules::Mode::enforce; }

  // All tools that the server lists now. What is new or other than before is returned.
  std::vector<PinNews> listed(const std::string &server, const ItemList &tools);

  // BH_PIN_...: is this definition of the tool the approved one?
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
