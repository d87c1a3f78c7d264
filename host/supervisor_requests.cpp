// What compartments ask the supervisor for: sockets, and their plugins' secrets.
#include <fcntl.h>

#include <algorithm>

#include "paths.hpp"
#include "plugin/secrets.hpp"
#include "plugin/services.hpp"
#include "plugin/text.hpp"
#include "supervisor_child.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_secret_bytes = 65'536;

}  // namespace

void Supervisor::on_request(Child &child, const link::Frame &frame, std::string_view payload) {
  link::Frame answer;
  answer.kind = frame.kind;
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
  if (!from_bytes(payload, &secret) || !holds(child, secret.instance) ||
      !is_plain_name(secret.name)) {
    return refuse({BH_E_DENIED, "that instance is not in this compartment"});
  }
  const auto folder = private_folder(state_dir_, "secrets", secret.instance);
  if (!folder) return refuse(folder.error());
  if (frame.kind == control::get_secret) {
    const auto value = read_secret(*folder, secret.name, max_secret_bytes);
    if (!value) return refuse(value.error());
    child.request->send(answer, *value);
  } else if (frame.kind == control::put_secret) {
    if (secret.value.size() > max_secret_bytes) return refuse({BH_E_LIMIT, "it is too large"});
    const auto done = write_secret(*folder, secret.name, secret.value);
    if (!done) return refuse(done.error());
    child.request->send(answer);
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

// Where a gateway listens and what it may connect to is settled while it starts, before it has read
// a byte from outside.
Result<OwnedFd> Supervisor::on_socket_request(const Child &child, const link::Frame &frame,
                                              std::string_view payload) {
  control::Listen wanted;
  if (!from_bytes(payload, &wanted) || !child.slice.router) {
    return fail(BH_E_DENIED, "only a gateway may ask for sockets");
  }
  if (frame.kind == control::dial) return dial_rules_.dial(wanted.address);
  if (child.ready) return fail(BH_E_DENIED, "only a gateway that is starting may ask for that");
  if (frame.kind == control::listen) return listen(wanted);
  if (auto done = dial_rules_.announce(wanted.address); !done) return std::unexpected(done.error());
  return OwnedFd();
}

Result<OwnedFd> Supervisor::listen(const control::Listen &wanted) {
  OwnedFd &kept = listeners_[wanted.address];
  if (!kept) {
    auto opened = open_listener(wanted.address, wanted.as_configured);
    if (!opened) return std::unexpected(opened.error());
    kept = std::move(*opened);
    remember_socket_file(wanted.address, &socket_files_);
  }
  OwnedFd copy(::fcntl(kept.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(BH_E_LIMIT, "no descriptor is free");
  return copy;
}

}  // namespace bulkhead::program
