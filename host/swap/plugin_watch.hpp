// Swaps the plugins that have `watch = true` in the profile when their files change, so that a
// developer's build is in use without a command.
//
// Owned by the gateway. All functions must be called on the reactor thread; files are looked at on
// a pool thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

class PluginWatch {
 public:
  // How often the files are looked at. A change is used when two looks find the same file, since a
  // linker writes its output in several steps.
  static constexpr std::uint64_t poll_ms = 500;

  // `swap` replaces a plugin by the file that the profile specifies; `done` is called once, with
  // BH_OK, an error of the new file, or BH_E_LIMIT or BH_E_UNAVAILABLE if it may be tried again.
  using Done = std::function<void(bh_status)>;
  using Swap = std::function<void(const PluginSwapRequest &, Done)>;

  PluginWatch(Reactor &reactor, Swap swap);
  ~PluginWatch();  // waits for the job on the pool thread
  PluginWatch(const PluginWatch &) = delete;
  PluginWatch &operator=(const PluginWatch &) = delete;

  // Watches the plugins of this profile, which is in use, instead of the former ones.
  void follow(const Profile &profile);

 private:
  struct Look;
  struct Watched {
    std::string name;        // "tools.mine"
    std::string plugin;      // its name or path in the profile
    std::string used, seen;  // marks of the file: in use or tried, and at the last look
    std::string path;        // empty until the plugin has been found
  };

  void wait();
  void look();
  void looked(Look &look);

  Reactor &reactor_;
  const Swap swap_;
  std::vector<Watched> watched_;
  std::vector<std::string> dirs_;  // the profile's plugin directories
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::uint64_t timer_ = 0;
  bool looking_ = false, swapping_ = false;
};

}  // namespace bulkhead::program
