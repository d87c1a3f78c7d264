// The C++ wrapper for writing plugins.
//
//   class Hello {
//    public:
//     static constexpr bh::Info info{.id = "hello", .name = "Hello", .version = "1.0.0",
//                                    .vendor = "Example", .config_schema = {},
//                                    .provides = {BH_EXT_TOOLS}};
//     explicit Hello(const bh_host *host) : host_(host) {}
//     bh_status configure(bh_str json, bh_error *error);
//     bh_status start(bh_error *error);
//     void stop() noexcept;
//     const void *get_ext(const char *id) noexcept {
//       return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<Hello>() : nullptr;
//     }
//     ... the members that tools_table<> requires ...
//   };
//   BH_PLUGIN(Hello)
//
// The members drain(deadline_ns) and probe(error) are optional. The wrapper catches exceptions.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "../abi/plugin.h"
#include "basics.hpp"
#include "host.hpp"

namespace bh {

struct Info {
  const char *id;
  std::string_view name;
  std::string_view version;
  std::string_view vendor;
  std::string_view config_schema;
  std::array<const char *, 6> provides;  // at most five IDs; the other elements are null
};

inline bool is(const char *id, const char *wanted) noexcept {
  return id != nullptr && std::strcmp(id, wanted) == 0;
}

namespace detail {

// Holds the plugin's object and its table in a single allocation.
template <class P>
struct Instance {
  explicit Instance(const bh_host *host) : plugin(host) {
    table.size = sizeof table;
    table.self = this;
    table.configure = [](void *self, bh_str json, bh_error *error) {
      return guarded(error, [&] { return get(self).configure(json, error); });
    };
    table.start = [](void *self, bh_error *error) {
      return guarded(error, [&] { return get(self).start(error); });
    };
    table.probe = [](void *self, bh_error *error) -> bh_status {
      if constexpr (requires(P &p) { p.probe(error); }) {
        return guarded(error, [&] { return get(self).probe(error); });
      } else {
        return BH_OK;
      }
    };
    table.drain = [](void *self, std::uint64_t deadline_ns) {
      if constexpr (requires(P &p) { p.drain(deadline_ns); }) {
        contained([&] { get(self).drain(deadline_ns); });
      }
    };
    table.stop = [](void *self) { contained([&] { get(self).stop(); }); };
    table.destroy = [](void *self) { delete static_cast<Instance *>(self); };
    table.get_ext = [](void *self, const char *id) {
      return guarded_or<const void *>(nullptr, [&] { return get(self).get_ext(id); });
    };
  }

  static P &get(void *self) noexcept { return static_cast<Instance *>(self)->plugin; }

  P plugin;
  bh_plugin table{};
};

// The configuration schema, terminated by NUL, for BH_SCHEMA_SECTION.
template <class P>
constexpr auto schema_bytes() noexcept {
  std::array<char, P::info.config_schema.size() + 1> bytes{};
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) bytes[i] = P::info.config_schema[i];
  return bytes;
}

template <class P>
struct Entry {
  static bh_status init(const bh_host *, bh_error *) noexcept { return BH_OK; }
  static void deinit() noexcept {}

  static const bh_descriptor *descriptor(std::uint32_t i) noexcept {
    static const bh_descriptor value{sizeof(bh_descriptor),
                                     0,
                                     P::info.id,
                                     P::info.provides.data(),
                                     str(P::info.name),
                                     str(P::info.version),
                                     str(P::info.vendor),
                                     str(P::info.config_schema)};
    return i == 0 ? &value : nullptr;
  }

  static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                          bh_error *error) noexcept {
    if (!is(id, P::info.id)) return fail(error, BH_E_NOT_FOUND, "no such plugin in this library");
    return guarded(error, [&] {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() handles it.
      *out = &(new Instance<P>(host))->table;
      return BH_OK;
    });
  }

  static const bh_entry *entry() noexcept {
    static const bh_entry value{sizeof(bh_entry), BH_ABI_MAJOR, BH_ABI_MINOR, 0, init, deinit, 1,
                                BH_ABI_RC,        descriptor,   create};
    return &value;
  }
};

}  // namespace detail

// Returns the plugin's object. `p` is the `self` pointer that the wrapper has given to the host.
template <class P>
P &self(void *p) noexcept {
  return detail::Instance<P>::get(p);
}

}  // namespace bh

// Defines the entry point of a library that contains one plugin. If BH_STATIC_PLUGIN is defined,
// the entry point is named `bh_static_entry_<Class>`, so several plugins can be linked into one
// program.
#ifdef BH_STATIC_PLUGIN
#define BH_PLUGIN(Class)                                     \
  extern "C" const bh_entry *bh_static_entry_##Class(void);  \
  extern "C" const bh_entry *bh_static_entry_##Class(void) { \
    return bh::detail::Entry<Class>::entry();                \
  }
#else
// A section of the library contains a copy of the schema, so a host can validate all configurations
// before it executes code from any plugin.
#define BH_PLUGIN(Class)                                                                      \
  namespace {                                                                                 \
  __attribute__((section(BH_SCHEMA_SECTION), used)) constexpr auto bh_schema_bytes =          \
      bh::detail::schema_bytes<Class>();                                                      \
  }                                                                                           \
  extern "C" __attribute__((visibility("default"))) const bh_entry *bh_plugin_entry_v1(void); \
  extern "C" const bh_entry *bh_plugin_entry_v1(void) {                                       \
    return bh::detail::Entry<Class>::entry();                                                 \
  }
#endif
