// Implements `serve` and `stdio`, which run a gateway until it is stopped.
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>

#include "base/idle_memory.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/peer.hpp"
#include "common/signals.hpp"
#include "compartment/compartment.hpp"
#include "embed/policy_watch.hpp"
#include "gateway/gateway_front.hpp"
#include "gateway/supervised_gateway.hpp"
#include "service/metrics_server.hpp"
#include "service/service.hpp"
#include "service/service_api.hpp"
#include "shared/joined_stdio.hpp"
#include "sources/profile_source.hpp"
#include "state/list_writer.hpp"
#include "state/pin_writer.hpp"
#include "supervisor/plan.hpp"
#include "swap/plugin_swaps.hpp"

namespace bulkhead::program {
namespace {

// A gateway that runs in a single process.
class Gateway {
 public:
  Gateway(const Arguments &arguments, LoadedProfile loaded)
      : arguments_(arguments), front_(arguments, loaded), profile_(std::move(loaded.profile)) {}

  int run() {
    front_.begin();
    HostOptions options;
    options.log = [this](LogLevel level, std::string_view component, std::string_view text) {
      front_.log(level, component, text);
      // Plugins may log on other threads.
      if (std::this_thread::get_id() == thread_ && service_ != nullptr) {
        service_->on_log(level, component, text);
      }
    };
    options.log_level = front_.log_level();
    set_policy_hang_handler([this](std::string_view policy, std::uint64_t limit_ms) {
      front_.log(LogLevel::error, "watchdog", hang_text(policy, limit_ms));
      ::_exit(exit_failed);
    });
    // The host calls this in the middle of a change, so on_status() defers its work.
    options.on_status = [this] { on_status(); };
    // With `stdio`, servers are not started until the capabilities of its only client are known.
    options.eager = front_.is_serve();
    // Used to seal session IDs, so that evicted sessions can be resumed.
    options.sealing_key = random_key();
    options.approval_hint = approval_hint;
    options.adopt_orphans = true;
    options.on_pins = [this](const std::vector<PinNews> &news) {
      if (pins_ != nullptr) pins_->add(news);
    };
    options.on_list = [this](const ListNews &news) {
      if (lists_ != nullptr) lists_->add(news);
    };
    auto metrics = front_.open_metrics(profile_.metrics_listen);
    if (!metrics) return front_.give_up(metrics.error());
    metrics_listener_ = std::move(*metrics);
    socket_ = front_.open_service_socket();
    const std::string state_dir = profile_.state_dir;
    const Profile profile = profile_;
    auto host = Host::create(std::move(profile_), std::move(options));
    if (!host) return front_.give_up(host.error());
    host_ = std::move(*host);
    PinWriter::Hooks hooks;
    hooks.warn = [this](std::string_view text) { front_.log(LogLevel::warn, "pins", text); };
    pins_ = std::make_unique<PinWriter>(host_->reactor(), state_dir, std::move(hooks));
    pins_->set_profile(profile);
    lists_ = std::make_unique<ListWriter>(
        host_->reactor(), state_dir,
        ListWriter::Hooks{
            [this](std::string_view text) { front_.log(LogLevel::warn, "lists", text); }, {}});
    lists_->set_profile(profile);
    set_signalled_host(host_.get());
    const int code = start_and_run();
    set_signalled_host(nullptr);
    api_.reset();
    metrics_.reset();
    service_.reset();
    host_.reset();
    pins_.reset();
    lists_.reset();
    return code;
  }

 private:
  int start_and_run() {
    const auto watched = front_.watch_parent_process(
        host_->reactor(), this,
        bh::fd_callback(this, [](Gateway &self) { self.host_->request_stop(); }));
    if (!watched) return front_.give_up(watched.error());
    if (auto started = host_->start(); !started) return front_.give_up(started.error());
    open_service();
    started_ = true;
    front_.show_banner(host_->status());
    on_status();
    host_->reactor().set_idle_handler(release_idle_memory);
    host_->run();
    Console::get().progress("");
    return exit_ok;
  }

