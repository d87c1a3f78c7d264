// Defines attempts of malicious code to escape the confinement of its process. The attempts are
// real: without confinement, most of them succeed for the same user. They are run by breakout_test,
// a malicious plugin and a malicious server. Links only libc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace breakout {

// The targets of the attempts. If a member is empty or 0, the attempts that need it fail with
// ENOENT.
struct Target {
  std::string state_file;      // for example a session database
  std::string home_file;       // a file in the user's home directory
  std::string plugin_folder;   // the gateway loads files in this directory when it starts
  std::string service_socket;  // a Unix socket with a listener
  std::string abstract_name;   // name of an abstract Unix socket, without the leading NUL
  std::string scratch;         // a directory that may be writable
  std::uint16_t tcp_port = 0;  // a port on 127.0.0.1 that is not allowed
  std::uint16_t udp_port = 0;
  int listener = -1;                 // a TCP socket that the process has inherited
  pid_t sibling = 0;                 // another process of the gateway with the same user
  std::uint64_t sibling_secret = 0;  // address of `secret_size` bytes in its memory
  std::uint64_t memory_bytes = 0;    // exceeds the limit
  std::uint64_t disk_bytes = 0;      // of one file; exceeds the limit
  std::uint32_t processes = 0;       // exceeds the limit
  std::uint32_t ipc_key = 0;         // see ipc_objects.hpp
  std::string ipc_name;              // without a slash
};
inline constexpr std::size_t secret_size = 16;

struct Attempt {
  const char *name;
  int (*run)(const Target &);  // returns 0 if the attempt succeeds, otherwise an errno value
};

const std::vector<Attempt> &attempts();
int run(std::string_view name, const Target &target);  // returns ENOSYS for an unknown name

// Formats targets for plugins and servers as NAME=VALUE, separated by ';'.
std::string to_text(const Target &target);
Target from_text(std::string_view text);

// Each function adds a group of attempts.
void add_file_attempts(std::vector<Attempt> *all);
void add_process_attempts(std::vector<Attempt> *all);
void add_network_attempts(std::vector<Attempt> *all);
void add_kernel_attempts(std::vector<Attempt> *all);
void add_resource_attempts(std::vector<Attempt> *all);
void add_ipc_attempts(std::vector<Attempt> *all);

}  // namespace breakout
