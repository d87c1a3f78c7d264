/* Draft: child processes that the host starts in the sandbox of a server's definition. Provided
 * only to plugins that the profile uses as connectors of stdio servers.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_SPAWN_H
#define BULKHEAD_ABI_EXT_DRAFT_SPAWN_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_SPAWN "bh.host.spawn/1"

typedef uint64_t bh_child_id; /* 0: none; contains a generation */

/* A request to start a child process. All data is borrowed. Strings must not contain NUL. */
typedef struct bh_spawn {
  uint32_t size;
  uint32_t flags;     /* no flags are defined; must be 0 */
  bh_str server;      /* the name in the profile, for logs, error messages and folders */
  bh_str definition;  /* as in bh_lane_info; determines the sandbox */
  bh_str program;     /* path of the executable file */
  const bh_str *argv; /* argv[0] is the command as configured */
  const bh_str *env;  /* the whole environment, as "NAME=value" */
  uint32_t argc;      /* at least 1 */
  uint32_t envc;
  bh_str cwd; /* empty: the host's working directory */
} bh_spawn;

typedef struct bh_child {
  uint32_t size;
  int32_t pid; /* only for logs and error messages; use kill() to send signals */
  bh_child_id id;
  /* File descriptors, close-on-exec. The plugin owns and closes them. */
  int32_t pidfd; /* readable when the child and all of its descendants have exited */
  int32_t in;    /* the child's standard input; non-blocking, like `out` and `err` */
  int32_t out;   /* the child's standard output */
  int32_t err;   /* the child's standard error */
} bh_child;

enum {
  BH_CHILD_EXITED = 1,
  BH_CHILD_KILLED = 2,
  BH_CHILD_UNKNOWN = 3,    /* reaped by other code */
  BH_CHILD_NOT_STARTED = 4 /* the program was not executed; `why` has the reason */
};

typedef struct bh_child_end {
  uint32_t size;
  uint32_t how;   /* BH_CHILD_... */
  int32_t status; /* exit status or signal number */
  int32_t reserved;
  bh_error *why; /* the caller's buffer or NULL; set only for BH_CHILD_NOT_STARTED */
} bh_child_end;

typedef struct bh_host_spawn {
  uint32_t size;
  uint32_t reserved;

  /* Starts a child process. It may not be running yet when this function returns, but its pipes
   * can be used. If the start fails later, pidfd becomes readable, and reap returns
   * BH_CHILD_NOT_STARTED. If this function returns an error, it has released all resources.
   * Error texts name the server and the command, and contain no environment values. The child
   * leads a new session, has default signal handling, and is killed when the host exits. [io] */
  bh_status (*spawn)(void *ctx, const bh_spawn *request, bh_child *out, bh_error *error);

  /* Sends a signal. SIGKILL is sent to the child and all of its descendants. SIGHUP, SIGINT and
   * SIGTERM are sent to the child's process group. Other signals are ignored. Returns BH_STALE
   * after reap. [io] */
  bh_status (*kill)(void *ctx, bh_child_id child, int32_t signal);

  /* Returns BH_PENDING if the child has not exited. If it has exited, returns BH_OK, sets *out,
   * and releases the ID. [io] */
  bh_status (*reap)(void *ctx, bh_child_id child, bh_child_end *out);
} bh_host_spawn;

#ifdef __cplusplus
}
#endif

#endif
