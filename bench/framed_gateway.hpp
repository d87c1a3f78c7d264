// Starts the gateway that micro_framed measures, as a separate process on a separate processor.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace framed {

constexpr int load_cpu = 0, gateway_cpu = 1;

[[noreturn]] inline void die(const std::string &what) {
  throw std::runtime_error(what + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
}

inline void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

// Selects single process or compartments, the path of the policy plugin (empty: all calls are
// allowed), and additions to the profile.
struct Setup {
  bool compartments = false;
  std::string policy = {}, more = {};
};

class Gateway {
 public:
  // Returns when the gateway accepts connections. `folder` must exist, be empty, and be used by no
  // other gateway.
  Gateway(const char *program, std::string folder, const Setup &setup = {})
      : folder_(std::move(folder)) {
    const std::string config = folder_ + "/gateway.toml";
    std::ofstream profile(config);
    profile << "state_dir = \"" << folder_ << "/state\"\n"
            << "[transports.frames]\nplugin = \"transport-vsock\"\nlisten = \"unix:"
            << socket_path() << "\"\n"
            << "[transports.http]\nplugin = \"transport-http\"\n"
            << "listen = \"127.0.0.1:0\"\n"
            << "[tools.local]\nplugin = \"builtin-http\"\n";
    if (!setup.policy.empty()) {
      profile << "[policies.judge]\nplugin = \"" << setup.policy << "\"\n";
    }
    profile << setup.more;
    profile.close();
    const std::string out = folder_ + "/out";
    pid_ = ::fork();
    if (pid_ == 0) {
      pin(gateway_cpu);
      const int fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(fd, 1);
      ::dup2(fd, 2);
      const char *one = setup.compartments ? nullptr : "--single-process";
      ::execl(program, program, "serve", "--config", config.c_str(), one, nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 100 && port_ == 0; ++i) {
      ::usleep(100'000);
      std::ifstream text(out);
      const std::string said((std::istreambuf_iterator<char>(text)), {});
      const std::size_t at = said.find("http://127.0.0.1:");
      if (at != std::string::npos && ::access(socket_path().c_str(), F_OK) == 0) {
        port_ = static_cast<std::uint16_t>(std::strtoul(said.c_str() + at + 17, nullptr, 10));
      } else if (i == 99) {
        end();
        throw std::runtime_error("the gateway does not start:\n" + said);
      }
    }
  }
  ~Gateway() { end(); }
  Gateway(const Gateway &) = delete;
  Gateway &operator=(const Gateway &) = delete;

  std::string socket_path() const { return folder_ + "/frames.sock"; }
  std::uint16_t port() const { return port_; }
  // Returns the user and system time that the process has used.
  double cpu_us() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const char *at = text.c_str() + text.rfind(')');
    for (int field = 2; field < 14; ++field) at = std::strchr(at + 1, ' ');
    char *end = nullptr;
    const double ticks = std::strtod(at, &end) + std::strtod(end, nullptr);
    return ticks * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  void end() const {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  const std::string folder_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace framed
