// A linked-in plugin and the small bh_host that it sees: the reactor, the log, and the tables that
// its owner gives.
//
// Why not plugin/Instance: that one brings secrets, folders, sockets, children and the check of
// configurations along, which is most of a program that has to be small. Nothing here is loaded or
// replaced while it runs.
//
// Owner: pipe::Host. Thread: the reactor's, but for what the ABI allows on any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "reactor/reactor.hpp"

namespace bulkhead::pipe {

class Seat {
 public:
  using Log = std::function<void(std::int32_t level, std::string_view text)>;
  // Extension id and table; a table's first argument is the Seat.
  using Tables = std::vector<std::pair<std::string_view, const void *>>;

  // `owner` is for the functions of the tables: see owner_of().
  Seat(Reactor &reactor, Log log, Tables tables, void *owner);
  ~Seat();
  Seat(const Seat &) = delete;
  Seat &operator=(const Seat &) = delete;

  // Makes the library's first plugin, configures and starts it. Once.
  Result<void> start(const bh_entry &entry, std::string_view config_json);
  void stop();

  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(plugin_->get_ext(plugin_->self, id));
  }
  void *self() const noexcept { return plugin_->self; }

  template <class T>
  static T &owner_of(void *ctx) noexcept {
    return *static_cast<T *>(static_cast<Seat *>(ctx)->owner_);
  }

 private:
  struct Functions;

  Reactor &reactor_;
  const Log log_;
  const Tables tables_;
  void *const owner_;
  bh_host host_{};
  const bh_plugin *plugin_ = nullptr;
  bool started_ = false;
};

}  // namespace bulkhead::pipe
