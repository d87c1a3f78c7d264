#include "gateway/gateway_front.hpp"

#include <unistd.h>

#include <utility>

#include "bulkhead/cpp/clock.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/parent_watch.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "gateway/banner.hpp"
#include "gateway/run_host.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"
#include "service/metrics_server.hpp"

namespace bulkhead::program {
GatewayFront::GatewayFront(const Arguments &arguments, const LoadedProfile &loaded)
    : is_serve_(arguments.serves == Arguments::Serves::http),
      // The path must be absolute, because `status` may run in another directory.
      config_(resolved_path(loaded.file)),
      state_dir_(loaded.profile.state_dir),
      project_(loaded.project),
      notes_(loaded.profile.notes),
      parent_pid_(arguments.parent_pid),
      no_listen_(arguments.no_listen),
      started_ms_(bh::monotonic_ms()),
      logger_(level_named(arguments.log_level),
              arguments.verbose ? level_named(arguments.log_level) : LogLevel::warn) {
  if (loaded.profile.transports.empty()) return;
  http_id_ = loaded.profile.transports.front().id;
  http_config_ = loaded.profile.transports.front().config_json;
}

void GatewayFront::begin() {
  open_log();
  raise_file_limit();
  if (is_serve_) logger_.hold();  // the banner comes first
  for (const std::string &note : notes_) logger_.log(LogLevel::warn, "profile", note);
}

void GatewayFront::open_log() {
  const std::string dir = state_dir_ + "/log";
  auto made = make_private_dir(dir);
  if (made) made = make_private_dir(dir + "/servers");
  if (made) made = logger_.open(dir + "/bulkhead.log");
  if (!made) complain(made.error().text + "; continuing without a log file");
}

void GatewayFront::log(LogLevel level, std::string_view component, std::string_view text) {
  // Failed servers are shown in the table after startup, together with the reason for the failure.
  if (is_serve_ && !reported_ && component == "router" && level == LogLevel::warn) {
    logger_.log_to_file(level, component, text);
  } else {
    logger_.log(level, component, text);
  }
}

std::unique_ptr<ServiceSocket> GatewayFront::open_service_socket() {
  auto socket = ServiceSocket::open_in(control_dirs());
  if (socket) return *std::move(socket);
  log(LogLevel::warn, "service",
      "`bulkhead status` will not find this gateway: " + socket.error().text);
  return nullptr;
}

Result<void> GatewayFront::watch_parent_process(Reactor &reactor, const void *owner,
                                                bh::FdCallback gone) {
  if (parent_pid_ <= 0) return {};
  auto watched = watch_parent(parent_pid_);
  if (!watched) return std::unexpected(watched.error());
  if (!*watched) {
    return fail(BH_E_INVALID, "--parent-pid: " + std::to_string(parent_pid_) +
                                  " is not the parent of this process");
  }
  parent_ = std::move(*watched);
  std::uint64_t watch = 0;
  if (reactor.watch(owner, parent_.get(), BH_FD_READ, gone, &watch) == BH_OK) return {};
  return fail(BH_E_LIMIT, "--parent-pid: cannot watch the process");
}

Result<OwnedFd> GatewayFront::open_metrics(const std::string &address) {
  if (address.empty()) return OwnedFd();
  auto opened = open_metrics_listener(address);
  if (opened) metrics_ = address;
  if (opened || (is_serve_ && !no_listen_)) return opened;
  log(LogLevel::warn, "service", opened.error().text + "; continuing without it");
  return OwnedFd();
}

void GatewayFront::show_banner(const HostStatus &status) {
  if (is_serve_) {
    BannerFacts facts;
    facts.version = BULKHEAD_VERSION;
    facts.endpoints = status.endpoints;
    facts.metrics = metrics_;
    facts.config = config_;
    facts.project = project_;
    facts.log_file = logger_.path();
    facts.state_dir = state_dir_;
    if (!facts.endpoints.empty() && !http_id_.empty()) {
      // transport-http stores a generated token as the secret "http-token" of its instance.
      find_token(facts.endpoints.front(), http_config_,
                 state_dir_ + "/secrets/" + http_id_ + "/http-token", &facts);
    }
    Console::get().offer(banner(facts));
  }
  logger_.release();
}

void GatewayFront::show_progress(const HostStatus &status, bool settled) {
  if (!is_serve_ || reported_) return;
  Console &console = Console::get();
  if (!settled) return console.progress(progress_line(status));
  reported_ = true;
  console.progress("");
  console.write(servers_report(status) + (console.is_terminal() ? "\nCtrl-C stops.\n" : ""));
}

namespace {

// Returns the process ID of this user's gateway that listens on the address, or an empty string if
// there is none.
std::string gateway_listening_on(std::string_view address) {
  for (const FoundGateway &gateway :
       ask_gateways(control_dirs(), "GET", "/status", status_wait_ms)) {
    const std::string_view json = gateway.answer;
    if (!gateway.error.empty() || !mcp::valid_json(json) || !json.starts_with('{')) continue;
    struct Search {
      std::string address;
      bool found = false;
    } search{"http://" + std::string(address) + "/", false};
    const std::string_view endpoints = mcp::member(json, "endpoints");
    if (!endpoints.starts_with('[')) continue;
    mcp::for_each_item(endpoints, &search, [](void *arg, std::string_view item) {
      auto &to = *static_cast<Search *>(arg);
      std::string scratch;
      to.found = to.found || mcp::unquote(item, &scratch).starts_with(to.address);
      return true;
    });
    if (search.found) return std::string(mcp::member(json, "pid"));
  }
  return {};
}

}  // namespace

int GatewayFront::give_up(Error error) {
  // The text is "cannot listen on ADDRESS: the address is already in use by another program; stop
  // it, or ...".
  constexpr std::string_view begin = "cannot listen on ",
                             taken = ": the address is already in use ",
                             by_another = "by another program; stop it, or";
  const std::size_t at = error.text.find(begin), end = error.text.find(taken);
  const std::size_t by = error.text.find(by_another);
  if (at != std::string::npos && end != std::string::npos && by != std::string::npos && at < end) {
    const std::size_t from = at + begin.size();
    const std::string pid = gateway_listening_on(error.text.substr(from, end - from));
    if (!pid.empty()) {
      error.text.replace(
          by, by_another.size(),
          "by your gateway with pid " + pid + " (see `bulkhead status`); stop it, or");
    }
  }
  logger_.release();
  logger_.log_to_file(LogLevel::error, "start", error.text);
  return complain(error.text);
}

ProcessFacts GatewayFront::process_facts(std::string socket) const {
  ProcessFacts facts;
  facts.version = BULKHEAD_VERSION;
  facts.command = is_serve_ ? "serve" : "stdio";
  facts.config = config_;
  facts.project = project_;
  facts.log_file = logger_.path();
  facts.socket = std::move(socket);
  facts.pid = ::getpid();
  facts.uptime_ms = bh::monotonic_ms() - started_ms_;
  return facts;
}

}  // namespace bulkhead::program
