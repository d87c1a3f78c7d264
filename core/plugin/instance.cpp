#include "plugin/instance.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "bulkhead/cpp/text.hpp"
#include "plugin/config_schema.hpp"
#include "plugin/host_functions.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

bool is_instance_id(std::string_view id) noexcept {
  if (id.empty() || id.size() > 64 || id == "." || id == "..") return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return bh::is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
  });
}

bh_error empty_error() noexcept {
  bh_error error{};
  error.size = sizeof error;
  return error;
}

// Calls a plugin function. If it throws an exception, the exception is converted to an error.
template <class F>
bh_status call(bh_error *error, F &&f) noexcept {
  try {
    return f();
  } catch (...) {
    static constexpr std::string_view text = "threw an exception across the ABI";
    text.copy(error->text, text.size());
    error->n = static_cast<std::uint32_t>(text.size());
    return BH_E_INTERNAL;
  }
}

void add_count(std::string &text, std::uint32_t n, const char *what) {
  if (n == 0) return;
  text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + what;
}

}  // namespace

std::string_view to_string(InstanceState state) noexcept {
  static constexpr std::string_view names[] = {"created",  "configured", "started",
                                               "draining", "stopped",    "destroyed"};
  const auto i = static_cast<std::size_t>(state);
  return i < std::size(names) ? names[i] : "unknown";
}

std::string Instance::who() const {
  std::string text = "plugin " + library_->description().id;
  if (id_ != library_->description().id) text += ", instance " + id_;
  return text;
}

std::string Instance::about(std::string_view what, const bh_error &error, bh_status status) const {
  return who() + ": " + std::string(what) + ": " +
         error_text(error, "status " + std::to_string(status) + " without an error message");
}

Result<std::unique_ptr<Instance>> Instance::create(std::string id, std::shared_ptr<Library> library,
                                                   HostContext &context, void *user) {
  if (library == nullptr || context.reactor == nullptr) {
    return fail(BH_E_INVALID, "an instance requires a library and a reactor");
  }
  if (!is_instance_id(id)) {
    return fail(BH_E_INVALID,
                "instance id \"" + bh::one_line(id, 64) +
                    "\" must have 1 to 64 characters from A-Z, a-z, 0-9, '_', '.' and '-'");
  }
  std::unique_ptr<Instance> made(new Instance);
  made->id_ = std::move(id);
  made->library_ = std::move(library);
  made->context_ = &context;
  made->user = user;
  made->host_ = HostFunctions::host_of(*made);
  const bh_plugin *plugin = nullptr;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] {
    return made->library_->entry().create(made->library_->description().id.c_str(), &made->host_,
                                          &plugin, &error);
  });
  if (status != BH_OK) {
    return fail(status < 0 ? status : BH_E_INTERNAL, made->about("create failed", error, status));
  }
  if (auto ok = made->adopt(plugin); !ok) return std::unexpected(ok.error());
  return made;
}

// Copies the plugin's table. Functions that an older plugin does not provide are replaced with
// functions that do nothing.
Result<void> Instance::adopt(const bh_plugin *plugin) {
  bh_error none = empty_error();
  if (plugin == nullptr || !BH_HAS(bh_plugin, plugin, destroy) || plugin->destroy == nullptr) {
    return fail(BH_E_ABI, about("create returned an invalid instance", none, BH_OK));
  }
  table_.size = sizeof table_;
  table_.self = plugin->self;
  table_.configure = plugin->configure;
  table_.start = plugin->start;
  table_.probe = plugin->probe;
  table_.drain = plugin->drain;
  table_.stop = plugin->stop;
  table_.destroy = plugin->destroy;
  table_.get_ext = [](void *, const char *) -> const void * { return nullptr; };
  if (BH_HAS(bh_plugin, plugin, get_ext)) table_.get_ext = plugin->get_ext;
  if (table_.configure == nullptr || table_.start == nullptr || table_.probe == nullptr ||
      table_.drain == nullptr || table_.stop == nullptr || table_.get_ext == nullptr) {
    return fail(BH_E_ABI, about("create returned a table that lacks a function", none, BH_OK));
  }
  return {};
}

// Changes the state from `from` to `to`. Returns an error if the current state is not `from`, or if
// `may` is false.
Result<void> Instance::step(InstanceState from, InstanceState to, const char *name, bool may) {
  if (state_ == from && may) {
    state_ = to;
    return {};
  }
  std::string text = who() + ": " + name + " called in state " + std::string(to_string(state_)) +
                     (failed_ ? " after a failure" : "");
  log(BH_LOG_HOST_MISBEHAVES, text);
  return fail(BH_E_INVALID, std::move(text));
}

