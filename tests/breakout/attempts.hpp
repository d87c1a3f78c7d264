// Attempts of code that controls a process to break out of its confinement. Each attempt is real:
// without confinement, most of them succeed as the same user. They are run by breakout_test, by a
// hostile plugin and by a hostile server. Links only libc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace breakout {

// The targets of attempts. If a target is empty or 0, the attempt fails with ENOENT.
struct Target {
  std::string state_file;      // e.g. a session database
  std::string home_file;       // a file in the user's home folder
  std::string plugin_folder;   // the gateway loads files in it at its next start
  std::string service_socket;  // a Unix socket that answers
  std::string abstract_name;   // an abstract Unix socket, without the leading NUL
  std::string scratch;         // a folder that may be writable
  std::uint16_t tcp_port = 0;  // on 127.0.0.1, not permitted
  std::uint16_t udp_port = 0;
  int listener = -1;                 // a TCP socket inherited by the process
  pid_t sibling = 0;                 // another process of the gateway, same user
  std::uint64_t sibling_secret = 0;  // an address in its memory, of `secret_size` bytes
  std::uint64_t memory_bytes = 0;    // more than the limit
  std::uint64_t disk_bytes = 0;      // in one file, more than the limit
  std::uint32_t processes = 0;       // more than the limit
  std::uint32_t ipc_key = 0;         // see ipc_objects.hpp
  std::string ipc_name;              // without a slash
};
inline constexpr std::size_t secret_size = 16;

struct Attempt {
  const char *name;
  int (*run)(const Target &);  // returns 0 on success, or the errno of the failure
};

const std::vector<Attempt> &attempts();
int run(std::string_view name, const Target &target);  // returns ENOSYS for an unknown attempt

// Returns the text form of targets for plugins and servers: NAME=VALUE, separated by ';'.
std::string to_text(const Target &target);
Target from_text(std::string_view text);

// Each function adds one group of attempts().
void add_file_attempts(std::vector<Attempt> *all);
void add_process_attempts(std::vector<Attempt> *all);
void add_network_attempts(std::vector<Attempt> *all);
void add_kernel_attempts(std::vector<Attempt> *all);
void add_resource_attempts(std::vector<Attempt> *all);
void add_ipc_attempts(std::vector<Attempt> *all);

}  // namespace breakout
