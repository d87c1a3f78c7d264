/* Bulkhead plugin ABI: the words that every other header uses.
 *
 * C11, no dependency but <stdint.h> and <stddef.h>. Nothing here allocates, and nothing of the C++
 * standard library crosses the ABI.
 *
 * Rules that hold everywhere:
 *  - A struct that can grow starts with `uint32_t size`, set by whoever made it from its own
 *    sizeof. A reader looks at a later member only if BH_HAS() says that it is there. Members are
 *    appended, never moved; a changed meaning is a new extension id.
 *  - Text is UTF-8, not NUL-terminated, and *borrowed until the call returns* unless stated.
 *    What must live longer is a bh_buf, released exactly once by whoever holds it last.
 *  - Every function names its thread in square brackets:
 *      [control] serialised per plugin instance; may take milliseconds, must not wait for the
 *                network.
 *      [io]      the compartment's reactor thread; must not block.
 *      [blocking] a thread of the host's pool; may block.
 *      [any]     any thread, also concurrently.
 *      [no-host] of a host function: not callable at this point. Of a plugin function: only
 *                bh_host.log, log_enabled and get_ext may be called from it, and nothing of the
 *                tables that get_ext returns.
 *  - No exception may cross: a plugin written in C++ catches at its edge (the C++ wrapper does).
 */
#ifndef BULKHEAD_ABI_CORE_H
#define BULKHEAD_ABI_CORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Major 0: no promise between releases yet; host and plugin must have the same major *and*
 * the plugin must not need a newer minor than the host has. */
#define BH_ABI_MAJOR 0u
#define BH_ABI_MINOR 2u

/* True if *p, as its producer knew the type, contains `field`. */
#define BH_HAS(type, p, field) \
  ((size_t)(p)->size >= offsetof(type, field) + sizeof(((const type *)0)->field))

/* Borrowed UTF-8 text (or bytes). p may be NULL when n is 0. */
typedef struct bh_str {
  const char *p;
  uint64_t n;
} bh_str;

/* One header of a message, as HTTP has them: the name is a token (RFC 9110) and is compared without
 * regard to case; the value is bytes, not always UTF-8, without control characters but the tab. An
 * array of headers has at most BH_HEADER_COUNT elements, and at most BH_HEADER_BYTES bytes of names
 * and values together. */
typedef struct bh_header {
  bh_str name;
  bh_str value;
} bh_header;
enum { BH_HEADER_COUNT = 64, BH_HEADER_BYTES = 32768 };

/* Owned bytes that are handed over. The receiver calls release(owner) exactly once, from any
 * thread, when it is done; release may be NULL for static data. */
typedef struct bh_buf {
  const char *p;
  uint64_t n;
  void *owner;
  void (*release)(void *owner);
} bh_buf;

/* Results of calls. Zero and above: no error. Each code says what a caller should do. */
typedef int32_t bh_status;
enum {
  BH_OK = 0,               /* done */
  BH_PENDING = 1,          /* accepted; the completion comes later through the host */
  BH_WOULD_BLOCK = 2,      /* not taken now; wait for the stated wake-up, then repeat */
  BH_STALE = 3,            /* the handle names something that has ended; drop it, never retry */
  BH_E_INVALID = -1,       /* the caller's data is wrong; fix, do not retry */
  BH_E_UNSUPPORTED = -2,   /* this side does not offer that; never retry */
  BH_E_UNAVAILABLE = -3,   /* not reachable now; retry after retry_after_ms */
  BH_E_TIMEOUT = -4,       /* took too long; it may have run */
  BH_E_CANCELLED = -5,     /* stopped on request */
  BH_E_LIMIT = -6,         /* a stated bound was reached; retry later or ask for less */
  BH_E_DENIED = -7,        /* not allowed; never retry */
  BH_E_NOT_FOUND = -8,     /* no such thing */
  BH_E_IO = -9,            /* the operating system refused; the text says which call and why */
  BH_E_AUTH = -10,         /* the other side wants (other) credentials */
  BH_E_SESSION_LOST = -11, /* the other side has forgotten the session; open a new one */
  BH_E_PROTOCOL = -12,     /* the other side broke its protocol */
  BH_E_ABI = -13,          /* host and plugin do not fit together */
  BH_E_INTERNAL = -14      /* a fault of the callee */
};

/* Room for an error, given by the caller; the callee fills code, n and text (cut on a character
 * boundary). Nothing to free, safe under concurrency. A NULL bh_error* means "not interested".
 * Never put a credential into the text: it reaches logs and clients. */
typedef struct bh_error {
  uint32_t size;
  bh_status code;
  uint32_t retry_after_ms; /* 0: unknown */
  uint32_t n;              /* bytes used in text */
  char text[480];
} bh_error;

#ifdef __cplusplus
}
#endif

#endif
