// Runs all attempts in each role of a compartment. With the complete confinement, only intended
// attempts may succeed. The printed table shows the layers that are sufficient to reject each
// attempt. Without confinement, most attempts must succeed for the same user, since a failure would
// otherwise prove nothing.
#include <grp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "attempts.hpp"
#include "base/owned_fd.hpp"
#include "sandbox/confine.hpp"
#include "sandbox/features.hpp"
#include "world.hpp"

using namespace bulkhead;
using breakout::is_root;
using breakout::nobody_uid;
using breakout::World;

namespace {

constexpr std::uint64_t mega = 1U << 20;

void become(uid_t user) {
  if (!is_root() || user == 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
      ::setresuid(user, user, user) != 0) {
    ::_exit(250);
  }
}

// --- roles --------------------------------------------------------------------------------------

struct Role {
  Confinement wish;
  uid_t user = nobody_uid;  // if root runs the test
  // Attempts that must succeed in this role. The value states why, or what restricts the attempt
  // instead of the kernel.
  std::map<std::string, const char *> meant;
};

constexpr const char *by_design = "(meant)", *our_check = "(our check)", *by_child = "(per child)",
                     *as_root = "(as root)";

// A kernel without vsock cannot create such sockets, even without confinement.
bool has_vsock() {
  return static_cast<bool>(OwnedFd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}

Confinement base(const std::string &role) {
  Confinement wish;
  wish.role = role;
  wish.paths = library_paths();
  wish.memory_bytes = 96 * mega;
  wish.descriptors = 256;
  wish.processes = 48;
  wish.file_bytes = mega;
  if (is_root()) wish.ids = {{nobody_uid, nobody_uid}};
  return wish;
}

// The aggregator, web and third-party plugins. They may connect to any port, and the plugin
// restricts the addresses.
Role caller_role() {
  Role role{base("callers"), nobody_uid, {}};
  role.wish.network = true;
  for (const PathRule &rule : network_config_paths()) role.wish.paths.push_back(rule);
  role.meant["send a UDP packet"] = our_check;
  role.meant["connect to a TCP port that is not allowed"] = our_check;
  return role;
}

Role one_port_role() {
  Role role = caller_role();
  role.wish.role = "one port";
  role.wish.connect_ports = {443};
  role.meant.erase("connect to a TCP port that is not allowed");
  return role;
}

// This role keeps its user, who owns the workspace.
Role files_role(const World &world) {
  Role role{base("files"), 0, {}};
  role.wish.ids.reset();
  role.wish.paths.push_back({world.target().scratch, -1, PathRule::Access::read_write});
  // The kernel does not limit the threads of root. Only the memory limit does.
  if (is_root()) role.meant["thread bomb"] = as_root;
  return role;
}

// This role also keeps its user. It can access everything that the profile may allow for a server,
// because each server has its own sandbox and limits. It cannot access the gateway's sockets and
// secrets.
Role launcher_role(const World &world) {
  Role role{base("launcher"), 0, {}};
  Confinement &wish = role.wish;
  wish.ids.reset();
  wish.network = wish.exec = wish.namespaces = true;
  wish.paths.clear();
  wish.hide = {world.folder() + "/state"};
  wish.memory_bytes = wish.file_bytes = 0;
  for (const char *name : {"read /etc/passwd",
                           "read the home folder",
                           "open up a file at home (chmod)",
                           "rename a file at home",
                           "hard link to a file at home",
                           "symbolic link to a file at home",
                           "plant a plugin",
                           "start a program",
                           "become another program",
                           "connect to a TCP port that is not allowed",
                           "connect to it with MSG_FASTOPEN",
                           "connect to it with MPTCP",
                           "turn an inherited listener outward",
                           "send a UDP packet",
                           "listen on a TCP port",
                           "user namespace",
                           "run code that was written (W^X)",
                           "become dumpable again",
                           "read shared memory (System V)",
                           "change a semaphore (System V)",
                           "send a message (System V)",
                           "open a POSIX message queue",
                           "read shared memory (/dev/shm)"}) {
    role.meant[name] = by_design;
  }
  // Servers may use the network, unless their own sandbox prevents this.
  if (has_vsock()) role.meant["open a vsock socket"] = by_design;
  for (const char *name : {"fill memory", "fill memory (shared)", "fill memory (memfd)",
                           "fill the disk with one file"}) {
    role.meant[name] = by_child;
  }
  if (is_root()) {
    for (const char *name : {"read /etc/shadow", "become root", "fork bomb", "thread bomb"}) {
      role.meant[name] = as_root;
    }
  }
  return role;
}

// This role loads no libraries, so it needs no files.
Role control_role() {
  Role role{base("control"), nobody_uid, {}};
  role.wish.paths.clear();
  return role;
}

std::vector<Role> roles(const World &world) {
  return {{base("endpoint"), nobody_uid, {}},
          control_role(),
          caller_role(),
          one_port_role(),
          files_role(world),
          launcher_role(world)};
}

// --- execution ----------------------------------------------------------------------------------

constexpr int died = 251, not_confined = 252;

// Returns 0 if the attempt succeeds, otherwise an errno value.
int outcome(const breakout::Attempt &attempt, const World &world, const Role &role,
            const ConfineLayers &layers, bool all) {
  const pid_t child = ::fork();
  if (child == 0) {
    Confinement wish = role.wish;
    wish.layers = layers;
    ::alarm(20);  // an attempt that hangs counts as failed
    breakout::Target target = world.target();
    target.listener = World::listener().release();
    // With a single layer, the process runs as the user to which the role switches.
    if (!all) become(role.user);
    if (!all) wish.ids.reset();
    if (!confine(wish)) ::_exit(not_confined);
    ::_exit(attempt.run(target));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : died;
}

constexpr ConfineLayers none{false, false, false, false, false, false};

struct Layer {
  const char *letter;
  ConfineLayers layers;
};
const std::vector<Layer> &single_layers() {
  static const std::vector<Layer> all = [] {
    std::vector<Layer> made(6, Layer{"", none});
    made[0].letter = "L", made[0].layers.landlock = true;
    made[1].letter = "S", made[1].layers.seccomp = true;
    made[2].letter = "N", made[2].layers.namespaces = true;
    made[3].letter = "C", made[3].layers.identity = true;
    made[4].letter = "P", made[4].layers.process = true;
    made[5].letter = "R", made[5].layers.limits = true;
    return made;
  }();
  return all;
}

// Returns the letters of the layers that are each sufficient to reject the attempt. "u" means that
// this user cannot succeed even without confinement.
std::string who_refuses(const breakout::Attempt &attempt, const World &world, const Role &role) {
  if (outcome(attempt, world, role, none, false) != 0) return "u";
  std::string letters;
  for (const Layer &layer : single_layers()) {
    const int result = outcome(attempt, world, role, layer.layers, false);
    if (result != 0 && result != not_confined) letters += layer.letter;
  }
  return letters.empty() ? "*" : letters;
}

bool complete() {
  const Features features = probe_features();
  return features.landlock >= 6 && features.seccomp && features.network_namespaces &&
         features.mount_namespaces && features.no_writable_code;
}

}  // namespace

TEST_CASE("no attempt escapes the confinement") {
  if (!complete()) {
    WARN("SKIP breakout_test: this kernel does not support all parts of the confinement");
    return;
  }
  World world;
  const auto all = roles(world);
  std::printf(
      "As %s. Layers that reject it on their own: L Landlock, S seccomp, N namespaces,\n"
      "C dropped capabilities, P process flags, R limits; * only several together;\n"
      "u impossible for this user anyway; (meant) required by the role.\n\n%-44s",
      is_root() ? "root" : "an ordinary user", "attempt");
  for (const Role &role : all) std::printf(" %-11s", role.wish.role.c_str());
  std::printf("\n");
  for (const breakout::Attempt &attempt : breakout::attempts()) {
    std::printf("%-44s", attempt.name);
    for (const Role &role : all) {
      const auto at = role.meant.find(attempt.name);
      const bool meant = at != role.meant.end();
      const int result = outcome(attempt, world, role, {}, true);
      INFO(attempt.name << " from " << role.wish.role << ": " << std::strerror(result));
      CHECK(result != not_confined);
      if (!meant) CHECK(result != 0);
      // Root without capabilities cannot access files of other users, so an intended attempt may
      // fail.
      const bool by_chance = meant && result != 0 && is_root();
      if (meant && !by_chance) CHECK(result == 0);
      const std::string cell = meant && !by_chance ? at->second : who_refuses(attempt, world, role);
      std::printf(" %-11s", cell.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  CHECK(world.sibling_lives());
}

TEST_CASE("the attempts succeed without confinement") {
  World world;
  const Role plain{base("plain"), nobody_uid, {}};
  std::vector<const char *> names{"read the session database",
                                  "write the session database",
                                  "truncate the session database",
                                  "read the home folder",
                                  "rename a file at home",
                                  "hard link to a file at home",
                                  "symbolic link to a file at home",
                                  "plant a plugin",
                                  "signal a sibling (kill)",
                                  "start a program",
                                  "become another program",
                                  "connect to a TCP port that is not allowed",
                                  "send a UDP packet",
                                  "listen on a TCP port",
                                  "connect to the service socket",
                                  "connect to an abstract socket",
                                  "turn a socket pair to the service socket",
                                  "run code that was written (W^X)",
                                  "fill memory",
                                  "fill memory (shared)",
                                  "fill memory (memfd)",
                                  "fork bomb",
                                  "thread bomb",
                                  "fill the disk with one file",
                                  "read shared memory (System V)",
                                  "change a semaphore (System V)",
                                  "send a message (System V)",
                                  "open a POSIX message queue",
                                  "read shared memory (/dev/shm)"};
  if (has_vsock()) names.push_back("open a vsock socket");
  for (const char *name : names) {
    breakout::Attempt attempt{name, nullptr};
    for (const breakout::Attempt &known : breakout::attempts()) {
      if (std::strcmp(known.name, name) == 0) attempt = known;
    }
    REQUIRE(attempt.run != nullptr);
    INFO(name);
    CHECK(outcome(attempt, world, plain, none, false) == 0);
  }
}
