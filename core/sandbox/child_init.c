/* The first process of a child's PID namespace, the whole program: it waits for the server (always
 * process 2), reaps whatever is left to it, passes signals on, and ends with the server, upon which
 * the kernel kills everything else in the namespace.
 *
 * A program of its own, because a process that went on running our code would keep a copy of our
 * memory, secrets included, within reach of the server. Without libc, so that it costs next to
 * nothing: it is one per server. Descriptor 0 is an eventfd: the server's wait status plus 1.
 */
#include <stdint.h>
#include <sys/syscall.h>

enum { server = 2, sig_hup = 1, sig_int = 2, sig_term = 15, sig_chld = 17, no_hang = 1 };
enum { set_name = 15 /* PR_SET_NAME */ };

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandq $-16, %rsp\n\tcall run\n\tud2\n");

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
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl run\n\tbrk #1\n");

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
#error "child_init.c needs the system calls of this processor"
#endif

/* Reaps all that has ended; ends this process when the server is among it. */
static void reap(void) {
  int status = 0;
  long pid;
  while ((pid = call(SYS_wait4, -1, (long)&status, no_hang, 0)) > 0) {
    if (pid != server) continue;
    const uint64_t report = (uint64_t)(uint32_t)status + 1;
    call(SYS_write, 0, (long)&report, sizeof report, 0);
    call(SYS_exit_group, 0, 0, 0, 0);
  }
}

/* All signals are blocked; those that are waited for stay pending until they are fetched. */
__attribute__((used, noreturn)) void run(void) {
  const uint64_t set =
      1u << (sig_hup - 1) | 1u << (sig_int - 1) | 1u << (sig_term - 1) | 1u << (sig_chld - 1);
  call(SYS_prctl, set_name, (long)"bulkhead-init", 0, 0);
  for (;;) {
    reap();
    const long signal = call(SYS_rt_sigtimedwait, (long)&set, 0, 0, sizeof set);
    if (signal > 0 && signal != sig_chld) call(SYS_kill, -server, signal, 0, 0);
  }
}
