#include "gateway/run_host.hpp"

#include <algorithm>

#include "common/console.hpp"
#include "common/signals.hpp"
#include "gateway/banner.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

LogLevel level_named(std::string_view name) noexcept {
  for (const auto level : {LogLevel::debug, LogLevel::warn, LogLevel::error}) {
    if (to_string(level) == name) return level;
  }
  return LogLevel::info;
}

// Commands that run only briefly print errors (with --verbose, all log lines) but do not write a
// log file.
ShortRun::ShortRun(const Arguments &arguments)
    : logger_(LogLevel::error,
              arguments.verbose ? level_named(arguments.log_level) : LogLevel::error) {}

ShortRun::~ShortRun() {
  Console::get().progress("");
  if (host_ == nullptr) return;
  host_->request_stop();
  host_->run();  // stops the servers within the limits of the profile
  set_signalled_host(nullptr);
}

void ShortRun::keep_only(Profile &profile, std::string_view server) {
  std::erase_if(profile.servers, [&](const ServerDef &def) { return def.name != server; });
  std::erase_if(profile.tools, [&](const PluginUse &use) { return use.id != server; });
}

std::vector<std::string> ShortRun::server_names(const Profile &profile) {
  std::vector<std::string> out;
  for (const auto &def : profile.servers) out.push_back(def.name);
  for (const auto &use : profile.tools) out.push_back(use.id);
  return out;
}

Result<void> ShortRun::start(Profile profile) {
  constexpr std::uint64_t margin_ms = 2'000;
  settle_ms_ = profile.limits.connect_timeout_ms;
  for (const auto &def : profile.servers) {
    settle_ms_ = std::max(settle_ms_, def.connect_timeout_ms.value_or(0));
  }
  settle_ms_ += margin_ms;
  // The grace period is short, because the user is waiting for the command to exit and most servers
  // exit quickly when their input is closed.
  constexpr std::uint64_t end_ms = 1'000;
  profile.limits.shutdown_grace_ms = std::min(profile.limits.shutdown_grace_ms, end_ms);
  HostOptions options;
  options.log = [this](LogLevel level, std::string_view component, std::string_view text) {
    logger_.log(level, component, text);
  };
  options.log_level = logger_.level();
  options.approval_hint =
      "this command runs its own gateway, which has no approval surface; start a gateway with the "
      "same configuration (bulkhead serve) to use its servers";
  options.on_list = on_list_;
  options.on_status = [this] {  // called during a change, so the work is deferred
    if (!waiting_ || progress_pending_ || !Console::get().is_terminal()) return;
    progress_pending_ = true;
    host_->reactor().defer(this, bh::callback<&ShortRun::show_progress>(this));
  };
  auto host = Host::create(std::move(profile), std::move(options));
  if (!host) return std::unexpected(host.error());
  host_ = std::move(*host);
  set_signalled_host(host_.get());
  return host_->start();
}

void ShortRun::wait_settled() {
  waiting_ = true;
  show_progress();
  host_->run_until([this] { return host_->settled() || stop_requested(); }, settle_ms_);
  waiting_ = false;
  Console::get().progress("");
}

void ShortRun::show_progress() {
  progress_pending_ = false;
  if (waiting_) Console::get().progress(progress_line(host_->status()));
}

}  // namespace bulkhead::program
