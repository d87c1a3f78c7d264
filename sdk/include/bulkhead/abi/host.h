/* The services that the host provides to a plugin instance.
 *
 * Since 1.0. Stable.
 *
 * A bh_host belongs to one plugin instance, which ctx identifies, and is valid until destroy()
 * has returned. All services except log are extensions with an ID. If a host does not provide an
 * extension, get_ext returns NULL, and the plugin must handle this. */
#ifndef BULKHEAD_ABI_HOST_H
#define BULKHEAD_ABI_HOST_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BH_LOG_DEBUG = 0,
  BH_LOG_INFO = 1,
  BH_LOG_WARN = 2,
  BH_LOG_ERROR = 3,
  BH_LOG_HOST_MISBEHAVES = 4,  /* the host violated this ABI */
  BH_LOG_PLUGIN_MISBEHAVES = 5 /* the plugin violated this ABI */
};

typedef struct bh_host {
  uint32_t size;
  uint32_t abi_minor; /* newest minor version that this host supports */
  void *ctx;          /* first argument of all functions below */
  bh_str name;        /* name of the host program, such as "bulkhead" */
  bh_str version;

  /* Returns an extension's table, or NULL if the host does not provide it. Tables are valid as
   * long as the bh_host. [any] */
  const void *(*get_ext)(void *ctx, const char *id);

  /* Logs a line. Lines longer than 4 KiB are truncated. A line must not contain credentials.
   * [any] */
  void (*log)(void *ctx, int32_t level, bh_str message);

  /* Returns nonzero if this level is logged. A plugin can thus skip expensive formatting. [any] */
  int32_t (*log_enabled)(void *ctx, int32_t level);
} bh_host;

/* ---- bh.host.executor/1: the reactor thread, timers, and a limited pool for blocking work ---- */
#define BH_EXT_HOST_EXECUTOR "bh.host.executor/1"

typedef uint64_t bh_timer; /* 0: none; contains a generation */

typedef struct bh_host_executor {
  uint32_t size;
  uint32_t reserved;

  /* Returns the time at the start of this event loop iteration: CLOCK_MONOTONIC in nanoseconds.
   * [io] */
  uint64_t (*now_ns)(void *ctx);

  /* Calls fn(arg) on the reactor thread after the current events. Returns BH_E_LIMIT if 65,536
   * functions are queued, and BH_STALE after stop(). fn is never called after stop() has
   * returned. [any] */
  bh_status (*post)(void *ctx, void (*fn)(void *arg), void *arg);

  /* Calls fn(arg) once at the end of this event loop iteration. Useful to write data that
   * several events have queued. fn is never called after stop() has returned. [io] */
  void (*defer)(void *ctx, void (*fn)(void *arg), void *arg);

  /* Calls fn(arg) once on the reactor thread, after delay_ms (resolution about 1 ms). [io] */
  bh_timer (*timer_start)(void *ctx, uint64_t delay_ms, void (*fn)(void *arg), void *arg);

  /* Cancels a timer, so that fn is not called. Returns BH_STALE if fn was already called or the
   * timer was cancelled. [io] */
  bh_status (*timer_cancel)(void *ctx, bh_timer timer);

  /* Calls work(arg) on a thread of a limited pool, and then done(arg) on the reactor thread.
   * After BH_OK, done is called exactly once, or not at all once stop() has returned. Returns
   * BH_E_LIMIT if 256 jobs are queued, and BH_STALE after stop(). [any] */
  bh_status (*run_blocking)(void *ctx, void (*work)(void *arg), void (*done)(void *arg), void *arg);
} bh_host_executor;

/* ---- bh.host.fd/1: readiness of descriptors on the reactor thread ---------------------------- */
#define BH_EXT_HOST_FD "bh.host.fd/1"

enum { BH_FD_READ = 1, BH_FD_WRITE = 2, BH_FD_ERROR = 4 /* reported, never requested */ };
typedef uint64_t bh_watch; /* 0: none; contains a generation */

