/* Tools: a plugin that is itself an MCP server. It lists and executes tools in its own process,
 * without a wire.
 */
#ifndef BULKHEAD_ABI_EXT_TOOLS_H
#define BULKHEAD_ABI_EXT_TOOLS_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TOOLS "bh.tools/1"
#define BH_EXT_HOST_TOOLS "bh.host.tools/1"

typedef uint64_t bh_call; /* 0 means none; includes a generation */

/* List kinds. */
enum { BH_LIST_TOOLS = 1, BH_LIST_RESOURCES = 2, BH_LIST_TEMPLATES = 3, BH_LIST_PROMPTS = 4 };

typedef struct bh_call_info {
  uint32_t size;
  uint32_t flags;       /* BH_CALL_PROGRESS or 0 */
  bh_str method;        /* "tools/call", "resources/read", "prompts/get"; for a plugin that has
                           BH_TOOLS_SUBSCRIBE, also "resources/subscribe" and "resources/unsubscribe" */
  bh_str name;          /* name of the tool or prompt, or URI of the resource; unescaped */
  bh_str arguments;     /* JSON text of `arguments`, unchanged; empty if absent */
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 if there is none */
} bh_call_info;
enum { BH_CALL_PROGRESS = 1 /* flag: the client has requested progress */ };

/* Optional features of a plugin. */
enum {
  /* The plugin supports "resources/subscribe" and "resources/unsubscribe", with the result {}. Both
   * are idempotent. The host counts the clients: a plugin receives only the first subscribe and the
   * last unsubscribe for a URI. All subscriptions end with stop(). */
  BH_TOOLS_SUBSCRIBE = 1
};

enum {
  BH_RESULT_OK = 1,   /* json is the `result` object, even if a tool result has isError */
  BH_RESULT_ERROR = 2 /* json is the JSON-RPC `error` object */
};

typedef struct bh_result {
  uint32_t size;
  uint32_t kind; /* BH_RESULT_... */
  bh_buf json;   /* owned by the host after complete(), whatever it returns */
} bh_result;

typedef struct bh_tools {
  uint32_t size;
  uint32_t reserved;

  /* Returns a JSON array of the items of one kind, in the format of MCP's list methods. Returns
   * BH_E_UNSUPPORTED if the plugin has no such items. Returns BH_PENDING if the items are not yet
   * known; list_changed follows. Called again only after list_changed. [io] */
  bh_status (*list)(void *self, uint32_t kind, bh_buf *out, bh_error *error);

  /* Executes a call. Returns BH_OK if complete() was called inside this function, and BH_PENDING if
   * it will be called later. On error, complete() must not be called, and the client gets
   * error->text as a JSON-RPC error. `info` is borrowed. [io]
   */
  bh_status (*call_begin)(void *self, bh_call call, const bh_call_info *info, bh_error *error);

  /* Cancels a call, at most once. The host no longer needs the result, but complete() must still be
   * called. [io] */
  void (*call_cancel)(void *self, bh_call call);

  /* Returns BH_TOOLS_... bits, which are constant for an instance. Called after start(). A NULL
   * member means 0. [io] */
  uint32_t (*features)(void *self);
} bh_tools;

typedef struct bh_host_tools {
  uint32_t size;
  uint32_t reserved;

  /* Completes a call. Must be called exactly once per pending call. BH_STALE means that the
   * completion came too late; ignore it. [any] */
  bh_status (*complete)(void *ctx, bh_call call, const bh_result *result);

  /* Reports progress, which must increase. `total` is 0 if unknown. Ignored if the client has not
   * requested progress. [any] */
  void (*progress)(void *ctx, bh_call call, double progress, double total, bh_str message);

  /* Reports that the items of `kind` have changed. [any] */
  void (*list_changed)(void *ctx, uint32_t kind);

  /* Reports that a resource may have changed or was removed or created. `uri` (borrowed) is the
   * subscribed URI, or the URI of a part of the resource. Clients are notified immediately, so
   * combine changes in quick succession. Reports without a subscription are dropped. [any] */
  void (*resource_updated)(void *ctx, bh_str uri);
} bh_host_tools;

#ifdef __cplusplus
}
#endif

#endif
