#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "attempts.hpp"

namespace breakout {
namespace {

constexpr std::size_t chunk = 1U << 20;

int fill(const Target &t, int flags, int fd) {
  std::vector<void *> taken;
  taken.reserve(t.memory_bytes / chunk + 1);
  int error = 0;
  for (std::uint64_t got = 0; got < t.memory_bytes && error == 0; got += chunk) {
    void *p = ::mmap(nullptr, chunk, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (p == MAP_FAILED) {
      error = errno;
    } else {
      *static_cast<volatile char *>(p) = 1;  // proves that the mapping is usable
      taken.push_back(p);
    }
  }
  for (void *p : taken) ::munmap(p, chunk);
  return error;
}

int private_memory(const Target &t) {
  return fill(t, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
int shared_memory(const Target &t) {
  return fill(t, MAP_SHARED | MAP_ANONYMOUS, -1);
}
int memory_file(const Target &t) {
  const int fd = static_cast<int>(::syscall(__NR_memfd_create, "breakout", 1U));
  if (fd < 0) return errno;
  const int error = ::ftruncate(fd, static_cast<off_t>(t.memory_bytes)) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

int fork_bomb(const Target &t) {
  std::vector<pid_t> children;
  int error = 0;
  while (children.size() < t.processes && error == 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    if (child < 0) error = errno;
    if (child > 0) children.push_back(child);
  }
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return error;
}

struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};
void *wait_at(void *gate) {
  pthread_mutex_lock(&static_cast<Gate *>(gate)->mutex);
  pthread_mutex_unlock(&static_cast<Gate *>(gate)->mutex);
  return nullptr;
}
int thread_bomb(const Target &t) {
  Gate gate;
  pthread_mutex_lock(&gate.mutex);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  std::vector<pthread_t> threads;
  int error = 0;
  while (threads.size() < t.processes && error == 0) {
    pthread_t thread;
    error = pthread_create(&thread, &attributes, wait_at, &gate);
    if (error == 0) threads.push_back(thread);
  }
  pthread_mutex_unlock(&gate.mutex);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

int fill_disk(const Target &t) {
  const std::string path = t.scratch + "/big";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::signal(SIGXFSZ, SIG_IGN);
  const int error = ::pwrite(fd, "x", 1, static_cast<off_t>(t.disk_bytes)) == 1 ? 0 : errno;
  ::close(fd);
  ::unlink(path.c_str());
  return error;
}

int many_descriptors(const Target &) {
  std::vector<int> taken;
  int error = 0;
  for (int i = 0; i < 900 && error == 0; ++i) {
    const int fd = ::dup(0);
    if (fd < 0) error = errno;
    if (fd >= 0) taken.push_back(fd);
  }
  for (const int fd : taken) ::close(fd);
  return error;
}

int raise_limit(const Target &) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return errno;
  limit.rlim_max = limit.rlim_cur = limit.rlim_max + 1;
  return ::setrlimit(RLIMIT_CORE, &limit) == 0 ? 0 : errno;
}

}  // namespace

void add_resource_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"fill memory", private_memory},
                           {"fill memory (shared)", shared_memory},
                           {"fill memory (memfd)", memory_file},
                           {"fork bomb", fork_bomb},
                           {"thread bomb", thread_bomb},
                           {"fill the disk with one file", fill_disk},
                           {"take all descriptors", many_descriptors},
                           {"raise a limit", raise_limit}});
}

}  // namespace breakout