typedef struct bh_host_fd {
  uint32_t size;
  uint32_t reserved;

  /* Watches a descriptor, level-triggered: fn is called in each event loop iteration in which
   * one of `events` is ready. The plugin keeps ownership of the descriptor. A descriptor can
   * have only one watch. Returns BH_E_UNSUPPORTED for a descriptor that cannot be watched, such as
   * a regular file. [io] */
  bh_status (*watch)(void *ctx, int32_t fd, uint32_t events,
                     void (*fn)(void *arg, int32_t fd, uint32_t events), void *arg, bh_watch *out);

  /* Changes the watched events. If `events` is 0, only errors are reported. [io] */
  bh_status (*modify)(void *ctx, bh_watch watch, uint32_t events);

  /* Removes the watch. fn is not called afterwards. Must be called before close(2). [io] */
  bh_status (*unwatch)(void *ctx, bh_watch watch);
} bh_host_fd;

/* ---- bh.host.secrets/1: opaque bytes in files of the host's state folder (mode 0600) --------- */
#define BH_EXT_HOST_SECRETS "bh.host.secrets/1"

typedef struct bh_host_secrets {
  uint32_t size;
  uint32_t reserved;

  /* Copies a secret into buf (at most cap bytes) and sets *n to its size. Returns BH_E_NOT_FOUND
   * if it does not exist. If cap is too small, returns BH_E_LIMIT and sets *n. A name consists of
   * 1 to 64 characters from [a-z0-9-]. Each instance has its own names. [control] */
  bh_status (*get)(void *ctx, bh_str name, char *buf, uint64_t cap, uint64_t *n);

  /* Stores or replaces a secret of at most 64 KiB. An empty value deletes it. Returns BH_E_LIMIT
   * if the value is too large or the instance already has 64 secrets. [control] */
  bh_status (*put)(void *ctx, bh_str name, bh_str value);
} bh_host_secrets;

/* ---- bh.host.metrics/1 ----------------------------------------------------------------------- */
#define BH_EXT_HOST_METRICS "bh.host.metrics/1"

typedef uint32_t bh_metric; /* 0: none */

typedef struct bh_host_metrics {
  uint32_t size;
  uint32_t reserved;

  /* Returns the counter with this name, and creates it if it does not exist. A name consists of 1
   * to 64 characters from [a-z0-9_.]. Returns 0 if the name is invalid or the instance already has
   * 256 counters. [control] */
  bh_metric (*counter)(void *ctx, bh_str name);
  /* Adds n to a counter. [io] */
  void (*add)(void *ctx, bh_metric metric, uint64_t n);
} bh_host_metrics;

/* ---- bh.host.store/1: a private folder of the instance --------------------------------------- */
#define BH_EXT_HOST_STORE "bh.host.store/1"

typedef struct bh_host_store {
  uint32_t size;
  uint32_t reserved;

  /* Returns the absolute path of the instance's private folder (mode 0700). The string is valid
   * as long as the host. If the folder cannot be created, the string is empty (n = 0), and the
   * reason is logged. [control] */
  bh_str (*folder)(void *ctx);
} bh_host_store;

/* Limits of the profile that several extensions use, in bytes and milliseconds. */
typedef struct bh_limits {
  uint32_t size;
  uint32_t reserved;
  uint64_t message_bytes;         /* a JSON-RPC message in either direction */
  uint64_t header_bytes;          /* an HTTP request or response head */
  uint64_t sessions;              /* open client sessions */
  uint64_t session_idle_ms;       /* an unused session is closed after this time */
  uint64_t event_buffer_bytes;    /* per session, for resumption of event streams */
  uint64_t write_queue_bytes;     /* pending output of a connection */
  uint64_t write_stall_ms;        /* a peer that reads nothing for this time is disconnected */
  uint64_t connect_timeout_ms;    /* connecting to an upstream, including the handshake */
  uint64_t request_read_ms;       /* receiving a client's whole request */
  uint64_t shutdown_grace_ms;     /* time between requesting a child to exit and killing it */
  uint64_t in_flight_per_session; /* requests in flight; additional requests are rejected */
} bh_limits;

#ifdef __cplusplus
}
#endif

#endif
