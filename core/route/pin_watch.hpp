// Tools whose definition is not the one that was approved: noted when they are listed, and, where
// the profile says so, neither shown nor called. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "catalog/items.hpp"
#include "profile/profile.hpp"
#include "route/pins.hpp"

namespace bulkhead {

class Lane;
class Upstream;

class PinWatch {
 public:
  using Log = std::function<void(std::int32_t level, std::string_view text)>;
  using OnNews = std::function<void(const std::vector<PinNews> &)>;
  // on_news: definitions that are new or have changed; empty: there is no keeper.
  PinWatch(const Profile &profile, Log log, OnNews on_news);

  // A server has said anew what its tools are.
  void listed(const Lane &lane);
  // The profile's pins have changed; `lanes` are those that list something. True: so is what may be
  // shown and called.
  bool use_profile(const std::vector<const Lane *> &lanes);

  bool enforces() const noexcept { return pins_.enforces(); }
  // BH_PIN_...: is this the definition that was approved? Unknown for what is no tool.
  std::uint32_t state(const Upstream &upstream, ItemKind kind, std::string_view tool,
                      const DefinitionHash &hash) const;
  std::uint32_t state(const Upstream &upstream, ItemKind kind, std::string_view tool,
                      std::string_view definition) const;

 private:
  const Profile &profile_;
  const Log log_;
  const OnNews on_news_;
  Pins pins_;
};

}  // namespace bulkhead
