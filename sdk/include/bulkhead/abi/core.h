/* Bulkhead plugin ABI: the basic types that all other headers use.
 *
 * Since 1.0. Stable.
 *
 * C11; the only dependencies are <stdint.h> and <stddef.h>. These headers allocate no memory, and
 * no type of the C++ standard library crosses the ABI.
 *
 * Rules for all headers:
 *  - An extensible struct starts with `uint32_t size`: the sizeof of the side that provides its
 *    memory. For a struct that a function fills (an `out` argument, bh_error), this is the caller.
 *    The callee must not change `size`, and must not write beyond it: it sets single members, and
 *    never assigns the whole struct. A member that was added after 1.0 must be neither read nor
 *    written unless BH_HAS() is true. New members are appended and never move; if a meaning
 * changes, the extension gets a new ID.
 *  - Each header states since which version its contents exist, and their state. *Stable* contents
 *    do not change within a major version, except that members are appended. *Draft* contents may
 *    change incompatibly, or be removed, in a minor version; the extension then gets a new ID. A
 *    slot, member or constant that was added later has its own "Since" in its comment.
 *  - Text is UTF-8 and not NUL-terminated. It is *borrowed until the call returns* unless stated
 *    otherwise. Data that must live longer is a bh_buf, which its last owner releases exactly once.
 *  - Every function's comment names its thread in square brackets:
 *      [control]  the compartment's reactor thread; may take milliseconds, must not wait for the
 *                 network.
 *      [io]       the compartment's reactor thread; must not block.
 *      [blocking] a thread of the host's pool; may block.
 *      [any]      any thread, concurrently.
 *      [no-host]  the plugin must not use the host inside this function, except for bh_host.log,
 *                 log_enabled and get_ext. It must not call functions of tables that get_ext
 *                 returns.
 *    The host calls the [control] and [io] functions of an instance, and the callbacks that the
 *    instance has registered (timers, watches, posted functions), one at a time: never from two
 *    threads at once. A plugin must call the host's [control] and [io] functions only inside such a
 *    call, and [io] functions not inside configure().
 *  - No exception may cross the ABI: a C++ plugin must catch all exceptions (the C++ wrapper does).
 */
#ifndef BULKHEAD_ABI_CORE_H
#define BULKHEAD_ABI_CORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Host and plugin must have the same major version, and the plugin must not require a newer minor
 * version than the host's. While BH_ABI_RC is not 0, the headers are a release candidate of this
 * version: host and plugin must then have the same candidate. It is 0 in a released version, which
 * does not accept plugins that were built with a candidate. */
#define BH_ABI_MAJOR 1u
#define BH_ABI_MINOR 0u
#define BH_ABI_RC 1u

/* True if *p contains `field`. A struct from an older producer may be shorter. */
#define BH_HAS(type, p, field) \
  ((size_t)(p)->size >= offsetof(type, field) + sizeof(((const type *)0)->field))

/* Borrowed UTF-8 text (or bytes). p may be NULL if n is 0. */
typedef struct bh_str {
  const char *p;
  uint64_t n;
} bh_str;

/* An HTTP header of a message. The name is a token (RFC 9110) and is compared
 * case-insensitively. The value need not be UTF-8, and may contain all bytes except control
 * characters other than the tab. An array has at most BH_HEADER_COUNT headers, whose names and
 * values have at most BH_HEADER_BYTES bytes in total. */
typedef struct bh_header {
  bh_str name;
  bh_str value;
} bh_header;
enum { BH_HEADER_COUNT = 64, BH_HEADER_BYTES = 32768 };

/* Bytes whose ownership is transferred. The receiver must call release(owner) exactly once, on
 * any thread. release may be NULL for static data. */
typedef struct bh_buf {
  const char *p;
  uint64_t n;
  void *owner;
  void (*release)(void *owner);
} bh_buf;

/* Status codes. Zero and positive values are not errors. Each code tells the caller what to do. A
 * function returns only the positive values that its comment names. A receiver handles any other
 * positive value, and an unknown negative value, like BH_E_INTERNAL. */
typedef int32_t bh_status;
enum {
  BH_OK = 0,          /* done */
  BH_PENDING = 1,     /* accepted; the result is reported to the host later */
  BH_WOULD_BLOCK = 2, /* not accepted now; wait for the documented event, then retry */
  /* the object of the handle no longer exists; discard the handle, never retry */
  BH_STALE = 3,
  BH_E_INVALID = -1,       /* the caller's data is invalid; do not retry */
  BH_E_UNSUPPORTED = -2,   /* not implemented by the callee; never retry */
  BH_E_UNAVAILABLE = -3,   /* temporarily unreachable; retry after retry_after_ms */
  BH_E_TIMEOUT = -4,       /* timed out; the operation may have been executed */
  BH_E_CANCELLED = -5,     /* cancelled on request */
  BH_E_LIMIT = -6,         /* a documented limit was reached; retry later or with less data */
  BH_E_DENIED = -7,        /* not permitted; never retry */
  BH_E_NOT_FOUND = -8,     /* the object does not exist */
  BH_E_IO = -9,            /* a system call failed; the text names the call and the reason */
  BH_E_AUTH = -10,         /* the peer requires credentials, or other credentials */
  BH_E_SESSION_LOST = -11, /* the peer no longer has the session; open a new one */
  BH_E_PROTOCOL = -12,     /* the peer violated the protocol */
  BH_E_ABI = -13,          /* host and plugin are incompatible */
  BH_E_INTERNAL = -14      /* a bug in the callee */
};

/* The caller's error buffer. The callee sets code, n and text (truncated at a character
 * boundary). A NULL bh_error* means that the caller does not need the error. The text is logged
 * and sent to clients, so it must not contain credentials. */
typedef struct bh_error {
  uint32_t size;
  bh_status code;
  uint32_t retry_after_ms; /* 0 if unknown */
  uint32_t n;              /* size of the text in bytes */
  char text[480];
} bh_error;

#ifdef __cplusplus
}
#endif

#endif
