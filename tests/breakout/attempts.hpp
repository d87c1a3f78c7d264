// What code that has taken over a process would try. Each attempt is real: unconfined, as the same
// user, most of them work. Used in-process (breakout_test), by a hostile plugin and by a hostile
// server; links nothing but libc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace breakout {

// What is attacked. Empty or 0: that attempt finds nothing (ENOENT).
struct Target {
  std::string state_file;      // e.g. a session database
  std::string home_file;       // something in the user's home folder
  std::string plugin_folder;   // where a file would be started with the gateway
  std::string service_socket;  // a Unix socket that answers
  std::string abstract_name;   // one in the abstract name space, without the leading NUL
  std::string scratch;         // a folder that may or may not be ours to write in
  std::uint16_t tcp_port = 0;  // on 127.0.0.1, not one that is allowed
  std::uint16_t udp_port = 0;
  int listener = -1;                 // a TCP socket that the process inherited
  pid_t sibling = 0;                 // another process of the gateway, same user
  std::uint64_t sibling_secret = 0;  // an address in it, of `secret_size` bytes
  std::uint64_t memory_bytes = 0;    // more than is allowed
  std::uint64_t disk_bytes = 0;      // in one file, more than is allowed
  std::uint32_t processes = 0;       // more than are allowed
  std::uint32_t ipc_key = 0;         // see ipc_objects.hpp
  std::string ipc_name;              // without a slash
};
inline constexpr std::size_t secret_size = 16;

struct Attempt {
  const char *name;
  int (*run)(const Target &);  // 0: it worked; else the errno value with which it failed
};

const std::vector<Attempt> &attempts();
int run(std::string_view name, const Target &target);  // ENOSYS: no such attempt

// Targets go to plugins and servers as text: NAME=VALUE, separated by ';'.
std::string to_text(const Target &target);
Target from_text(std::string_view text);

// The groups, for attempts().
void add_file_attempts(std::vector<Attempt> *all);
void add_process_attempts(std::vector<Attempt> *all);
void add_network_attempts(std::vector<Attempt> *all);
void add_kernel_attempts(std::vector<Attempt> *all);
void add_resource_attempts(std::vector<Attempt> *all);
void add_ipc_attempts(std::vector<Attempt> *all);

}  // namespace breakout
