#include "ipc_objects.hpp"

#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempts.hpp"

namespace breakout {
namespace {

constexpr char secret[] = "secret-of-yours";

key_t key_of(const Target &t) {
  return static_cast<key_t>(t.ipc_key);
}
std::string queue_of(const Target &t) {
  return "/" + t.ipc_name;
}
std::string file_of(const Target &t) {
  return "/dev/shm/" + t.ipc_name;
}

int shared_memory(const Target &t) {
  const int id = ::shmget(key_of(t), 0, 0);
  if (id < 0) return errno;
  void *at = ::shmat(id, nullptr, SHM_RDONLY);
  if (at == reinterpret_cast<void *>(-1)) return errno;
  const bool good = std::memcmp(at, secret, sizeof secret) == 0;
  ::shmdt(at);
  return good ? 0 : ENODATA;
}

int semaphore(const Target &t) {
  const int id = ::semget(key_of(t), 0, 0);
  if (id < 0) return errno;
  sembuf up{0, 1, IPC_NOWAIT}, down{0, -1, IPC_NOWAIT};
  return ::semop(id, &up, 1) == 0 && ::semop(id, &down, 1) == 0 ? 0 : errno;
}

struct Message {
  long type = 1;
  char byte = 'x';
};

int message(const Target &t) {
  const int id = ::msgget(key_of(t), 0);
  if (id < 0) return errno;
  Message one;
  if (::msgsnd(id, &one, sizeof one.byte, IPC_NOWAIT) != 0) return errno;
  ::msgrcv(id, &one, sizeof one.byte, 0, IPC_NOWAIT | MSG_NOERROR);
  return 0;
}

int posix_queue(const Target &t) {
  const mqd_t queue = ::mq_open(queue_of(t).c_str(), O_RDONLY | O_NONBLOCK);
  if (queue == static_cast<mqd_t>(-1)) return errno;
  ::mq_close(queue);
  return 0;
}

int posix_memory(const Target &t) {
  const int fd = ::open(file_of(t).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  const ssize_t n = ::read(fd, &byte, 1);
  const int error = n == 1 ? 0 : n < 0 ? errno : ENODATA;
  ::close(fd);
  return error;
}

// Sets the host name to its current value, so nothing changes on success.
int host_name(const Target &) {
  char name[256]{};
  if (::gethostname(name, sizeof name - 1) != 0) return errno;
  return ::sethostname(name, std::strlen(name)) == 0 ? 0 : errno;
}

}  // namespace

bool make_ipc_objects(const Target &t) {
  constexpr int made = IPC_CREAT | IPC_EXCL | 0666;
  const mode_t mask = ::umask(0);  // only the namespace may cause a failure
  const int memory = ::shmget(key_of(t), 4096, made);
  void *at = memory < 0 ? nullptr : ::shmat(memory, nullptr, 0);
  bool good = memory >= 0 && at != reinterpret_cast<void *>(-1);
  if (good) {
    std::memcpy(at, secret, sizeof secret);
    ::shmdt(at);
  }
  good = ::semget(key_of(t), 1, made) >= 0 && good;
  good = ::msgget(key_of(t), made) >= 0 && good;
  const mqd_t queue = ::mq_open(queue_of(t).c_str(), O_RDWR | O_CREAT | O_EXCL, 0666, nullptr);
  good = queue != static_cast<mqd_t>(-1) && good;
  if (queue != static_cast<mqd_t>(-1)) ::mq_close(queue);
  const int fd = ::open(file_of(t).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  good = fd >= 0 && ::write(fd, secret, sizeof secret) == sizeof secret && good;
  if (fd >= 0) ::close(fd);
  ::umask(mask);
  return good;
}

void remove_ipc_objects(const Target &t) {
  ::shmctl(::shmget(key_of(t), 0, 0), IPC_RMID, nullptr);
  ::semctl(::semget(key_of(t), 0, 0), 0, IPC_RMID);
  ::msgctl(::msgget(key_of(t), 0), IPC_RMID, nullptr);
  ::mq_unlink(queue_of(t).c_str());
  ::unlink(file_of(t).c_str());
}

void add_ipc_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"read shared memory (System V)", shared_memory},
                           {"change a semaphore (System V)", semaphore},
                           {"send a message (System V)", message},
                           {"open a POSIX message queue", posix_queue},
                           {"read shared memory (/dev/shm)", posix_memory},
                           {"set the host's name", host_name}});
}

}  // namespace breakout