Result<void> Instance::configure(std::string_view config_json) {
  using enum InstanceState;
  if (auto ok = step(created, configured, "configure", !failed_); !ok) return ok;
  bh_error error = empty_error();
  const auto fits = check_config(library_->description().config_schema, config_json);
  if (!fits) {
    failed_ = true;
    return fail(fits.error().code, who() + ": " + fits.error().text);
  }
  const bh_status status = call(&error, [&] {
    return table_.configure(table_.self, {config_json.data(), config_json.size()}, &error);
  });
  if (status == BH_OK) return {};
  failed_ = true;
  return fail(status < 0 ? status : BH_E_INTERNAL,
              about("its configuration was rejected", error, status));
}

Result<void> Instance::start() {
  using enum InstanceState;
  if (auto ok = step(configured, started, "start", !failed_); !ok) return ok;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] { return table_.start(table_.self, &error); });
  if (status == BH_OK) return {};
  failed_ = true;
  state_ = stopped;
  release_held();
  return fail(status < 0 ? status : BH_E_INTERNAL, about("cannot start", error, status));
}

bh_status Instance::probe(std::string *text) {
  if (state_ != InstanceState::started && state_ != InstanceState::draining) return BH_E_INVALID;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] { return table_.probe(table_.self, &error); });
  if (status < 0) *text = about("has failed", error, status);
  return status;
}

void Instance::drain(std::uint64_t deadline_ns) {
  using enum InstanceState;
  if (!step(started, draining, "drain", true)) return;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] {
    table_.drain(table_.self, deadline_ns);
    return BH_OK;
  });
  if (status != BH_OK) log(BH_LOG_PLUGIN_MISBEHAVES, about("drain", error, status));
}

void Instance::stop() {
  using enum InstanceState;
  if (state_ == stopped) return;
  const InstanceState from = state_ == draining ? draining : started;
  if (!step(from, stopped, "stop", true)) return;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] {
    table_.stop(table_.self);
    return BH_OK;
  });
  if (status != BH_OK) log(BH_LOG_PLUGIN_MISBEHAVES, about("stop", error, status));
  release_held();
}

// Logs and removes reactor resources that the plugin has not released.
void Instance::release_held() noexcept {
  ended_.store(true, std::memory_order_release);
  Reactor::Held held = context_->reactor->held(this);
  // Blocking work that stop() has cancelled takes some time to finish.
  for (int ms = 0; held.blocking != 0 && ms < max_job_end_ms; ++ms) {
    ::usleep(1000);
    held = context_->reactor->held(this);
  }
  context_->reactor->forget(this);
  std::string left;
  add_count(left, held.watches, "watch(es)");
  add_count(left, held.timers, "timer(s)");
  add_count(left, held.posted, "posted function(s)");
  add_count(left, held.blocking, "blocking job(s)");
  if (!left.empty()) log(BH_LOG_PLUGIN_MISBEHAVES, "unreleased resources: " + left);
  abandoned_ = held.blocking != 0;
}

// Stops the instance if necessary. Then destroys it, unless a pool thread is still running its
// code.
void Instance::end() noexcept {
  using enum InstanceState;
  if (state_ == started || state_ == draining) stop();
  if (!ended_.load(std::memory_order_relaxed)) release_held();
  context_->reactor->forget(this);  // drops functions that other threads posted in the meantime
  if (abandoned_) {
    log(BH_LOG_PLUGIN_MISBEHAVES, "stays in memory: its blocking work is still running");
    return;
  }
  state_ = destroyed;
  for (const std::string &path : socket_files_) ::unlink(path.c_str());
  if (table_.destroy == nullptr) return;
  bh_error error = empty_error();
  const bh_status status = call(&error, [&] {
    table_.destroy(table_.self);
    return BH_OK;
  });
  if (status != BH_OK) log(BH_LOG_PLUGIN_MISBEHAVES, about("destroy", error, status));
}

void Instance::log(std::int32_t level, std::string_view text) const noexcept {
  try {
    if (context_->log) context_->log(level, id_, bh::one_line(text, max_log_bytes));
  } catch (...) {
    // A failure to log must not terminate the process.
  }
}

bh_status Instance::report_misuse(const char *function) const noexcept {
  log(BH_LOG_PLUGIN_MISBEHAVES, std::string(function) + " was called with invalid arguments");
  return BH_E_INVALID;
}

}  // namespace bulkhead

void std::default_delete<bulkhead::Instance>::operator()(bulkhead::Instance *instance) const {
  instance->end();
  if (instance->abandoned_) {
    static auto &kept = *new std::vector<bulkhead::Instance *>;
    kept.push_back(instance);
  } else {
    delete instance;
  }
}
