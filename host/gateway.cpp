// serve and stdio: a gateway until it is told to stop.
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "banner.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "logger.hpp"
#include "paths.hpp"
#include "profile_source.hpp"
#include "run_host.hpp"
#include "service.hpp"
#include "signals.hpp"
#include "snapshot.hpp"
#include "supervised_gateway.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000u +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000u;
}

// For `status`, which is run in another folder.
std::string absolute(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

class Gateway {
 public:
  Gateway(const Arguments &arguments, LoadedProfile loaded)
      : arguments_(arguments),
        is_serve_(arguments.command == Command::serve),
        config_(absolute(loaded.file)),
        project_(loaded.project),
        state_dir_(loaded.profile.state_dir),
        profile_(std::move(loaded.profile)),
        logger_(level_named(arguments.log_level),
                arguments.verbose ? level_named(arguments.log_level) : LogLevel::warn) {
    if (profile_.transports.empty()) return;
    http_id_ = profile_.transports.front().id;
    http_config_ = profile_.transports.front().config_json;
  }

  int run() {
    open_log();
    raise_file_limit();
    if (is_serve_) logger_.hold();  // the banner comes first
    for (const auto &note : profile_.notes) logger_.log(LogLevel::warn, "profile", note);
    HostOptions options;
    options.log = [this](LogLevel level, std::string_view component, std::string_view text) {
      // Servers that fail while the gateway starts are in the table, with the reason.
      if (is_serve_ && !reported_ && component == "router" && level == LogLevel::warn) {
        logger_.log_to_file(level, component, text);
      } else {
        logger_.log(level, component, text);
      }
    };
    options.log_level = logger_.level();
    options.on_status = [this] { on_status(); };  // in the middle of a change: look at it later
    // On stdio there is one client; the servers are started with what it says that it can do, once.
    options.eager = is_serve_;
    auto host = Host::create(std::move(profile_), std::move(options));
    if (!host) return give_up(host.error());
    host_ = std::move(*host);
    set_signalled_host(host_.get());
    const int code = start_and_run();
    set_signalled_host(nullptr);
    service_.reset();
    host_.reset();
    return code;
  }

 private:
  void open_log() {
    const std::string dir = state_dir_ + "/log";
    auto made = make_private_dir(dir);
    if (made) made = logger_.open(dir + "/bulkhead.log");
    if (!made) complain(made.error().text + "; going on without a log file");
  }

  int give_up(const Error &error) {
    logger_.release();
    logger_.log_to_file(LogLevel::error, "start", error.text);
    return complain(error.text);
  }

  int start_and_run() {
    if (auto started = host_->start(); !started) return give_up(started.error());
    open_service();
    started_ = true;
    if (is_serve_) Console::get().write(banner(banner_facts()));
    logger_.release();
    on_status();
    host_->run();
    Console::get().progress("");
    return exit_ok;
  }

  BannerFacts banner_facts() const {
    BannerFacts facts;
    facts.version = BULKHEAD_VERSION;
    facts.endpoints = host_->status().endpoints;
    facts.config = config_;
    facts.project = project_;
    facts.log_file = logger_.path();
    facts.state_dir = state_dir_;
    if (facts.endpoints.empty()) return facts;
    // transport-http keeps a token it made as the secret "http-token" of its instance.
    find_token(facts.endpoints.front(), http_config_,
               state_dir_ + "/secrets/" + http_id_ + "/http-token", &facts);
    return facts;
  }

  void open_service() {
    ServiceBackend backend;
    backend.snapshot = [this](const std::function<void(std::string)> &done) {
      ProcessFacts facts;
      facts.version = BULKHEAD_VERSION;
      facts.command = is_serve_ ? "serve" : "stdio";
      facts.config = config_;
      facts.log_file = logger_.path();
      facts.socket = service_->socket_path();
      facts.pid = ::getpid();
      facts.uptime_ms = now_ms() - started_ms_;
      done(snapshot_json(facts, host_->status()));
    };
    backend.apply = [this](LoadedProfile next,
                           const std::function<void(Result<ApplyReport>)> &done) {
      done(host_->apply(std::move(next.profile)));
    };
    backend.look = [this](const std::function<void(const HostStatus &)> &done) {
      done(host_->status());
    };
    backend.log = [this](LogLevel level, std::string_view text) {
      logger_.log(level, "service", text);
    };
    const auto transports = is_serve_ ? Transports::served : Transports::stdio;
    service_ =
        std::make_unique<Service>(host_->reactor(), arguments_, transports, std::move(backend));
    watch_reload_signal(host_->reactor(), this,
                        [](void *arg) { static_cast<Gateway *>(arg)->service_->reload(); });
  }

  // With 200 servers many changes come in one turn; they are looked at once, after it.
  void on_status() {
    if (!is_serve_ || !started_ || reported_ || report_pending_) return;
    report_pending_ = true;
    const auto fn = [](void *arg) { static_cast<Gateway *>(arg)->report(); };
    host_->reactor().defer(this, fn, this);
  }

  // What a person sees is the progress until all have settled, and then one table. Later changes go
  // to the log.
  void report() {
    report_pending_ = false;
    if (stop_was_asked()) return;
    Console &console = Console::get();
    const HostStatus status = host_->status();
    if (!host_->settled()) {
      console.progress(progress_line(status));
      return;
    }
    reported_ = true;
    console.progress("");
    console.write(servers_report(status) + (console.is_terminal() ? "\nCtrl-C stops.\n" : ""));
  }

  const Arguments arguments_;
  const bool is_serve_;
  const std::string config_, project_, state_dir_;
  std::string http_id_, http_config_;  // of the first transport
  const std::uint64_t started_ms_ = now_ms();
  Profile profile_;
  Logger logger_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Service> service_;
  bool started_ = false, report_pending_ = false;
  std::atomic<bool> reported_{false};  // log lines come from any thread
};

}  // namespace

int run_gateway(const Arguments &arguments) {
  const auto transports =
      arguments.command == Command::serve ? Transports::served : Transports::stdio;
  auto loaded = load_for(arguments, transports);
  if (!loaded) return report_config_errors(loaded.error());
  if (!arguments.single_process) return run_supervised(arguments, std::move(*loaded));
  return Gateway(arguments, std::move(*loaded)).run();
}

}  // namespace bulkhead::program
