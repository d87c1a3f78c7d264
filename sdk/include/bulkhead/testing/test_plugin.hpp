// Loads a plugin library and runs one instance of it in a FakeHost, for unit tests of plugins in
// any language.
//
//   int main(int, char **argv) {
//     bh::testing::FakeHost host;
//     host.add_ext(BH_EXT_HOST_TOOLS, &table);  // the table of the test
//     bh::testing::TestPlugin plugin(host, argv[1]);  // the path of NAME.so
//     BH_CHECK(plugin.configure("{}") == BH_OK);
//     BH_CHECK(plugin.start() == BH_OK);
//     const auto *tools = plugin.ext<bh_tools>(BH_EXT_TOOLS);
//     ... call tools->list(plugin.self(), ...) and check the results ...
//     plugin.stop();
//   }
//
// The constructor checks that the plugin rejects unknown IDs, and stop() checks that the plugin has
// released all resources and has not violated the ABI.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../abi/plugin.h"
#include "../cpp/basics.hpp"
#include "fake_host.hpp"

// Exits with an error message if the condition is false. Unlike assert(), also in release builds.
#define BH_CHECK(condition)                                                        \
  do {                                                                             \
    if (!(condition)) ::bh::testing::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

namespace bh::testing {

[[noreturn]] inline void check_failed(const char *file, int line, const char *condition) {
  std::fprintf(stderr, "%s:%d: the check failed: %s\n", file, line, condition);
  std::exit(1);
}

class TestPlugin {
 public:
  // Loads the library, and creates an instance of its first plugin. The host must outlive it.
  TestPlugin(FakeHost &host, const char *path) : host_(host) {
    void *const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "cannot load the plugin: %s\n",
                   path == nullptr ? "the argument with its path is missing" : ::dlerror());
      std::exit(1);
    }
    const auto function =
        reinterpret_cast<bh_plugin_entry_fn>(::dlsym(library, BH_PLUGIN_ENTRY_SYMBOL));
    BH_CHECK(function != nullptr);
    entry_ = function();
    BH_CHECK(entry_ != nullptr && entry_->abi_major == BH_ABI_MAJOR &&
             entry_->abi_rc == BH_ABI_RC && entry_->count >= 1);
    BH_CHECK(entry_->init(host.host(), &error_) == BH_OK);
    const bh_descriptor *const descriptor = entry_->descriptor(0);
    BH_CHECK(descriptor != nullptr && entry_->descriptor(entry_->count) == nullptr);
    BH_CHECK(entry_->create("no-such-plugin", host.host(), &plugin_, nullptr) == BH_E_NOT_FOUND);
    BH_CHECK(entry_->create(descriptor->id, host.host(), &plugin_, &error_) == BH_OK);
    BH_CHECK(plugin_ != nullptr);
    for (const char *const *id = descriptor->provides; *id != nullptr; ++id) {
      BH_CHECK(ext<void>(*id) != nullptr);
      BH_CHECK(ext<void>((std::string(*id) + "0").c_str()) == nullptr);
    }
    BH_CHECK(ext<void>("") == nullptr);
  }
  ~TestPlugin() {
    if (started_) stop();
    plugin_->destroy(plugin_->self);
    entry_->deinit();  // the library stays mapped, as in the gateway
  }
  TestPlugin(const TestPlugin &) = delete;
  TestPlugin &operator=(const TestPlugin &) = delete;

  bh_status configure(std::string_view json) {
    return plugin_->configure(plugin_->self, str(json), error());
  }
  bh_status start() {
    const bh_status status = plugin_->start(plugin_->self, error());
    started_ = status == BH_OK;
    return status;
  }
  // Stops the instance, and checks that it has no watch, timer or pool job left.
  void stop() {
    started_ = false;
    plugin_->stop(plugin_->self);
    host_.forget();
    for (const std::string &fault : host_.faults()) std::fprintf(stderr, "%s\n", fault.c_str());
    BH_CHECK(host_.faults().empty());
    BH_CHECK(host_.watches() == 0);
    BH_CHECK(host_.timers() == 0);
    BH_CHECK(host_.blocking() == 0);
  }

  // Returns the plugin's table for an extension, or null.
  template <class T>
  const T *ext(const char *id) {
    return static_cast<const T *>(plugin_->get_ext(plugin_->self, id));
  }
  // The first argument of the functions in the plugin's tables.
  void *self() const noexcept { return plugin_->self; }

  // Clears the error buffer, and returns it for the next call.
  bh_error *error() noexcept {
    error_ = make_error();
    return &error_;
  }
  // Returns the text of the last error.
  std::string_view error_text() const noexcept { return text(error_); }

 private:
  FakeHost &host_;
  const bh_entry *entry_ = nullptr;
  const bh_plugin *plugin_ = nullptr;
  bh_error error_ = make_error();
  bool started_ = false;
};

}  // namespace bh::testing
