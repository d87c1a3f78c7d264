// Loading, and the lifecycle of an instance of any kind.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "check/scenarios.hpp"
#include "plugin/config_schema.hpp"
#include "plugin/entry_check.hpp"
#include "plugin/mapping.hpp"
#include "plugin/plugin_file.hpp"

namespace bulkhead::check {
namespace {

constexpr int warm_up_cycles = 10, window_cycles = 25;  // at most `windows` follow the warm-up
constexpr int windows = 6;
constexpr std::int64_t most_growth = 8 * 1024;  // in bytes, in each window
constexpr int run_ms = 20;                      // how long a started instance runs

bool same_ids(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// Maps the library and returns its entry, or null.
const bh_entry *map(Trial *trial, const Subject &subject) {
  auto copy = duplicate(subject.library);
  if (!copy) {
    trial->not_checked(copy.error().text);
    return nullptr;
  }
  const ProcessState before = process_state();
  const auto descriptors = trial->process().descriptors();
  const std::size_t threads = trial->process().threads();
  trial->step(Rule::silent_constructors, "its static constructors");
  const auto entry_fn = map_library(std::move(copy->file), copy->status);
  if (!entry_fn) {
    trial->violated(Rule::loads, "it " + entry_fn.error().text);
    return nullptr;
  }
  trial->checked(Rule::loads);
  trial->checked(Rule::silent_constructors);
  if (trial->process().threads() > threads) {
    trial->violated(Rule::silent_constructors, "a constructor starts a thread");
  }
  if (trial->process().descriptors() != descriptors) {
    trial->violated(Rule::silent_constructors, "a constructor opens or closes a file");
  }
  if (const auto changed = difference(before, process_state()); !changed.empty()) {
    trial->violated(Rule::silent_constructors, "a constructor changes " + changed);
  }
  trial->step(Rule::entry, BH_PLUGIN_ENTRY_SYMBOL "()");
  trial->checked(Rule::entry);
  const bh_entry *entry = (*entry_fn)();
  if ((*entry_fn)() != entry) {
    trial->violated(Rule::entry, "two calls return different pointers");
  }
  if (entry == nullptr) trial->violated(Rule::entry, "it returns NULL");
  return entry;
}

void check_schema(Trial *trial, const Subject &subject, const PluginDescription &description) {
  const auto section = schema_of(subject.library);
  if (!section) {
    trial->violated(Rule::descriptor, section.error().text);
  } else if (*section != description.config_schema) {
    trial->violated(Rule::descriptor,
                    section->empty()
                        ? "the descriptor has a config_schema, but the library has no section "
                          "\"" BH_SCHEMA_SECTION "\""
                        : "the config_schema differs from the section \"" BH_SCHEMA_SECTION "\"");
  }
  const auto valid = check_config(description.config_schema, "{}");
  if (!valid && valid.error().code == BH_E_ABI) {
    trial->violated(Rule::descriptor, valid.error().text);
  }
}

// Returns false if a host would reject the library.
bool check_descriptors(Trial *trial, const Subject &subject, const bh_entry *entry) {
  // check_entry() calls descriptor(). A pointer to unreadable memory crashes here.
  const volatile bh_entry *readable = entry;
  const bool has_size = readable != nullptr && readable->size > 0;
  if (has_size) trial->step(Rule::descriptor, "descriptor()");
  const auto plugins = check_entry(entry);
  if (!plugins) {
    const bool is_descriptor = plugins.error().text.starts_with("descriptor");
    trial->violated(is_descriptor ? Rule::descriptor : Rule::entry, "it " + plugins.error().text);
    return false;
  }
  trial->step(Rule::descriptor, "descriptor()");
  trial->checked(Rule::descriptor);
  if (entry->descriptor(entry->count) != nullptr) {
    trial->violated(Rule::descriptor, "descriptor(count) is not NULL");
  }
  const Manifest &manifest = subject.library.manifest;
  const auto own = std::find_if(plugins->begin(), plugins->end(),
                                [&](const PluginDescription &p) { return p.id == manifest.id; });
  if (own == plugins->end()) {
    trial->violated(Rule::descriptor, "no descriptor has the id \"" + manifest.id + "\"");
    return false;
  }
  if (!own->version.empty() && own->version != manifest.version) {
    trial->note("the version is " + manifest.version + " in the manifest, but " + own->version +
                " in the descriptor");
  }
  if (!same_ids(own->provides, manifest.provides)) {
    trial->violated(Rule::descriptor, "the descriptor provides other extensions than the manifest");
    return false;
  }
  check_schema(trial, subject, *own);
  return true;
}

void check_init(Trial *trial, const bh_entry *entry, TrialHost *host) {
  const auto initialize = [&] {
    bh_error error = bh::make_error();
    const bh_status status = entry->init(host->table(), &error);
    if (status < 0) {
      trial->violated(Rule::init, "init returns an error: " + std::string(bh::text(error)));
    }
    return status >= 0;
  };
  trial->checked(Rule::init);
  host->forbid("init");
  trial->step(Rule::init, "init()");
  if (!initialize()) return;
  trial->step(Rule::init, "a second init()");
  const bool twice = initialize();
  trial->step(Rule::init, "deinit()");
  if (twice) entry->deinit();
  host->allow();
  trial->step(Rule::unknown_id, "create() with an unknown id");
  trial->checked(Rule::unknown_id);
  const bh_plugin *plugin = nullptr;
  for (const char *id : {"no-such-plugin", ""}) {
    bh_error error = bh::make_error();
    const bh_status status = entry->create(id, host->table(), &plugin, &error);
    if (status == BH_E_NOT_FOUND) continue;
    trial->violated(Rule::unknown_id,
                    "create(\"" + std::string(id) + "\") returns " + std::to_string(status));
    break;
  }
  host->forbid("deinit");
  trial->step(Rule::init, "deinit()");
  entry->deinit();
  host->allow();
  for (const std::string &fault : host->faults()) trial->violated(Rule::host_rules, fault);
}

bool is_complete(const bh_plugin &p) {
  return BH_HAS(bh_plugin, &p, get_ext) && p.configure != nullptr && p.start != nullptr &&
         p.probe != nullptr && p.drain != nullptr && p.stop != nullptr && p.destroy != nullptr &&
         p.get_ext != nullptr;
}

// The size that each table of ABI 1.0 has, and the size of those functions that must not be null.
struct TableSize {
  const char *id;
  std::uint32_t size, required;  // bytes
};
constexpr std::array tables{
    TableSize{BH_EXT_TOOLS, sizeof(bh_tools), offsetof(bh_tools, call_cancel) + sizeof(void *)},
    TableSize{BH_EXT_POLICY, sizeof(bh_policy), offsetof(bh_policy, filter) + sizeof(void *)},
    TableSize{BH_EXT_TELEMETRY, sizeof(bh_telemetry),
              offsetof(bh_telemetry, batch) + sizeof(void *)},
    TableSize{BH_EXT_CONNECTOR, sizeof(bh_connector), sizeof(bh_connector)},
    TableSize{BH_EXT_TRANSPORT, sizeof(bh_transport), sizeof(bh_transport)},
};

void check_table(Trial *trial, const std::string &id, const void *table) {
  for (const TableSize &known : tables) {
    if (id != known.id) continue;
    std::uint32_t size = 0;
    std::memcpy(&size, table, sizeof size);
    if (size < known.size) {
      trial->violated(Rule::extensions,
                      "the table for " + id + " has the size " + std::to_string(size));
      return;
    }
    // The first two members are 32-bit numbers; the others are functions.
    for (std::size_t at = 8; at < known.required; at += sizeof(void *)) {
      void *function = nullptr;
      std::memcpy(static_cast<void *>(&function), static_cast<const char *>(table) + at,
                  sizeof function);
      if (function == nullptr) {
        trial->violated(Rule::extensions, "the table for " + id + " lacks a function");
      }
    }
  }
}

void check_extensions(Tested *tested, const PluginDescription &description) {
  Trial &trial = tested->trial();
  trial.step(Rule::extensions, "get_ext()");
  trial.checked(Rule::extensions);
  const auto get = [&](const std::string &id) { return tested->ext<void>(id.c_str()); };
  for (const std::string &id : description.provides) {
    const void *table = get(id);
    if (table == nullptr) {
      trial.violated(Rule::extensions, "get_ext(\"" + id + "\") is NULL, but it is provided");
      continue;
    }
    if (get(id) != table) {
      trial.violated(Rule::extensions, "two calls with \"" + id + "\" return different tables");
    }
    check_table(&trial, id, table);
    for (const std::string &other : {id + "1", id.substr(0, id.size() - 1), "x" + id}) {
      if (get(other) != nullptr) {
        trial.violated(Rule::extensions, "get_ext(\"" + other + "\") is not NULL");
      }
    }
  }
  for (const std::string other : {"", "bh.no-such-extension/1"}) {
    if (get(other) != nullptr) {
      trial.violated(Rule::extensions, "get_ext(\"" + other + "\") is not NULL");
    }
  }
}

// The whole life of one instance.
void live(Trial *trial, const Subject &subject, TrialHost *host) {
  const auto loaded = Loaded::load(trial, subject, host, Rule::init);
  if (!loaded) {
    trial->not_checked("instances, because the library cannot be loaded in another process");
    return;
  }
  const Held before = held(*trial);
  Tested tested(trial, *loaded, host, Rule::instance_table);
  trial->checked(Rule::instance_table);
  if (!tested.create()) {
    trial->violated(Rule::instance_table, tested.problem());
    return;
  }
  if (!is_complete(*tested.plugin())) {
    trial->violated(Rule::instance_table, "size or a function of bh_plugin is missing");
    trial->finished();
    ::_exit(0);  // destroy() may be missing
  }
  check_extensions(&tested, loaded->description());
  tested.belongs_to(Rule::configure);
  trial->checked(Rule::configure);
  if (!tested.configure(subject.config) || !tested.start()) {
    trial->not_checked("the plugin does not start: " + tested.problem() +
                       " (see --config for its configuration)");
    return;
  }
  bh_error error = bh::make_error();
  trial->step(Rule::configure, "probe()");
  const bh_status ready = tested.plugin()->probe(tested.self(), &error);
  check_error(trial, Rule::configure, "probe", ready, error);
  if (ready < 0) trial->not_checked("probe returns an error: " + std::string(bh::text(error)));
  trial->step(Rule::configure, "its work after start()");
  host->base().run_for(run_ms);
  tested.belongs_to(Rule::releases_everything);
  tested.drain();
  host->base().run_for(run_ms);
  tested.stop();
  trial->checked(Rule::releases_everything);
  check_stopped(trial, Rule::releases_everything, host, before);
  host->base().forget();
  tested.destroy();
  check_destroyed(trial, Rule::releases_everything, before);
}

void check_growth(Trial *trial, const Subject &subject) {
  trial->checked(Rule::no_growth);
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      TrialHost host;
      const auto loaded = Loaded::load(trial, subject, &host, Rule::no_growth);
      if (!loaded) return false;
      Tested tested(trial, *loaded, &host, Rule::no_growth);
      if (!tested.run(subject.config)) return false;
      host.base().turn(0);
      tested.stop();
      host.base().forget();
      tested.destroy();
    }
    return true;
  };
  if (!run(warm_up_cycles)) return;
  const Held before = held(*trial);
  // A leak grows in every window. The memory that the allocator and a library such as SQLite keep
  // for reuse also grows, but only at first.
  std::int64_t growth = INT64_MAX;
  for (int window = 0; window < windows && (window < 2 || growth > most_growth); ++window) {
    const auto bytes = static_cast<std::int64_t>(allocated_bytes());
    if (!run(window_cycles)) return;
    growth = std::min(growth, static_cast<std::int64_t>(allocated_bytes()) - bytes);
  }
  if (growth > most_growth) {
    trial->violated(Rule::no_growth, "each cycle leaves " + std::to_string(growth / window_cycles) +
                                         " bytes of memory");
  }
  const Held after = held(*trial);
  if (after.descriptors.size() >= before.descriptors.size() + window_cycles) {
    trial->violated(Rule::no_growth, "each cycle leaves a descriptor");
  }
  if (after.threads >= before.threads + window_cycles) {
    trial->violated(Rule::no_growth, "each cycle leaves a thread");
  }
}

void check_bad_configuration(Trial *trial, const Subject &subject) {
  TrialHost host;
  const auto loaded = Loaded::load(trial, subject, &host, Rule::bad_configuration);
  if (!loaded) return;
  trial->checked(Rule::bad_configuration);
  const std::array<std::string, 9> configurations{"",
                                                  "[]",
                                                  "null",
                                                  "\"text\"",
                                                  "{",
                                                  "{\"\":null}",
                                                  std::string(200, '[') + std::string(200, ']'),
                                                  "{\"x\":\"" + std::string(1 << 20, 'x') + "\"}",
                                                  "{\"\\u0000\":1e400}"};
  for (const std::string &config : configurations) {
    Tested tested(trial, *loaded, &host, Rule::bad_configuration);
    if (!tested.create()) return;
    bh_error error = bh::make_error();
    trial->step(Rule::bad_configuration,
                "configure() with " + (config.size() > 40 ? config.substr(0, 40) + "..." : config));
    const bh_status status = tested.plugin()->configure(tested.self(), bh::str(config), &error);
    check_error(trial, Rule::bad_configuration, "configure", status, error);
  }
}

// Configures and starts an instance with a host that lacks extensions.
void check_without(Trial *trial, const Subject &subject, TrialHost *host, const std::string &what) {
  const auto loaded = Loaded::load(trial, subject, host, Rule::fewer_extensions);
  if (!loaded) return;
  trial->checked(Rule::fewer_extensions);
  Tested tested(trial, *loaded, host, Rule::fewer_extensions);
  if (!tested.create()) return;
  bh_error error = bh::make_error();
  trial->step(Rule::fewer_extensions, "configure() with a host without " + what);
  bh_status status = tested.plugin()->configure(tested.self(), bh::str(subject.config), &error);
  check_error(trial, Rule::fewer_extensions, "configure", status, error);
  if (status < 0) return;
  trial->step(Rule::fewer_extensions, "start() with a host without " + what);
  error = bh::make_error();
  status = tested.plugin()->start(tested.self(), &error);
  check_error(trial, Rule::fewer_extensions, "start", status, error);
  if (status < 0) return;
  trial->step(Rule::fewer_extensions, "its work with a host without " + what);
  host->base().run_for(run_ms);
  tested.stop();
}

void check_no_extensions(Trial *trial, const Subject &subject) {
  TrialHost host;
  host.base().offer_extensions = false;
  check_without(trial, subject, &host, "extensions");
}

void check_missing_extension(Trial *trial, const Subject &subject) {
  for (const char *id :
       {BH_EXT_HOST_EXECUTOR, BH_EXT_HOST_FD, BH_EXT_HOST_SECRETS, BH_EXT_HOST_METRICS,
        BH_EXT_HOST_STORE, BH_EXT_HOST_LISTEN, BH_EXT_HOST_SPAWN, BH_EXT_HOST_TOOLS,
        BH_EXT_HOST_POLICY, BH_EXT_HOST_TELEMETRY, BH_EXT_HOST_CONNECTOR, BH_EXT_HOST_TRANSPORT,
        BH_EXT_HOST_EVENT, BH_EXT_HOST_HTTP}) {
    TrialHost host;
    host.base().add_ext(id, nullptr);
    check_without(trial, subject, &host, id);
  }
}

void check_error_buffers(Trial *trial, const Subject &subject) {
  TrialHost host;
  const auto loaded = Loaded::load(trial, subject, &host, Rule::error_buffers);
  if (!loaded) return;
  trial->checked(Rule::error_buffers);
  // A buffer of an older or smaller host: only the members up to `code` exist.
  struct Short {
    bh_error error;
  } small;
  const auto call = [&](bh_error *error) {
    Tested tested(trial, *loaded, &host, Rule::error_buffers);
    if (!tested.create()) return;
    trial->step(Rule::error_buffers, error == nullptr ? "configure() with error == NULL"
                                                      : "configure() with a short error buffer");
    tested.plugin()->configure(tested.self(), bh::str("[]"), error);
    trial->step(Rule::error_buffers, "create() with an unknown id");
    const bh_plugin *plugin = nullptr;
    loaded->entry().create("no-such-plugin", host.table(), &plugin, error);
  };
  call(nullptr);
  std::memset(&small, 0x5a, sizeof small);
  small.error.size = offsetof(bh_error, retry_after_ms);
  const Short before = small;
  call(&small.error);
  constexpr std::size_t kept = offsetof(bh_error, retry_after_ms);
  if (std::memcmp(reinterpret_cast<const char *>(&small) + kept,
                  reinterpret_cast<const char *>(&before) + kept, sizeof small - kept) != 0) {
    trial->violated(Rule::error_buffers, "it writes beyond error->size");
  }
}

void check_newer_host(Trial *trial, const Subject &subject) {
  TrialHost host;
  host.be_newer();
  const auto loaded = Loaded::load(trial, subject, &host, Rule::newer_host);
  if (!loaded) {
    trial->violated(Rule::newer_host, "init fails with a newer host");
    return;
  }
  trial->checked(Rule::newer_host);
  Tested tested(trial, *loaded, &host, Rule::newer_host);
  if (!tested.create() || !tested.configure(subject.config) || !tested.start()) {
    trial->violated(Rule::newer_host, "it rejects a newer host: " + tested.problem());
  }
}

void check_two_instances(Trial *trial, const Subject &subject) {
  TrialHost first_host, second_host;
  const auto loaded = Loaded::load(trial, subject, &first_host, Rule::two_instances);
  if (!loaded) return;
  if (subject.library.manifest.exclusive) return;  // only one can be started at a time
  trial->checked(Rule::two_instances);
  Tested first(trial, *loaded, &first_host, Rule::two_instances);
  Tested second(trial, *loaded, &second_host, Rule::two_instances);
  if (!first.run(subject.config)) return;
  if (!second.create() || !second.configure(subject.config) || !second.start()) {
    trial->violated(Rule::two_instances, "a second instance does not start: " + second.problem());
    return;
  }
  if (first.self() == second.self()) {
    trial->violated(Rule::two_instances, "both instances have the same `self`");
    trial->finished();
    ::_exit(0);  // destroying it twice would be an error of this program
  }
  bh_error error = bh::make_error();
  trial->step(Rule::two_instances, "probe()");
  if (second.plugin()->probe(second.self(), &error) < 0) return;  // violates another rule
  first.stop();
  first.destroy();
  second_host.base().run_for(run_ms);
  trial->step(Rule::two_instances, "probe() after the other instance was destroyed");
  if (second.plugin()->probe(second.self(), &error) < 0) {
    trial->violated(Rule::two_instances, "an instance fails after the other was destroyed");
  }
}

constexpr std::array scenarios{
    Scenario{nullptr, check_bad_configuration},
    Scenario{nullptr, check_no_extensions},
    Scenario{nullptr, check_error_buffers},
    Scenario{nullptr, check_newer_host},
    Scenario{nullptr, check_two_instances},
    Scenario{nullptr, check_growth},
    Scenario{nullptr, check_missing_extension, {Rule::fewer_extensions}},
};

}  // namespace

void check_loading(Trial *trial, const Subject &subject) {
  TrialHost host;
  const bh_entry *entry = map(trial, subject);
  if (entry != nullptr && check_descriptors(trial, subject, entry)) check_init(trial, entry, &host);
}

void check_instance(Trial *trial, const Subject &subject) {
  {
    TrialHost host;
    // What static constructors change violates Rule::silent_constructors.
    trial->step(Rule::silent_constructors, "its static constructors");
    if (auto copy = duplicate(subject.library)) {
      static_cast<void>(map_library(std::move(copy->file), copy->status));
    }
    const ProcessState before = process_state();
    live(trial, subject, &host);
    trial->checked(Rule::host_rules);
    for (const std::string &fault : host.faults()) trial->violated(Rule::host_rules, fault);
    trial->checked(Rule::process_unchanged);
    if (const auto changed = difference(before, process_state()); !changed.empty()) {
      trial->violated(Rule::process_unchanged, "it changes " + changed);
    }
  }
  trial->checked(Rule::clean_exit);
  trial->step(Rule::clean_exit, "its exit handlers");
  trial->finished();
  ::exit(0);
}

std::span<const Scenario> life_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
