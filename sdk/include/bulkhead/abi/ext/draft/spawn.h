/* Draft: child processes, started by the host in the sandbox that the server's definition asks for.
 * The host gives this table only to plugins that the profile uses as connectors for servers with a
 * command. Draft ids may change between minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_SPAWN_H
#define BULKHEAD_ABI_EXT_DRAFT_SPAWN_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_SPAWN "bh.host.spawn/1"

typedef uint64_t bh_child_id; /* 0: none; carries a generation */

/* Everything is borrowed and copied where needed. No text may hold a NUL. */
typedef struct bh_spawn {
  uint32_t size;
  uint32_t flags;     /* none defined; must be 0 */
  bh_str server;      /* the name in the profile; for logs and error texts, and of its folders */
  bh_str definition;  /* as in bh_lane_info: says which sandbox, and which paths the server was
                         given by name */
  bh_str program;     /* path of the file to execute */
  const bh_str *argv; /* argv[0] is the command as it was written */
  const bh_str *env;  /* "NAME=value", the whole environment */
  uint32_t argc;      /* at least 1 */
  uint32_t envc;
  bh_str cwd; /* empty: the host's */
} bh_spawn;

typedef struct bh_child {
  uint32_t size;
  int32_t pid; /* for texts only; signals go through kill() */
  bh_child_id id;
  /* Descriptors, close-on-exec, handed over: the plugin closes them. */
  int32_t pidfd; /* readable when it has ended, and all that it started */
  int32_t in;    /* writes to its standard input; not blocking, like the next two */
  int32_t out;   /* reads its standard output */
  int32_t err;   /* reads its standard error */
} bh_child;

enum {
  BH_CHILD_EXITED = 1,
  BH_CHILD_KILLED = 2,
  BH_CHILD_UNKNOWN = 3,    /* reaped by others */
  BH_CHILD_NOT_STARTED = 4 /* it never ran its program; why says what failed */
};

typedef struct bh_child_end {
  uint32_t size;
  uint32_t how;   /* BH_CHILD_... */
  int32_t status; /* exit status, or the signal's number */
  int32_t reserved;
  bh_error *why; /* the caller's, may be null; filled for BH_CHILD_NOT_STARTED only */
} bh_child_end;

typedef struct bh_host_spawn {
  uint32_t size;
  uint32_t reserved;

  /* Starts a child. It may still be getting ready when this returns: its pipes are there and can be
   * used, and a start that fails later is an end (pidfd, reap) that says BH_CHILD_NOT_STARTED. On
   * an error nothing is left of it. Both texts name server and command, no value of the
   * environment. It leads a session of its own, has default signal handling, and dies with the
   * host. [io] */
  bh_status (*spawn)(void *ctx, const bh_spawn *request, bh_child *out, bh_error *error);

  /* SIGKILL: the child and everything that it started. SIGHUP, SIGINT, SIGTERM: its process group;
   * others do nothing. BH_STALE after reap. [io] */
  bh_status (*kill)(void *ctx, bh_child_id child, int32_t signal);

  /* BH_PENDING: it has not ended. BH_OK: it has; *out says how, and the id is gone. [io] */
  bh_status (*reap)(void *ctx, bh_child_id child, bh_child_end *out);
} bh_host_spawn;

#ifdef __cplusplus
}
#endif

#endif
