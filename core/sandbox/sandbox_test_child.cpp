// A test server that attempts operations. Each command-line argument and each input line requests
// one attempt, in the form "what" or "what:on". For each attempt, the server prints "attempt ok" or
// "attempt ERRNO".
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Attempt = bool (*)(const std::string &on);

bool read_file(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  char byte = 0;
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, &byte, 1);
  ::close(fd);
  errno = n == 0 ? ENODATA : errno;
  return n == 1;
}

bool write_file(const std::string &path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (fd < 0) return false;
  const bool good = ::write(fd, "x", 1) == 1;
  ::close(fd);
  return good;
}

bool connect_to(const sockaddr *address, socklen_t size, int family) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  const bool good = fd >= 0 && ::connect(fd, address, size) == 0;
  const int number = errno;
  if (fd >= 0) ::close(fd);
  errno = number;
  return good;
}

bool connect_tcp(const std::string &port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect_to(reinterpret_cast<sockaddr *>(&to), sizeof to, AF_INET);
}

bool own_loopback(const std::string &) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(fd, reinterpret_cast<sockaddr *>(&at), size) != 0 || ::listen(fd, 1) != 0)
    return false;
  ::getsockname(fd, reinterpret_cast<sockaddr *>(&at), &size);
  return connect_to(reinterpret_cast<sockaddr *>(&at), size, AF_INET);
}

bool connect_unix(const std::string &path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.data(), std::min(path.size(), sizeof to.sun_path - 1));
  if (path.starts_with('@')) to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return connect_to(reinterpret_cast<sockaddr *>(&to), size, AF_UNIX);
}

bool kernel_call(long result) {
  return result >= 0;
}

bool in_new_user_namespace(const std::string &path) {
  // Tries to unmount the mount that hides a path. This must fail even for a process that owns a new
  // namespace.
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::umount2(path.c_str(), MNT_DETACH) == 0;
}

bool fork_many(const std::string &count) {
  std::vector<pid_t> made;
  bool good = true;
  for (int i = std::stoi(count); i > 0 && good; --i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    good = pid > 0;
    if (good) made.push_back(pid);
  }
  const int number = errno;
  for (const pid_t pid : made) ::kill(pid, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  errno = number;
  return good;
}

// Creates namespaces in new user namespaces and keeps them until all are created. The argument has
// the form "mnt=5"; the kinds are user, mnt, uts and ipc.
bool hold_namespaces(const std::string &kind_and_count) {
  const std::size_t at = kind_and_count.find('=');
  const std::string kind = kind_and_count.substr(0, at), link = "/proc/self/ns/" + kind;
  const int flag = kind == "user"  ? CLONE_NEWUSER
                   : kind == "mnt" ? CLONE_NEWNS
                   : kind == "uts" ? CLONE_NEWUTS
                                   : CLONE_NEWIPC;
  int ends[2], number = 0;
  if (::pipe(ends) != 0) return false;
  std::vector<pid_t> made;
  for (int i = std::stoi(kind_and_count.substr(at + 1)); i > 0 && number == 0;) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid == 0) {
      // A process can hold many namespaces, but user namespaces can be nested only 32 times.
      int error = ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
      for (; flag != CLONE_NEWUSER && i > 0 && error == 0; --i) {
        const bool good = ::unshare(flag) == 0 && ::open(link.c_str(), O_RDONLY) >= 0;
        error = good ? 0 : errno;
      }
      if (::write(ends[1], &error, sizeof error) == sizeof error) ::pause();
      ::_exit(0);
    }
    made.push_back(pid);
    if (::read(ends[0], &number, sizeof number) != sizeof number) number = EPIPE;
    i = flag == CLONE_NEWUSER ? i - 1 : 0;
  }
  for (const pid_t pid : made) ::kill(pid, SIGKILL);
  for (const pid_t pid : made) ::waitpid(pid, nullptr, 0);
  for (const int fd : ends) ::close(fd);
  errno = number;
  return number == 0;
}

