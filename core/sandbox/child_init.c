/* This program is the first process of a started server. It waits for the server, reaps orphans and
 * forwards signals. After the server exits, it kills the remaining processes and exits as well.
 *
 * Without arguments, it is the first process of a PID namespace, in which the server is process 2.
 * When it exits, the kernel kills all other processes in the namespace. With the server's pid as
 * an argument, there is no PID namespace, and this process is a child subreaper: orphaned
 * descendants of the server, in any session, become its children. It kills them, one generation
 * after another. In this mode, the signal end_all replaces SIGKILL.
 *
 * This is a separate program because a process that continued to run the gateway's code would keep
 * a copy of the gateway's memory, including secrets, within reach of the server. Every server needs
 * one such process; without libc, its overhead is small. Descriptor 0 is an eventfd that receives
 * the server's wait status plus 1.
 */
#include <stdint.h>
#include <sys/syscall.h>

enum { sig_hup = 1, sig_int = 2, sig_kill = 9, end_all = 10 /* SIGUSR1 */, sig_term = 15 };
enum { sig_chld = 17, no_hang = 1, no_child = -10 /* ECHILD */, at_cwd = -100 };
enum { set_dumpable = 4 /* PR_SET_DUMPABLE */ };
enum { set_name = 15 /* PR_SET_NAME */, folder_flags = 0200000 /* O_DIRECTORY */ };

#if defined(__x86_64__)
__asm__(
    ".globl _start\n_start:\n\tmovq %rsp, %rdi\n\txorl %ebp, %ebp\n\tandq $-16, %rsp\n"
    "\tcall run\n\tud2\n");

static long call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tmov x29, #0\n\tbl run\n\tbrk #1\n");

static long call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "child_init.c does not support this processor"
#endif

/* Limits on the wait for the remaining processes. A process that is blocked on a broken disk does
 * not exit. */
enum { pause_ms = 10, most_pauses = 500, most_rounds = 100000 };

static long server = 2;
static long self;
static int alone = 1; /* whether this is the first process of a PID namespace */
static int ended;     /* whether the server has exited */

/* Reaps all children that have exited and reports the server's status. Returns 0 if no children are
 * left. */
static int reap(void) {
  int status = 0;
  long pid;
  while ((pid = call(SYS_wait4, -1, (long)&status, no_hang, 0)) > 0) {
    if (pid != server || ended) continue;
    const uint64_t report = (uint64_t)(uint32_t)status + 1;
    ended = 1;
    call(SYS_write, 0, (long)&report, sizeof report, 0);
  }
  return pid != no_child;
}

static long number(const char *text) {
  long value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + (*text++ - '0');
  return value;
}

/* Parses "PID (name) state PARENT ...", where the name may contain any character. */
static long parent_in(const char *text, long size) {
  long at = size;
  while (at > 0 && text[at - 1] != ')') --at;
  return at == 0 || at + 3 >= size ? 0 : number(text + at + 3);
}

static long parent_of(long folder, const char *pid) {
  char path[32], text[512];
  long n = 0;
  for (; pid[n] != '\0' && n < 20; ++n) path[n] = pid[n];
  for (const char *rest = "/stat"; *rest != '\0'; ++rest) path[n++] = *rest;
  path[n] = '\0';
  const long fd = call(SYS_openat, folder, (long)path, 0, 0);
  if (fd < 0) return 0;
  const long size = call(SYS_read, fd, (long)text, sizeof text - 1, 0);
  call(SYS_close, fd, 0, 0, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  return parent_in(text, size);
}

struct entry { /* linux_dirent64 */
  uint64_t inode;
  int64_t next;
  uint16_t size;
  uint8_t type;
  char name[];
};

/* Kills all children. Only this process reaps them, so their pids cannot have been reused. */
static void kill_children(void) {
  static char buffer[8192] __attribute__((aligned(8)));
  const long folder = call(SYS_openat, at_cwd, (long)"/proc", folder_flags, 0);
  long size;
  if (folder < 0) return;
  while ((size = call(SYS_getdents64, folder, (long)buffer, sizeof buffer, 0)) > 0) {
    for (long at = 0; at < size;) {
      const struct entry *found = (const struct entry *)(buffer + at);
      at += found->size;
      const long pid = number(found->name);
      if (pid > 0 && parent_of(folder, found->name) == self) call(SYS_kill, pid, sig_kill, 0, 0);
    }
  }
  call(SYS_close, folder, 0, 0, 0);
}

__attribute__((noreturn)) static void end(void) {
  if (!alone) {
    const uint64_t child = 1u << (sig_chld - 1);
    const long pause[2] = {0, pause_ms * 1000000L};
    int pauses = 0;
    for (int round = 0; round < most_rounds && pauses < most_pauses && reap(); ++round) {
      kill_children();
      if (call(SYS_rt_sigtimedwait, (long)&child, 0, (long)pause, sizeof child) < 0) ++pauses;
    }
  }
  for (;;) call(SYS_exit_group, 0, 0, 0, 0);
}

/* All signals are blocked and stay pending until this process fetches them. `start` points to the
 * number of arguments, followed by pointers to the arguments. */
__attribute__((used, noreturn)) void run(long *start) {
  /* The program file is executable but not readable, so the process is not dumpable (see
   * child_image.cpp). This call is for file systems that ignore file modes. */
  call(SYS_prctl, set_dumpable, 0, 0, 0);
  uint64_t set =
      1u << (sig_hup - 1) | 1u << (sig_int - 1) | 1u << (sig_term - 1) | 1u << (sig_chld - 1);
  if (start[0] > 1) {
    server = number((const char *)start[2]);
    self = call(SYS_getpid, 0, 0, 0, 0);
    alone = 0;
    set |= 1u << (end_all - 1);
  }
  call(SYS_prctl, set_name, (long)"bulkhead-init", 0, 0);
  for (;;) {
    if (!reap() || ended) end();
    const long signal = call(SYS_rt_sigtimedwait, (long)&set, 0, 0, sizeof set);
    if (signal == end_all) end();
    if (signal > 0 && signal != sig_chld) call(SYS_kill, -server, signal, 0, 0);
  }
}
