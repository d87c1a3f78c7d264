#include "supervised_gateway.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>

#include "banner.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "logger.hpp"
#include "paths.hpp"
#include "plan.hpp"
#include "profile/difference.hpp"
#include "profile_source.hpp"
#include "run_host.hpp"
#include "service.hpp"
#include "signals.hpp"
#include "snapshot.hpp"
#include "supervisor.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000u +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000u;
}

// The supervisor holds all secrets: no core file gets them, and no other process of this user may
// look into its memory.
void close_memory() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

class SupervisedGateway {
 public:
  SupervisedGateway(const Arguments &arguments, LoadedProfile loaded)
      : arguments_(arguments),
        is_serve_(arguments.command == Command::serve),
        config_(loaded.file),
        project_(loaded.project),
        state_dir_(loaded.profile.state_dir),
        profile_(std::move(loaded.profile)),
        logger_(level_named(arguments.log_level),
                arguments.verbose ? level_named(arguments.log_level) : LogLevel::warn) {}

  int run() {
    open_log();
    raise_file_limit();
    close_memory();
    if (is_serve_) logger_.hold();  // the banner comes first
    for (const auto &note : profile_.notes) logger_.log(LogLevel::warn, "profile", note);
    facts_.log_level = static_cast<std::int32_t>(logger_.level());
    facts_.eager = is_serve_;
    facts_.is_root = ::geteuid() == 0;
    facts_.fingerprint_key = random_key();
    SupervisorHooks hooks;
    hooks.log = [this](LogLevel level, std::string_view component, std::string_view text) {
      if (is_serve_ && !reported_ && component == "router" && level == LogLevel::warn) {
        logger_.log_to_file(level, component, text);
      } else {
        logger_.log(level, component, text);
      }
    };
    hooks.on_ready = [this] { ready_ = true; };
    hooks.on_status = [this] { on_status(); };
    auto supervisor =
        Supervisor::create(plan_compartments(profile_, facts_), state_dir_, std::move(hooks));
    if (!supervisor) return give_up(supervisor.error());
    supervisor_ = std::move(*supervisor);
    set_signalled([](void *arg) { static_cast<Supervisor *>(arg)->request_stop(); },
                  supervisor_.get());
    open_service();
    auto done = supervisor_->run();
    set_signalled(nullptr, nullptr);
    Console::get().progress("");
    service_.reset();
    supervisor_.reset();
    return done ? exit_ok : give_up(done.error());
  }

 private:
  void open_log() {
    const std::string dir = state_dir_ + "/log";
    auto made = make_private_dir(dir);
    if (made) made = make_private_dir(dir + "/servers");
    if (made) made = logger_.open(dir + "/bulkhead.log");
    if (!made) complain(made.error().text + "; going on without a log file");
  }

  int give_up(const Error &error) {
    logger_.release();
    logger_.log_to_file(LogLevel::error, "start", error.text);
    return complain(error.text);
  }

  void open_service() {
    ServiceBackend backend;
    backend.snapshot = [this](std::function<void(std::string)> done) {
      supervisor_->ask_status([this, done = std::move(done)] {
        ProcessFacts facts;
        facts.version = BULKHEAD_VERSION;
        facts.command = is_serve_ ? "serve" : "stdio";
        facts.config = config_;
        facts.log_file = logger_.path();
        facts.socket = service_->socket_path();
        facts.pid = ::getpid();
        facts.uptime_ms = now_ms() - started_ms_;
        facts.compartments = supervisor_->compartments();
        done(snapshot_json(facts, supervisor_->status()));
      });
    };
    backend.apply = [this](LoadedProfile next, std::function<void(Result<ApplyReport>)> done) {
      apply(std::move(next.profile), std::move(done));
    };
    backend.look = [this](std::function<void(const HostStatus &)> done) {
      supervisor_->ask_status([this, done = std::move(done)] { done(supervisor_->status()); });
    };
    backend.log = [this](LogLevel level, std::string_view text) {
      logger_.log(level, "service", text);
    };
    const auto transports = is_serve_ ? Transports::served : Transports::stdio;
    service_ = std::make_unique<Service>(supervisor_->reactor(), arguments_, transports,
                                         std::move(backend));
    watch_reload_signal(supervisor_->reactor(), this, [](void *arg) {
      static_cast<SupervisedGateway *>(arg)->service_->reload();
    });
  }

  void apply(Profile next, std::function<void(Result<ApplyReport>)> done) {
    // The endpoint would say the same of its part; folders and services are the others' affair.
    const std::vector<std::string> fixed = keep_fixed(profile_, &next);
    supervisor_->apply(plan_compartments(next, facts_),
                       [this, next, fixed, done = std::move(done)](Result<ApplyReport> report) {
                         if (report) {
                           profile_ = next;
                           report->needs_restart = fixed;
                         }
                         done(std::move(report));
                       });
  }

  void on_status() {
    if (!is_serve_ || !ready_ || reported_) return;
    Console &console = Console::get();
    const HostStatus &status = supervisor_->status();
    if (!shown_) {
      shown_ = true;
      BannerFacts facts;
      facts.version = BULKHEAD_VERSION;
      facts.endpoints = status.endpoints;
      facts.config = config_;
      facts.project = project_;
      facts.log_file = logger_.path();
      facts.state_dir = state_dir_;
      if (!facts.endpoints.empty() && !profile_.transports.empty()) {
        const PluginUse &first = profile_.transports.front();
        find_token(facts.endpoints.front(), first.config_json,
                   state_dir_ + "/secrets/" + first.id + "/http-token", &facts);
      }
      console.write(banner(facts));
      logger_.release();
    }
    bool settled = true;
    for (const ServerStatus &server : status.servers) {
      settled = settled && server.state != ServerState::connecting;
    }
    if (!settled) return console.progress(progress_line(status));
    reported_ = true;
    console.progress("");
    console.write(servers_report(status) + (console.is_terminal() ? "\nCtrl-C stops.\n" : ""));
  }

  const std::uint64_t started_ms_ = now_ms();
  const Arguments arguments_;
  const bool is_serve_;
  const std::string config_, project_, state_dir_;
  Profile profile_;  // that runs
  PlanFacts facts_;
  Logger logger_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<Service> service_;
  bool ready_ = false, shown_ = false, reported_ = false;
};

}  // namespace

int run_supervised(const Arguments &arguments, LoadedProfile loaded) {
  return SupervisedGateway(arguments, std::move(loaded)).run();
}

}  // namespace bulkhead::program
