/* Functions that all plugins in this folder use.
 *
 * BREAK selects the rule of docs/plugin-rules.md that a plugin violates: 0 for none, the rule's
 * number, or the number and a digit if there are several ways to violate the rule. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bulkhead/abi/plugin.h"

#ifndef BREAK
#define BREAK 0
#endif
#define BREAKS(number) (BREAK == (number))

/* Blocks for longer than the check allows, but less than the time limit of a step. */
enum { TOO_LONG_MS = 1200 };

static inline bh_str text(const char *s) {
  bh_str out = {s, strlen(s)};
  return out;
}

static inline int equals(bh_str a, const char *b) {
  return a.n == strlen(b) && (a.n == 0 || memcmp(a.p, b, a.n) == 0);
}

static inline int begins_with(bh_str a, const char *b) {
  return a.n >= strlen(b) && memcmp(a.p, b, strlen(b)) == 0;
}

/* Sets the caller's error buffer, if there is one. */
static inline bh_status refuse(bh_error *error, bh_status code, const char *reason) {
  if (error != NULL && BH_HAS(bh_error, error, text)) {
    error->code = code;
    error->retry_after_ms = 0;
    error->n = (uint32_t)strlen(reason);
    memcpy(error->text, reason, error->n);
  }
  return code;
}

static inline void crash(void) {
  __builtin_trap();
}

static inline void block(unsigned ms) {
  struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

static inline void hang(void) {
  for (;;) block(1000);
}

/* The data of an instance that lifecycle.h uses. */
struct base {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_executor *executor;
  const bh_host_fd *fds;
  const void *kind; /* the host's table for this kind of plugin */
};

#endif
