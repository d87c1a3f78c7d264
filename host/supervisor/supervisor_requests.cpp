// What compartments ask the supervisor for: sockets, their plugins' secrets, and to keep what is
// known of servers' tools.
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

// The numbers of users that a process knows, in the words of user_namespaces(7).
std::string uid_map(const std::string &process) {
  const std::string path = "/proc/" + process + "/uid_map";
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

// Does this process know the users that we know?
bool sees_all_users(pid_t pid) {
  const std::string ours = uid_map("self");
  return !ours.empty() && uid_map(std::to_string(pid)) == ours;
}

// Is this sockaddr the one of a Unix socket at one of the paths?
bool names(const std::vector<std::string> &paths, std::string_view address) {
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

// One question at a time: honest processes wait for the answer, and others do not keep us busy.
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
  // The slice of a process that ends may already be that of its successor. A process that leaves
  // beside its successor keeps its own, and its calls may need secrets. A process that signs still
  // has to make its last checkpoint.
  const bool ending = child.ending && !child.leaving && frame.kind != control::sign;
  if (ending || !from_bytes(payload, &secret) || !holds(child, secret.instance) ||
      !is_plain_name(secret.name)) {
    return refuse({BH_E_DENIED, "that instance is not in this compartment"});
  }
  if (frame.kind == control::sign && !signs(child, secret.instance)) {
    return refuse({BH_E_DENIED, "only telemetry is signed"});
  }
  // The last one before the end is not to be missed; what asks for more is killed soon.
  if (frame.kind == control::sign && !child.sign_budget.take(reactor_->now_ns()) && !child.ending) {
    return refuse({BH_E_LIMIT, "more is signed for it than it can need"});
  }
  if (secret.value.size() > max_secret_bytes) return refuse({BH_E_LIMIT, "it is too large"});
  SecretJob &job = secret_jobs_.emplace_back(&child, child.life, frame.kind, frame.exchange,
                                             state_dir_, std::move(secret), std::string());
  const bh_status started = reactor_->run_blocking(
      this, [](void *arg) { static_cast<SecretJob *>(arg)->work(); },
      [](void *arg) {
        auto &done = *static_cast<SecretJob *>(arg);
        done.child->supervisor->on_secret(done);
      },
      &job);
  child.secret_pending = started == BH_OK;
  if (child.secret_pending) return;
  secret_jobs_.pop_back();
  refuse({BH_E_LIMIT, "the gateway is busy"});
}

// The endpoint decides about calls by the pins that are kept here, so it may add to them and note
// changes, but not approve them: see PinStore::merge().
void Supervisor::make_keepers() {
  PinKeeper::Hooks hooks;
  hooks.warn = [this](std::string_view text) { log(LogLevel::warn, "pins", text); };
  hooks.kept = [this](std::vector<ToolPin> pins) {
    children_.front()->slice.profile.pinned = std::move(pins);  // for the next process
  };
  pins_ = std::make_unique<PinKeeper>(*reactor_, state_dir_, std::move(hooks));
  pins_->use(children_.front()->slice.profile);
  ListKeeper::Hooks list_hooks;
  list_hooks.warn = [this](std::string_view text) { log(LogLevel::warn, "lists", text); };
  list_hooks.kept = [this](const std::string &server, const KeptLists &lists) {
    for (ServerDef &def : children_.front()->slice.profile.servers) {
      if (def.name == server) def.kept = lists;  // for the next process
    }
  };
  lists_ = std::make_unique<ListKeeper>(*reactor_, state_dir_, std::move(list_hooks));
  lists_->use(children_.front()->slice.profile);
}

void Supervisor::on_pins(std::string_view payload) {
  std::vector<PinNews> news;
  if (from_bytes(payload, &news) && news.size() <= max_pins_told) pins_->take(std::move(news));
}

// The text is a server's, and stays as it is.
void Supervisor::on_list(std::string_view payload) {
  ListNews news;
  if (from_bytes(payload, &news)) lists_->take(std::move(news));
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
    outcome = fail(BH_E_UNSUPPORTED, "there is no such request");
  }
}

// Compartments see only the secrets of their plugins. A tools plugin may have the name of a
// transport ("http"), or of a policy; the secrets of that name are not the tools plugin's.
bool Supervisor::holds(const Child &child, const std::string &instance) const {
  const Slice &endpoint = children_.front()->slice;
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

// The instance is one of `child`, and keeps records.
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

// A compartment without a network is connected to the Unix sockets that the profile names for it.
// Where a gateway listens and what it may connect to is settled while it starts, before it has read
// a byte from outside.
Result<OwnedFd> Supervisor::on_socket_request(const Child &child, const link::Frame &frame,
                                              std::string_view payload) {
  control::Listen wanted;
  if (!from_bytes(payload, &wanted)) return fail(BH_E_INVALID, "that is no address");
  if (!child.slice.router) {
    const bool may = !child.ending && frame.kind != control::listen &&
                     names(child.slice.privileges.dial, wanted.address);
    if (!may) {
      return fail(BH_E_DENIED, "the profile names no such socket for this compartment");
    }
    if (frame.kind == control::will_dial) return OwnedFd();
    DialRules once;
    if (auto fits = once.announce(wanted.address); !fits) return std::unexpected(fits.error());
    return once.dial(wanted.address);
  }
  if (frame.kind == control::dial) return dial_rules_.dial(wanted.address);
  if (child.ready) return fail(BH_E_DENIED, "only a gateway that is starting may ask for that");
  if (frame.kind == control::listen) return listen(child, wanted);
  if (auto done = dial_rules_.announce(wanted.address); !done) return std::unexpected(done.error());
  return OwnedFd();
}

// What one process of the endpoint has asked for before it was first ready, the next ones get.
Result<OwnedFd> Supervisor::listen(const Child &child, const control::Listen &wanted) {
  const auto at = listeners_.find(wanted.address);
  const bool is_new = at == listeners_.end();
  if (is_new && (child.ever_ready || listeners_.size() >= max_listeners ||
                 wanted.address.size() > sizeof(sockaddr_storage))) {
    return fail(BH_E_DENIED, "the profile did not have the gateway listen there when it started");
  }
  OwnedFd &kept = is_new ? listeners_[wanted.address] : at->second;
  if (!kept) {
    if (wanted.for_everybody && !sees_all_users(child.pid)) {
      return fail(BH_E_UNSUPPORTED,
                  "the gateway of user " + std::to_string(::geteuid()) +
                      " keeps its endpoint in a user namespace, where other users have no number "
                      "and cannot be told apart; start it as root or with --single-process, or "
                      "name no other users");
    }
    auto opened =
        open_listener(wanted.address, wanted.as_configured,
                      wanted.for_everybody ? SocketFile::everybody : SocketFile::own_user);
    if (!opened) return std::unexpected(opened.error());
    kept = std::move(*opened);
    const std::size_t before = socket_files_.size();
    remember_socket_file(wanted.address, &socket_files_);
    if (socket_files_.size() > before) remove_when_killed(socket_files_.back());
  }
  OwnedFd copy(::fcntl(kept.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(BH_E_LIMIT, "no descriptor is free");
  return copy;
}

}  // namespace bulkhead::program
