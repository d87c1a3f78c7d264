// Runs a plugin that is linked into the program. Its bh_host provides the reactor, the log, and the
// extension tables of its owner (host_tables).
//
// This class replaces plugin/Instance in programs that must be small: Instance's code for secrets,
// folders, sockets, child processes and configuration checks would make up most of such a program.
//
// Owned by PipeHost. All functions must be called on the reactor thread, except those that
// plugins may call on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "reactor/reactor.hpp"

namespace bulkhead::pipe {

class LinkedPlugin {
 public:
  using Log = std::function<void(std::int32_t level, std::string_view text)>;

  // `tables` is a host_tables::TableSet. Its functions receive the LinkedPlugin as ctx;
  // owner_of(ctx) returns `owner`.
  template <class Set>
  LinkedPlugin(Reactor &reactor, Log log, const Set &tables, void *owner)
      : LinkedPlugin(reactor, std::move(log), &tables, find_in<Set>, owner) {}
  ~LinkedPlugin();
  LinkedPlugin(const LinkedPlugin &) = delete;
  LinkedPlugin &operator=(const LinkedPlugin &) = delete;

  // Creates, configures and starts the first plugin in the library. Must be called only once.
  Result<void> start(const bh_entry &entry, std::string_view config_json);
  void stop();

  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(plugin_->get_ext(plugin_->self, id));
  }
  void *self() const noexcept { return plugin_->self; }

  // The functions that host_tables::ReactorTables needs. check_call() accepts all arguments,
  // because the plugin is part of the program.
  static LinkedPlugin &of(void *ctx) noexcept { return *static_cast<LinkedPlugin *>(ctx); }
  Reactor &reactor() const noexcept { return reactor_; }
  static bh_status check_call(bool, const char *) noexcept { return BH_OK; }
  template <class T>
  static T &owner_of(void *ctx) noexcept {
    return *static_cast<T *>(static_cast<LinkedPlugin *>(ctx)->owner_);
  }

 private:
  struct Functions;
  using FindTable = const void *(*)(const void *tables, std::string_view id);

  template <class Set>
  static const void *find_in(const void *tables, std::string_view id) {
    return static_cast<const Set *>(tables)->find(id);
  }
  LinkedPlugin(Reactor &reactor, Log log, const void *tables, FindTable find_table, void *owner);

  Reactor &reactor_;
  const Log log_;
  const void *const tables_;
  const FindTable find_table_;  // searches tables_
  void *const owner_;
  bh_host host_{};
  const bh_plugin *plugin_ = nullptr;
  bool started_ = false;
};

}  // namespace bulkhead::pipe