bool hold_terminals(const std::string &count) {
  std::vector<int> made;
  int number = 0;
  for (int i = std::stoi(count); i > 0 && number == 0; --i) {
    made.push_back(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    number = made.back() < 0 ? errno : 0;
  }
  for (const int fd : made) ::close(fd);
  errno = number;
  return number == 0;
}

// The argument has the form "PATH=TEXT". Succeeds if the first line of the file is this text.
bool holds_text(const std::string &path_and_text) {
  const std::size_t at = path_and_text.find('=');
  const int fd = ::open(path_and_text.substr(0, at).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[256];
  const ssize_t n = ::read(fd, text, sizeof text);
  ::close(fd);
  const std::string found(text, static_cast<std::size_t>(n < 0 ? 0 : n));
  errno = ENOMSG;
  return found.substr(0, found.find('\n')) == path_and_text.substr(at + 1);
}

// The argument has the form "NUMBER=VALUE", where the number is a resource of getrlimit().
bool has_limit(const std::string &number_and_value) {
  const std::size_t at = number_and_value.find('=');
  const auto which = static_cast<__rlimit_resource>(std::stoi(number_and_value.substr(0, at)));
  rlimit limit{};
  return ::getrlimit(which, &limit) == 0 && limit.rlim_cur == limit.rlim_max &&
         std::to_string(limit.rlim_max) == number_and_value.substr(at + 1);
}

bool use_memory(const std::string &megabytes) {
  const std::size_t size = std::stoul(megabytes) << 20;
  auto *memory = static_cast<volatile char *>(std::malloc(size));
  if (memory == nullptr) return false;
  for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
  std::free(const_cast<char *>(memory));
  return true;
}

// Starts a daemon: a process in its own session, whose parent has exited and which has closed all
// inherited descriptors.
bool start_daemon(const std::string &path) {
  const pid_t pid = ::fork();
  if (pid != 0) return ::waitpid(pid, nullptr, 0) == pid;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  for (int fd = 0; fd < 64; ++fd) ::close(fd);
  for (;;) {  // holds a lock on the file until it is killed
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    struct flock whole{};
    whole.l_type = F_WRLCK;
    if (::fcntl(fd, F_SETLKW, &whole) == 0) break;
  }
  for (;;) ::pause();
}

bool try_ptrace(const std::string &pid) {
  return ::ptrace(PTRACE_SEIZE, std::stoi(pid), nullptr, nullptr) == 0;
}

bool read_memory(const std::string &pid) {
  char byte = 0;
  iovec to{&byte, 1}, from{reinterpret_cast<void *>(0x400000), 1};
  const long n = ::process_vm_readv(std::stoi(pid), &to, 1, &from, 1, 0);
  if (n < 0 && errno == EFAULT) return true;  // permitted, but the address is not mapped
  return n == 1;
}

bool shared_objects(const std::string &key, int flags) {
  const key_t number = std::stoi(key);
  return ::shmget(number, 4096, flags) >= 0 && ::semget(number, 1, flags) >= 0 &&
         ::msgget(number, flags) >= 0;
}

bool queue(const std::string &name, int flags) {
  const mqd_t made = ::mq_open(name.c_str(), O_RDONLY | flags, 0666, nullptr);
  if (made == static_cast<mqd_t>(-1)) return false;
  ::mq_close(made);
  return true;
}

// Tries to read one byte of another process's memory, at the address where its program starts. That
// address is mapped.
bool read_mapped(const std::string &pid) {
  char byte = 0;
  iovec to{&byte, 1}, from{reinterpret_cast<void *>(0x400000), 1};
  return ::process_vm_readv(std::stoi(pid), &to, 1, &from, 1, 0) == 1;
}

// Tries to create a socket of every family, with each type and the first few protocols. Returns
// true if the list of families that succeeded, such as "+1+2", equals `expected`.
bool socket_families(const std::string &expected) {
  static constexpr int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM};
  std::string made;
  for (int family = 0; family < 512; ++family) {
    bool good = false;
    for (const int kind : kinds) {
      for (int protocol = 0; protocol < 32; ++protocol) {
        const int fd = ::socket(family, kind | SOCK_CLOEXEC, protocol);
        if (fd < 0) continue;
        good = true;
        ::close(fd);
      }
      int pair[2];
      if (::socketpair(family, kind | SOCK_CLOEXEC, 0, pair) != 0) continue;
      good = true;
      ::close(pair[0]);
      ::close(pair[1]);
    }
    if (good) made += "+" + std::to_string(family);
  }
  std::fprintf(stderr, "%s\n", made.c_str());
  errno = EAFNOSUPPORT;
  return made == expected;
}

const std::pair<std::string_view, Attempt> attempts[] = {
    {"shm", [](const std::string &key) { return ::shmget(std::stoi(key), 0, 0) >= 0; }},
    {"sem", [](const std::string &key) { return ::semget(std::stoi(key), 0, 0) >= 0; }},
    {"msg", [](const std::string &key) { return ::msgget(std::stoi(key), 0) >= 0; }},
    {"make-sysv", [](const std::string &key) { return shared_objects(key, IPC_CREAT | 0666); }},
    {"queue", [](const std::string &name) { return queue(name, 0); }},
    {"make-queue", [](const std::string &name) { return queue(name, O_CREAT); }},
    {"namespace",
     // The argument contains a kind and a namespace, as in "ipc=ipc:[1]". Succeeds if this process
     // is in a different namespace of this kind.
     [](const std::string &name_and_id) {
       const std::size_t at = name_and_id.find('=');
       char id[64]{};
       const std::string link = "/proc/self/ns/" + name_and_id.substr(0, at);
       return ::readlink(link.c_str(), id, sizeof id - 1) > 0 && name_and_id.substr(at + 1) != id;
     }},
    {"read", read_file},
    {"write", write_file},
    {"list",
     [](const std::string &path) {
       const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY);
       char entries[4096];
       long n = 0, total = 0;
       while (fd >= 0 && (n = ::syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
         total += n;
       errno = fd >= 0 ? ENODATA : errno;
       return total > 48;  // more than "." and ".."
     }},
    {"rename",
     [](const std::string &path) { return ::rename(path.c_str(), (path + "2").c_str()) == 0; }},
    {"chmod", [](const std::string &path) { return ::chmod(path.c_str(), 0777) == 0; }},
    {"link", [](const std::string &path) { return ::link(path.c_str(), "/tmp/link") == 0; }},
    {"tcp", connect_tcp},
    {"loopback", own_loopback},
    {"unix", connect_unix},
    {"kill", [](const std::string &pid) { return ::kill(std::stoi(pid), 0) == 0; }},
    {"ptrace", try_ptrace},
    {"memory-of", read_memory},
    {"open",
     [](const std::string &path) {
       const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
       const bool good = fd >= 0;
       const int number = errno;
       if (good) ::close(fd);
       errno = number;
       return good;
     }},
    {"read-memory-of", read_mapped},
    {"socket-families", socket_families},
    {"mount",
     [](const std::string &path) {
       return ::mount("tmpfs", path.c_str(), "tmpfs", 0, nullptr) == 0;
     }},
    {"umount", [](const std::string &path) { return ::umount2(path.c_str(), MNT_DETACH) == 0; }},
    {"new-namespace-umount", in_new_user_namespace},
    {"io_uring",
     [](const std::string &) {
       char parameters[120]{};
       return kernel_call(::syscall(SYS_io_uring_setup, 4, parameters));
     }},
    {"bpf",
     [](const std::string &) {
       bpf_attr attr{};
       attr.map_type = BPF_MAP_TYPE_ARRAY;
       attr.key_size = attr.value_size = 4;
       attr.max_entries = 1;
       return kernel_call(::syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
     }},
    {"userfaultfd", [](const std::string &) { return kernel_call(::syscall(SYS_userfaultfd, 1)); }},
    {"open-tree",
     [](const std::string &number) {
       return kernel_call(
           ::syscall(std::stol(number), AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */, 0, 0));
     }},
    {"inotify",
     [](const std::string &count) {
       std::vector<int> made;
       bool good = true;
       for (int i = std::stoi(count); i > 0 && good; --i) {
         const int fd = ::inotify_init1(IN_CLOEXEC);
         good = fd >= 0;
         if (good) made.push_back(fd);
       }
       const int number = errno;
       for (const int fd : made) ::close(fd);
       errno = number;
       return good;
     }},
    {"hold-namespaces", hold_namespaces},
    {"hold-terminals", hold_terminals},
    {"holds-text", holds_text},
    {"has-limit", has_limit},
    {"keyring", [](const std::string &) { return kernel_call(::syscall(SYS_keyctl, 0, -3, 0)); }},
    {"setuid",
     [](const std::string &id) { return ::setuid(static_cast<uid_t>(std::stoi(id))) == 0; }},
    {"forks", fork_many},
    {"memory", use_memory},
    {"daemon", start_daemon},
    {"fill",
     [](const std::string &path) {
       const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
       static char block[1 << 20];
       bool good = fd >= 0;
       for (int i = 0; i < 2048 && good; ++i)
         good = ::write(fd, block, sizeof block) == sizeof block;
       return good;
     }},
    {"pid", [](const std::string &pid) { return ::getpid() == std::stoi(pid); }},
    {"cwd",
     [](const std::string &path) {
       char now[4096];
       return ::getcwd(now, sizeof now) != nullptr && path == now;
     }},
    {"empty-cwd",
     [](const std::string &) {
       const int fd = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
       char entries[4096];
       const long size = fd < 0 ? 0 : ::syscall(SYS_getdents64, fd, entries, sizeof entries);
       if (fd >= 0) ::close(fd);
       errno = ENOTEMPTY;
       return size > 0 && size <= 48;  // only "." and ".."
     }},
    {"leader",
     [](const std::string &) { return ::getsid(0) == ::getpid() && ::getpgrp() == ::getpid(); }},
    {"clean-signals",
     [](const std::string &) {
       struct sigaction pipe_action{};
       sigset_t mask;
       ::sigaction(SIGPIPE, nullptr, &pipe_action);
       ::sigprocmask(SIG_SETMASK, nullptr, &mask);
       return pipe_action.sa_handler == SIG_DFL && sigismember(&mask, SIGPIPE) == 0;
     }},
    {"blocking", [](const std::string &) { return (::fcntl(0, F_GETFL) & O_NONBLOCK) == 0; }},
    {"descriptor", [](const std::string &fd) { return ::fcntl(std::stoi(fd), F_GETFD) >= 0; }},
    {"env", [](const std::string &name) { return std::getenv(name.c_str()) != nullptr; }},
    {"exit", [](const std::string &status) -> bool { std::exit(std::stoi(status)); }},
    {"die", [](const std::string &signal) { return ::raise(std::stoi(signal)) == 0; }},
    {"sleep-through-term",
     [](const std::string &) { return ::signal(SIGTERM, SIG_IGN) != SIG_ERR; }},
};

bool run(const std::string &text) {
  const std::size_t colon = text.find(':');
  const std::string what = text.substr(0, colon);
  for (const auto &[name, attempt] : attempts) {
    if (name == what) return attempt(colon == std::string::npos ? "" : text.substr(colon + 1));
  }
  errno = ENOSYS;
  return false;
}

void report(const std::string &attempt) {
  errno = 0;
  const bool good = run(attempt);
  std::printf("%s %s\n", attempt.c_str(), good ? "ok" : ::strerrorname_np(errno));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) report(argv[i]);
  char buffer[4096];
  std::string line;
  for (ssize_t n; (n = ::read(0, buffer, sizeof buffer)) > 0;) {
    line.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t end; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1)) {
      report(line.substr(0, end));
    }
  }
  return 0;
}
