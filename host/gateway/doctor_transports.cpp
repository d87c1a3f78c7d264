#include "gateway/doctor_transports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/json.hpp"
#include "common/paths.hpp"
#include "host.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "plugin/text.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

constexpr int connect_wait_ms = 2'000;

// Returns 0 if a process accepts connections at this address, otherwise an errno value.
int try_connect(const sockaddr *address, socklen_t size) {
  const OwnedFd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (::connect(fd.get(), address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{fd.get(), POLLOUT, 0};
  if (::poll(&ready, 1, connect_wait_ms) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

int try_connect(const std::string &path) {
  sockaddr_un address{};
  if (path.empty() || path.size() >= sizeof address.sun_path) return EINVAL;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return try_connect(reinterpret_cast<const sockaddr *>(&address), sizeof address);
}

// `service` is the address of the service that receives connections that do not use MCP ("handoff"
// in the configuration): "unix:/path", "127.0.0.1:8443", "[::1]:8443" or "localhost:8443".
int try_service(std::string_view service) {
  if (service.starts_with("unix:")) return try_connect(std::string(service.substr(5)));
  const std::size_t colon = service.rfind(':');
  std::uint16_t port = 0;
  const std::string_view digits = service.substr(colon + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (service.starts_with('[')) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(port);
    return try_connect(reinterpret_cast<const sockaddr *>(&v6), sizeof v6);
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  const std::string host(service.substr(0, colon));
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) {
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  return try_connect(reinterpret_cast<const sockaddr *>(&v4), sizeof v4);
}

// Returns the path of the socket for "unix:/path" or "hybrid:/path:PORT". In the hybrid case,
// guests connect to PORT through /path_PORT, and the host connects to the guest through /path.
std::string file_of(std::string_view address, bool toward_guest) {
  if (address.starts_with("unix:")) return std::string(address.substr(5));
  const std::string_view rest = address.substr(std::string_view("hybrid:").size());
  const std::size_t colon = rest.rfind(':');
  const std::string path(rest.substr(0, colon));
  return toward_guest ? path : path + "_" + std::string(rest.substr(colon + 1));
}

class GuestSockets {
 public:
  GuestSockets(const PluginUse &use, const std::vector<std::string> &served, Findings *findings)
      : name_("transport " + use.id), served_(served), findings_(*findings) {
    listen_ = member_text(use.config_json, "listen");
    dial_ = member_text(use.config_json, "dial");
    handoff_ = member_text(use.config_json, "handoff");
    others_ = names_other_users(mcp::member(use.config_json, "allow_uids"));
    if (listen_.empty() && dial_.empty()) listen_ = "vsock:5002";
  }

  void check() {
    if (listen_.starts_with("vsock:")) {
      vsock();
    } else if (!listen_.empty()) {
      listening(file_of(listen_, false));
    }
    if (!dial_.empty()) dialled(file_of(dial_, true));
    if (!handoff_.empty()) service();
  }

 private:
  static bool names_other_users(std::string_view uids) {
    bool others = false;
    if (!uids.starts_with('[')) return false;
    mcp::for_each_item(uids, [&](std::string_view item) {
      const bool own = item == "0" || item == std::to_string(::geteuid());
      others = others || !own;
    });
    return others;
  }

  void vsock() {
    const OwnedFd fd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd) return findings_.good(name_ + ": this kernel has AF_VSOCK");
    findings_.bad(name_ + ": this kernel has no AF_VSOCK",
                  "Load vhost_vsock on the host of virtual machines (modprobe vhost_vsock), or "
                  "listen on unix: or hybrid:.");
  }

  void listening(const std::string &path) {
    if (std::find(served_.begin(), served_.end(), listen_) != served_.end()) {
      return findings_.good(name_ + ": a running gateway listens on " + tilde(path));
    }
    if (!folder(path)) return;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) {
      return findings_.good(name_ + ": " + tilde(path) + " can be created");
    }
    if (!S_ISSOCK(status.st_mode)) {
      return findings_.bad(name_ + ": " + tilde(path) + " exists and is not a socket",
                           "Remove it, or choose another path to listen on.");
    }
    const int error = try_connect(path);
    if (error == ECONNREFUSED) {
      return findings_.good(name_ + ": " + tilde(path) +
                            " is left from an earlier run and will be replaced");
    }
    findings_.bad(
        name_ + ": " + tilde(path) +
            (error == 0 ? " is in use by another program"
                        : " exists and cannot be checked: " + bh::error_name(error)),
        "If a program uses this socket, stop the program or choose another path: a gateway "
        "does not replace a socket that is in use.");
  }

  // Returns false, and adds a finding, if no socket can be created at this path.
  bool folder(const std::string &path) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const std::string in = parent.empty() ? "." : parent.string();
    struct stat status{};
    if (::stat(in.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      findings_.bad(
          name_ + ": the folder " + tilde(in) + " does not exist",
          "The gateway does not create it: run mkdir -m 700 as the user that runs the gateway.");
      return false;
    }
    if (::access(in.c_str(), W_OK | X_OK) != 0) {
      findings_.bad(
          name_ + ": cannot create a socket in " + tilde(in) + ": " + bh::error_name(errno),
          "The user that runs the gateway needs write permission.");
      return false;
    }
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
      findings_.doubtful(name_ + ": every user can replace the socket in " + tilde(in),
                         "Choose a folder that others cannot write to.");
    }
    if (others_ && (status.st_mode & S_IXOTH) == 0) {
      findings_.doubtful(
          name_ + ": allow_uids names other users, and " + tilde(in) + " is not accessible to them",
          "Grant them search permission for this folder: use chmod o+x or an access control list "
          "(setfacl).");
    }
    return true;
  }

  void dialled(const std::string &path) {
    const int error = try_connect(path);
    if (error == 0)
      return findings_.good(name_ + ": connected to the monitor's socket " + tilde(path));
    findings_.doubtful(
        name_ + ": cannot connect to a monitor at " + tilde(path) + ": " + bh::error_name(error),
        "The gateway retries until the virtual machine runs; check the path.");
  }

  void service() {
    const int error = try_service(handoff_);
    if (error == 0)
      return findings_.good(name_ + ": connected to the hand-off service " + handoff_);
    findings_.doubtful(name_ + ": the hand-off service " + handoff_ +
                           " cannot be reached: " + bh::error_name(error),
                       "Until it is reachable, connections that are not MCP are closed and counted "
                       "(vsock.handoff_failed).");
  }

  const std::string name_;
  const std::vector<std::string> &served_;
  Findings &findings_;
  std::string listen_, dial_, handoff_;
  bool others_ = false;
};

// Loads and configures the plugin as `serve` does, but does not start it.
bool configurable(const Profile &profile, const PluginUse &use, Findings *findings) {
  Profile alone = profile;
  for (auto *uses : {&alone.tools, &alone.policies, &alone.telemetry, &alone.services}) {
    uses->clear();
  }
  alone.servers.clear();
  alone.transports = {use};
  alone.transports.front().required = true;
  const auto made = Host::create(std::move(alone), HostOptions{});
  if (made) return true;
  const std::string text = "transport " + use.id + ": " + made.error().text;
  if (use.required) {
    findings->bad(text,
                  "The gateway does not start with this configuration; docs/profile.md and the "
                  "plugin's documentation list the keys.");
  } else {
    findings->doubtful(text, "The gateway continues without it, as the profile allows.");
  }
  return false;
}

}  // namespace

void check_transports(const Profile &profile, const std::vector<std::string> &served,
                      Findings *findings) {
  for (const PluginUse &use : profile.transports) {
    if (configurable(profile, use, findings) && use.plugin == "transport-vsock") {
      GuestSockets(use, served, findings).check();
    }
  }
}

}  // namespace bulkhead::program
