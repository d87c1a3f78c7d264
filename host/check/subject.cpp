#include "check/subject.hpp"

#include <unistd.h>

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "plugin/entry_check.hpp"
#include "plugin/mapping.hpp"
#include "plugin/text.hpp"

namespace bulkhead::check {
namespace {

constexpr std::uint64_t drain_ms = 500;
constexpr int job_end_ms = 500;      // how long pool jobs may run after stop
constexpr int thread_exit_ms = 500;  // how long an ending thread may still be listed

}  // namespace

std::unique_ptr<Loaded> Loaded::load(Trial *trial, const Subject &subject, TrialHost *host,
                                     Rule rule) {
  trial->step(rule, "loading the library");
  auto copy = duplicate(subject.library);
  if (!copy) return nullptr;
  const auto entry_fn = map_library(std::move(copy->file), copy->status);
  if (!entry_fn) return nullptr;
  const bh_entry *entry = (*entry_fn)();
  const auto plugins = check_entry(entry);
  if (!plugins) return nullptr;
  std::unique_ptr<Loaded> loaded(new Loaded);
  for (const PluginDescription &plugin : *plugins) {
    if (plugin.id == subject.library.manifest.id) loaded->description_ = plugin;
  }
  if (loaded->description_.id.empty()) return nullptr;
  bh_error error = bh::make_error();
  host->forbid("init");
  const bh_status status = entry->init(host->table(), &error);
  host->allow();
  if (status < 0) return nullptr;
  loaded->entry_ = entry;
  loaded->host_ = host;
  return loaded;
}

Loaded::~Loaded() {
  if (entry_ == nullptr || host_ == nullptr) return;  // init has not succeeded
  host_->forbid("deinit");
  entry_->deinit();
  host_->allow();
}

void check_error(Trial *trial, Rule rule, std::string_view function, bh_status status,
                 const bh_error &error) {
  if (status >= 0) return;
  const std::string where(function);
  if (error.n > sizeof error.text) {
    trial->violated(rule, where + " sets an error text longer than the buffer");
  } else if (error.n == 0) {
    trial->violated(rule, where + " returns error " + std::to_string(status) + " without a text");
  } else if (!bh::is_utf8(bh::text(error))) {
    trial->violated(rule, where + " returns an error text that is not UTF-8");
  } else if (error.code != status) {
    trial->violated(rule, where + " returns " + std::to_string(status) + ", but sets the code " +
                              std::to_string(error.code));
  }
}

Tested::Tested(Trial *trial, const Loaded &loaded, TrialHost *host, Rule rule)
    : trial_(*trial), loaded_(loaded), host_(*host), rule_(rule) {}

Tested::~Tested() {
  if (started_) stop();
  if (plugin_ != nullptr) destroy();
  for (const std::string &fault : host_.faults()) trial_.violated(Rule::host_rules, fault);
}

void Tested::step(const char *what) {
  trial_.step(rule_, what);
}

bool Tested::failed(const char *function, bh_status status, const bh_error &error) {
  if (status >= 0) return false;
  problem_ = std::string(function) + ": " + error_text(error, "error " + std::to_string(status));
  return true;
}

bool Tested::create() {
  step("create()");
  bh_error error = bh::make_error();
  host_.forbid("create");
  const bh_status status =
      loaded_.entry().create(loaded_.description().id.c_str(), host_.table(), &plugin_, &error);
  host_.allow();
  if (failed("create", status, error)) {
    plugin_ = nullptr;
    return false;
  }
  if (plugin_ == nullptr) problem_ = "create: it returns BH_OK without an instance";
  return plugin_ != nullptr;
}

bool Tested::configure(std::string_view config) {
  step("configure()");
  bh_error error = bh::make_error();
  const bh_status status = plugin_->configure(self(), bh::str(config), &error);
  check_error(&trial_, Rule::configure, "configure", status, error);
  return !failed("configure", status, error);
}

bool Tested::start() {
  step("start()");
  bh_error error = bh::make_error();
  const bh_status status = plugin_->start(self(), &error);
  check_error(&trial_, Rule::configure, "start", status, error);
  if (failed("start", status, error)) return false;
  started_ = true;
  return true;
}

bool Tested::run(std::string_view config) {
  if (create() && configure(config) && start()) return true;
  trial_.not_checked(id_of(rule_) + ": the plugin does not start: " + problem_);
  return false;
}

void Tested::drain() {
  step("drain()");
  plugin_->drain(self(), bh::monotonic_ns() + drain_ms * bh::ns_per_ms);
}

void Tested::stop() {
  step("stop()");
  started_ = false;
  plugin_->stop(self());
  // Like a host, gives the pool jobs that stop() has cancelled some time to end.
  host_.base().run_until([&] { return host_.base().blocking() == 0; }, job_end_ms);
}

void Tested::destroy() {
  if (host_.base().blocking() > 0) {  // a host never destroys such an instance
    trial_.violated(Rule::releases_everything, "pool jobs still run after stop");
    trial_.finished();
    ::_exit(0);
  }
  step("destroy()");
  host_.forbid("destroy");
  plugin_->destroy(self());
  host_.allow();
  plugin_ = nullptr;
}

Held held(const Trial &trial) {
  return {trial.process().descriptors(), trial.process().threads()};
}

void check_stopped(Trial *trial, Rule rule, TrialHost *host, const Held &before) {
  const auto report = [&](std::size_t count, const char *what) {
    if (count > 0) trial->violated(rule, std::to_string(count) + " " + what + " after stop");
  };
  auto &base = host->base();
  report(base.timers(), "timers remain");
  report(base.watches(), "watches remain");
  report(base.posted() + base.deferred(), "posted or deferred functions remain");
  report(base.blocking(), "pool jobs still run");
  report(base.children(), "child processes remain");
  std::size_t now = trial->process().threads();
  for (int waited = 0; now > before.threads && waited < thread_exit_ms; waited += 20) {
    ::usleep(20'000);
    now = trial->process().threads();
  }
  if (now > before.threads) report(now - before.threads, "threads remain");
}

void check_destroyed(Trial *trial, Rule rule, const Held &before) {
  for (const int fd : trial->process().descriptors()) {
    if (before.descriptors.contains(fd)) continue;
    trial->violated(rule, "descriptor " + std::to_string(fd) + " (" + trial->process().target(fd) +
                              ") is open after destroy");
  }
}

}  // namespace bulkhead::check
