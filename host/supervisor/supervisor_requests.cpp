// Handles requests from compartments: for sockets, and for the secrets and signatures of plugins.
// Also stores the tool definitions and lists that the endpoint receives from servers.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "common/paths.hpp"
#include "common/signals.hpp"
#include "plugin/secrets.hpp"
#include "plugin/services.hpp"
#include "plugin/text.hpp"
#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_secret_bytes = 65'536;
constexpr std::size_t max_listeners = 32;

// Returns the user ID mapping of the namespace that a process runs in, in the format described in
// user_namespaces(7).
std::string uid_map(const std::string &process) {
  const std::string path = "/proc/" + process + "/uid_map";
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

// Returns true if the process sees the same user IDs as the supervisor.
bool sees_all_users(pid_t pid) {
  const std::string ours = uid_map("self");
  return !ours.empty() && uid_map(std::to_string(pid)) == ours;
}

// Returns true if the sockaddr `address` is that of a Unix socket at one of the paths.
bool names_address(const std::vector<std::string> &paths, std::string_view address) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string &path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    if (path.size() >= sizeof at.sun_path) return false;
    path.copy(at.sun_path, path.size());
    const std::size_t n = offsetof(sockaddr_un, sun_path) + path.size() + 1;
    return address == std::string_view(reinterpret_cast<const char *>(&at), n);
  });
}

}  // namespace

// A compartment may have only one pending request, so that a compromised process cannot overload
// the supervisor. A process that is not compromised waits for each response anyway.
void Supervisor::on_request(Child &child, const link::Frame &frame, std::string_view payload) {
  if (child.secret_pending) return child.request.reset();
  link::Frame answer;
  answer.kind = frame.kind;
  answer.exchange = frame.exchange;
  const auto refuse = [&](const Error &error) {
    answer.code = static_cast<std::uint32_t>(error.code);
    child.request->send(answer, error.text);
  };
  if (frame.kind == control::listen || frame.kind == control::will_dial ||
      frame.kind == control::dial) {
    const auto fd = on_socket_request(child, frame, payload);
    if (!fd) return refuse(fd.error());
    child.request->send(answer, std::string_view(), fd->get());
    return;
  }
  control::Secret secret;
  // If the process is stopping, its requests are denied, because `slice` may already be that of its
  // replacement. There are two exceptions. A process that drains while its replacement runs keeps
  // its own slice, and its calls may need secrets. Any stopping process may request the signature
  // for its last checkpoint.
  const bool ending = child.ending && !child.leaving && frame.kind != control::sign;
  if (ending || !from_bytes(payload, &secret) || !has_instance(child, secret.instance) ||
      !is_plain_name(secret.name)) {
    return refuse({BH_E_DENIED, "the instance is not in this compartment"});
  }
  if (frame.kind == control::sign && !signs(child, secret.instance)) {
    return refuse({BH_E_DENIED, "only telemetry plugins can request signatures"});
  }
  // The rate limit does not apply to a stopping process, so that it always receives its last
  // signature. If it requests more, it will soon be killed anyway.
  if (frame.kind == control::sign && !child.sign_budget.consume(reactor_->now_ns()) &&
      !child.ending) {
    return refuse({BH_E_LIMIT, "too many signatures requested"});
  }
  if (secret.value.size() > max_secret_bytes)
    return refuse({BH_E_LIMIT, "the secret is too large"});
  SecretJob &job = secret_jobs_.emplace_back(&child, child.life, frame.kind, frame.exchange,
                                             state_dir_, std::move(secret), std::string());
  const bh_status started = reactor_->run_blocking(
      this, bh::blocking_work(
                &job, [](SecretJob &it) { it.work(); },
                [](SecretJob &done) { done.child->supervisor->on_secret(done); }));
  child.secret_pending = started == BH_OK;
  if (child.secret_pending) return;
  secret_jobs_.pop_back();
  refuse({BH_E_LIMIT, "the gateway is busy"});
}