  void open_service() {
    service_ = std::make_unique<Service>(host_->reactor(), arguments_, transports_of(arguments_),
                                         backend());
    watch_reload_signal(host_->reactor(), bh::callback(this, [](Gateway &self) {
                          // service_ is null while ~Service() runs the loop.
                          if (self.service_ != nullptr) self.service_->reload();
                        }));
    const AskService ask = [this](ServiceRequest request, const std::string &value,
                                  ServiceReply reply) {
      if (service_ == nullptr)
        return reply(refuse_with(BH_E_UNAVAILABLE, "the gateway is stopping"));
      service_->ask(request, value, std::move(reply));
    };
    if (metrics_listener_) metrics_.emplace(host_->reactor(), std::move(metrics_listener_), ask);
    if (socket_ == nullptr) return;
    api_ = std::make_unique<ServiceApi>(
        host_->reactor(), socket_->fd(),
        [](int fd, const std::function<void(bool)> &done) { done(peer_may_ask(fd, ::getpid())); },
        ask);
  }

  ServiceBackend backend() {
    ServiceBackend backend;
    backend.status = [this](const std::function<void(const ServiceStatus &)> &done) {
      pins_->when_written([this, done] {
        const std::string socket = socket_ == nullptr ? std::string() : socket_->path();
        done({front_.process_facts(socket), host_->status()});
      });
    };
    backend.apply = [this](LoadedProfile next,
                           const std::function<void(Result<ApplyReport>)> &done) {
      const Profile profile = next.profile;
      auto report = host_->apply(std::move(next.profile));
      // The service reads BH_E_UNAVAILABLE as "the endpoint starts with the new profile". A plugin
      // can return any status when it rejects a profile, so the plugin's status is not forwarded.
      if (!report) report = fail(BH_E_INVALID, std::move(report.error().text));
      if (report) {
        front_.set_project(next.project);
        pins_->set_profile(profile);
        lists_->set_profile(profile);
      }
      done(std::move(report));
    };
    backend.look = [this](const std::function<void(const HostStatus &)> &done) {
      done(host_->status());
    };
    backend.log = [this](LogLevel level, std::string_view text) {
      front_.log(level, "service", text);
    };
    backend.approvals = [this](ApprovalRequest request, const std::string &value,
                               const std::function<void(Result<std::string>)> &done) {
      done(answer_approval_request(*host_, static_cast<std::uint32_t>(request), value));
    };
    return backend;
  }

  // With many servers, one iteration of the event loop may bring many changes. They are evaluated
  // together, after the iteration.
  void on_status() {
    if (!front_.is_serve() || !started_ || front_.reported() || report_pending_) return;
    report_pending_ = true;
    host_->reactor().defer(this, bh::callback<&Gateway::report>(this));
  }

  void report() {
    report_pending_ = false;
    if (!stop_requested()) front_.show_progress(host_->status(), host_->settled());
  }

  const Arguments arguments_;
  GatewayFront front_;
  Profile profile_;
  const std::thread::id thread_ = std::this_thread::get_id();  // the thread of the event loop
  // Declared before host_, because the host's pool threads use these members until it is destroyed.
  std::unique_ptr<PinWriter> pins_;
  std::unique_ptr<ListWriter> lists_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<ServiceSocket> socket_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<ServiceApi> api_;
  OwnedFd metrics_listener_;  // held until the metrics server takes it
  std::optional<MetricsServer> metrics_;
  bool started_ = false, report_pending_ = false;
};

int run_gateway(Arguments arguments, Arguments::Serves serves) {
  arguments.serves = serves;
  auto loaded = load_checked(arguments, transports_of(arguments));
  if (!loaded) return report_config_errors(loaded.error());
  const std::string refused = PluginSwaps::watch_refusals(loaded->profile, loaded->holds);
  if (!refused.empty()) return complain(refused);
  if (serves == Arguments::Serves::stdio && !arguments.single_process) {
    if (auto gateway = gateway_to_use(arguments, loaded->profile)) {
      const Limits limits = loaded->profile.limits;
      loaded->profile = {};  // it contains credentials that are not needed
      return run_joined_stdio(arguments, *std::move(gateway), limits);
    }
  }
  if (!arguments.single_process) return run_supervised(arguments, std::move(*loaded));
  for (const std::vector<PluginUse> *uses : {&loaded->profile.tools, &loaded->profile.policies}) {
    for (const PluginUse &use : *uses) {
      if (!use.watch) continue;
      return complain(use.id +
                      ": watch = true is not possible with --single-process, since plugins "
                      "cannot be swapped there");
    }
  }
  return Gateway(arguments, std::move(*loaded)).run();
}

}  // namespace

int run_serve(const Arguments &arguments) {
  return run_gateway(arguments, Arguments::Serves::http);
}
int run_stdio(const Arguments &arguments) {
  return run_gateway(arguments, Arguments::Serves::stdio);
}

}  // namespace bulkhead::program
