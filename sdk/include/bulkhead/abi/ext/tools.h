/* Tools: a plugin that *is* an MCP server. It lists and runs tools in place, without a wire.
 */
#ifndef BULKHEAD_ABI_EXT_TOOLS_H
#define BULKHEAD_ABI_EXT_TOOLS_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TOOLS "bh.tools/1"
#define BH_EXT_HOST_TOOLS "bh.host.tools/1"

typedef uint64_t bh_call; /* 0: none; carries a generation */

/* What can be listed; also what can have changed. */
enum { BH_LIST_TOOLS = 1, BH_LIST_RESOURCES = 2, BH_LIST_TEMPLATES = 3, BH_LIST_PROMPTS = 4 };

typedef struct bh_call_info {
  uint32_t size;
  uint32_t flags;       /* BH_CALL_PROGRESS */
  bh_str method;        /* "tools/call", "resources/read", "prompts/get"; of a plugin that has
                         * BH_TOOLS_SUBSCRIBE also "resources/subscribe", "resources/unsubscribe" */
  bh_str name;          /* the tool's or prompt's name, or the resource's URI; unescaped */
  bh_str arguments;     /* JSON text of `arguments`, exactly as it came; empty: absent */
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
} bh_call_info;
enum { BH_CALL_PROGRESS = 1 /* flag: somebody listens to progress */ };

/* What a plugin can beside lists and calls. */
enum {
  /* Calls "resources/subscribe" and "resources/unsubscribe" are understood; the result is {}. Both
   * may come again for a URI that is, or is not, subscribed to, and are fine then. The host counts
   * the clients: a plugin hears of the first and the last. Every subscription ends with stop(). */
  BH_TOOLS_SUBSCRIBE = 1
};

enum {
  BH_RESULT_OK = 1,   /* json is the `result` object (also for a tool result with isError) */
  BH_RESULT_ERROR = 2 /* json is the JSON-RPC `error` object */
};

typedef struct bh_result {
  uint32_t size;
  uint32_t kind; /* BH_RESULT_... */
  bh_buf json;   /* ownership goes to the host, whatever complete() returns */
} bh_result;

typedef struct bh_tools {
  uint32_t size;
  uint32_t reserved;

  /* JSON array of the items of one kind, as MCP's list methods have them. BH_E_UNSUPPORTED: this
   * plugin has no such items. BH_PENDING: not known yet; list_changed follows. Asked again only
   * after list_changed. [io] */
  bh_status (*list)(void *self, uint32_t kind, bh_buf *out, bh_error *error);

  /* Runs a call. BH_OK: complete() has been called inside. BH_PENDING: it will be called. An error:
   * it is not called, the client gets error->text as a JSON-RPC error. `info` is borrowed. [io] */
  bh_status (*call_begin)(void *self, bh_call call, const bh_call_info *info, bh_error *error);

  /* Nobody waits any more; stop soon. complete() is still owed. At most once per call. [io] */
  void (*call_cancel)(void *self, bh_call call);

  /* Bits of BH_TOOLS_...; the same as long as the instance lives, asked for after start(). Null:
   * none. [io] */
  uint32_t (*features)(void *self);
} bh_tools;

typedef struct bh_host_tools {
  uint32_t size;
  uint32_t reserved;

  /* Exactly once per pending call. BH_STALE: came too late, nothing to do. [any] */
  bh_status (*complete)(void *ctx, bh_call call, const bh_result *result);

  /* progress must grow; total 0: unknown. Dropped if nobody listens. [any] */
  void (*progress)(void *ctx, bh_call call, double progress, double total, bh_str message);

  /* The items of `kind` are others now. [any] */
  void (*list_changed)(void *ctx, uint32_t kind);

  /* The resource with that URI may have another content now, or is gone, or there again. `uri` as
   * "resources/subscribe" had it, or of a part of that resource; borrowed. Clients are told at
   * once: put changes that follow each other closely together. What nobody subscribed to is
   * dropped. [any] */
  void (*resource_updated)(void *ctx, bh_str uri);
} bh_host_tools;

#ifdef __cplusplus
}
#endif

#endif