// The endpoint may add pins and report changes but cannot approve changes: see PinStore::merge().
void Supervisor::create_writers() {
  PinWriter::Hooks hooks;
  hooks.warn = [this](std::string_view text) { log(LogLevel::warn, "pins", text); };
  hooks.on_stored = [this](const std::vector<StoredPin> &pins) {
    // For the next endpoint process.
    for (Slice *slice : {&children_.front()->slice, next_endpoint_.get()}) {
      if (slice == nullptr) continue;
      slice->profile.pinned = PinStore::known(pins, pin_terms(slice->profile));
    }
  };
  pins_ = std::make_unique<PinWriter>(*reactor_, state_dir_, std::move(hooks));
  pins_->set_profile(children_.front()->slice.profile);
  ListWriter::Hooks list_hooks;
  list_hooks.warn = [this](std::string_view text) { log(LogLevel::warn, "lists", text); };
  list_hooks.on_stored = [this](const std::string &server, const KeptLists &lists) {
    // For the next endpoint process.
    for (Slice *slice : {&children_.front()->slice, next_endpoint_.get()}) {
      if (slice == nullptr) continue;
      for (ServerDef &def : slice->profile.servers) {
        const bool same = def.name == server && def.kept.definition == lists.definition;
        if (same) def.kept = lists;
      }
    }
  };
  lists_ = std::make_unique<ListWriter>(*reactor_, state_dir_, std::move(list_hooks));
  lists_->set_profile(children_.front()->slice.profile);
}

void Supervisor::on_pins(std::string_view payload) {
  std::vector<PinNews> news;
  if (from_bytes(payload, &news) && news.size() <= max_pins_told) pins_->add(std::move(news));
}

// The lists come from a server and are not parsed here.
void Supervisor::on_list(std::string_view payload) {
  ListNews news;
  if (from_bytes(payload, &news)) lists_->add(std::move(news));
}

void Supervisor::on_secret(SecretJob &job) {
  Child &child = *job.child;
  if (!job.life.expired()) {
    child.secret_pending = false;
    link::Frame answer;
    answer.kind = job.kind;
    answer.exchange = job.exchange;
    if (!job.outcome) answer.code = static_cast<std::uint32_t>(job.outcome.error().code);
    if (child.request) {
      child.request->send(answer, job.outcome ? *job.outcome : job.outcome.error().text);
    }
  }
  secret_jobs_.remove_if([&](const SecretJob &one) { return &one == &job; });
}

void Supervisor::SecretJob::work() {
  if (kind == control::sign) {
    const auto made = sign_for_audit(state_dir, secret.instance, secret.value);
    outcome = made ? Result<std::string>(to_bytes(*made)) : std::unexpected(made.error());
    return;
  }
  const auto folder = private_folder(state_dir, "secrets", secret.instance);
  if (!folder) {
    outcome = std::unexpected(folder.error());
  } else if (kind == control::get_secret) {
    outcome = read_secret(*folder, secret.name, max_secret_bytes);
  } else if (kind == control::put_secret) {
    const auto done = write_secret(*folder, secret.name, secret.value);
    if (!done) outcome = std::unexpected(done.error());
  } else {
    outcome = fail(BH_E_UNSUPPORTED, "unknown request");
  }
}

// Returns true if the instance is a plugin of this compartment, which may therefore use its
// secrets. Instances of different kinds may have the same name: a tools plugin "http" must not use
// the secrets of the transport "http". During a reload, the compartment may already have plugins of
// the new profile.
bool Supervisor::has_instance(const Child &child, const std::string &instance) const {
  if (has_instance(children_.front()->slice, child, instance)) return true;
  return next_endpoint_ != nullptr && !child.slice.router &&
         has_instance(*next_endpoint_, child, instance);
}

bool Supervisor::has_instance(const Slice &endpoint, const Child &child,
                              const std::string &instance) {
  const auto is = [&](const PluginUse &use) { return use.id == instance; };
  const auto has = [&](const std::vector<PluginUse> &uses) {
    return std::any_of(uses.begin(), uses.end(), is);
  };
  const auto is_remote = [&](std::string_view group) {
    return endpoint.remote.contains(remote_name(group, instance));
  };
  const bool judges = is_remote("policies") || is_remote("telemetry");
  const bool endpoints = has(endpoint.profile.transports) ||
                         (has(endpoint.profile.policies) && !is_remote("policies")) ||
                         (has(endpoint.profile.telemetry) && !is_remote("telemetry"));
  if (child.slice.router || endpoints) return child.slice.router && endpoints;
  return std::any_of(
      child.slice.plugins.begin(), child.slice.plugins.end(), [&](const SlicePlugin &plugin) {
        const bool judge =
            plugin.kind == PluginKind::policy || plugin.kind == PluginKind::telemetry;
        return is(plugin.use) && judge == judges;
      });
}

// Returns true if the instance is a telemetry plugin of `child`.
bool Supervisor::signs(const Child &child, const std::string &instance) const {
  if (!child.slice.router) {
    return std::any_of(child.slice.plugins.begin(), child.slice.plugins.end(),
                       [&](const SlicePlugin &plugin) {
                         return plugin.kind == PluginKind::telemetry && plugin.use.id == instance;
                       });
  }
  const auto &uses = child.slice.profile.telemetry;
  return std::any_of(uses.begin(), uses.end(),
                     [&](const PluginUse &use) { return use.id == instance; }) &&
         !child.slice.remote.contains(remote_name("telemetry", instance));
}

// Connects or listens on behalf of a compartment. Compartments other than the endpoint can only
// connect to Unix sockets that the profile allows for them. The endpoint's addresses are fixed at
// startup, before it reads untrusted input.
Result<OwnedFd> Supervisor::on_socket_request(const Child &child, const link::Frame &frame,
                                              std::string_view payload) {
  control::Listen wanted;
  if (!from_bytes(payload, &wanted)) return fail(BH_E_INVALID, "invalid socket address");
  if (!child.slice.router) {
    const bool may = (!child.ending || child.leaving) && frame.kind != control::listen &&
                     names_address(child.slice.privileges.dial, wanted.address);
    if (!may) {
      return fail(BH_E_DENIED, "the profile does not allow this socket for this compartment");
    }
    if (frame.kind == control::will_dial) return OwnedFd();
    DialRules once;
    if (auto fits = once.announce(wanted.address); !fits) return std::unexpected(fits.error());
    return once.dial(wanted.address);
  }
  if (frame.kind == control::dial) return dial_rules_.dial(wanted.address);
  if (child.ready)
    return fail(BH_E_DENIED, "listening sockets can be requested only while the gateway starts");
  if (frame.kind == control::listen) return listen(child, wanted);
  if (auto done = dial_rules_.announce(wanted.address); !done) return std::unexpected(done.error());
  return OwnedFd();
}

// Returns a listening socket. Once an endpoint has been ready, a restarted endpoint can request
// only addresses that were requested before.
Result<OwnedFd> Supervisor::listen(const Child &child, const control::Listen &wanted) {
  const auto at = listeners_.find(wanted.address);
  const bool is_new = at == listeners_.end();
  if (is_new && (child.ever_ready || listeners_.size() >= max_listeners ||
                 wanted.address.size() > sizeof(sockaddr_storage))) {
    return fail(BH_E_DENIED, "the gateway did not listen at this address when it started");
  }
  OwnedFd &kept = is_new ? listeners_[wanted.address] : at->second;
  if (!kept) {
    if (wanted.for_everybody && !sees_all_users(child.pid)) {
      return fail(BH_E_UNSUPPORTED,
                  "the gateway of user " + std::to_string(::geteuid()) +
                      " runs its endpoint in a user namespace, in which other users cannot be "
                      "distinguished; start it as root or with --single-process, or remove other "
                      "users from the transport's list of allowed users");
    }
    auto opened =
        open_listener(wanted.address, wanted.as_configured,
                      wanted.for_everybody ? SocketFile::everybody : SocketFile::own_user);
    if (!opened) return std::unexpected(opened.error());
    kept = std::move(*opened);
    const std::size_t before = socket_files_.size();
    remember_socket_file(wanted.address, &socket_files_);
    if (socket_files_.size() > before) remove_file_on_kill(socket_files_.back());
  }
  OwnedFd copy(::fcntl(kept.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(BH_E_LIMIT, "no file descriptor is available");
  return copy;
}

}  // namespace bulkhead::program
