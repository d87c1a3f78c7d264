/* Tools: a plugin that is itself an MCP server. It lists and executes tools in its own process. */
#ifndef BULKHEAD_ABI_EXT_TOOLS_H
#define BULKHEAD_ABI_EXT_TOOLS_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TOOLS "bh.tools/1"
#define BH_EXT_HOST_TOOLS "bh.host.tools/1"

typedef uint64_t bh_call; /* 0: none; contains a generation */

/* The kinds of lists. */
enum { BH_LIST_TOOLS = 1, BH_LIST_RESOURCES = 2, BH_LIST_TEMPLATES = 3, BH_LIST_PROMPTS = 4 };

typedef struct bh_call_info {
  uint32_t size;
  uint32_t flags; /* BH_CALL_PROGRESS or 0 */
  /* "tools/call", "resources/read" or "prompts/get"; with BH_TOOLS_SUBSCRIBE also
   * "resources/subscribe" and "resources/unsubscribe" */
  bh_str method;
  bh_str name; /* name of the tool or prompt, or URI of the resource; unescaped */
  /* JSON text of `arguments`, perhaps rewritten by a policy; empty if missing */
  bh_str arguments;
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
} bh_call_info;
enum { BH_CALL_PROGRESS = 1 /* flag: the client requested progress */ };

/* Optional features of a plugin. */
enum {
  /* The plugin supports "resources/subscribe" and "resources/unsubscribe", whose result is {}.
   * Both are idempotent. The host counts the subscribers of a URI: after a subscribe has succeeded,
   * the plugin receives no other subscribe for this URI, and only the last unsubscribe. All
   * subscriptions end with stop(). */
  BH_TOOLS_SUBSCRIBE = 1
};

enum {
  BH_RESULT_OK = 1,   /* json is the `result` object, even of a tool result with isError */
  BH_RESULT_ERROR = 2 /* json is the JSON-RPC `error` object */
};

typedef struct bh_result {
  uint32_t size;
  uint32_t kind; /* BH_RESULT_... */
  bh_buf json;   /* owned by the host after complete(), even if complete() fails */
} bh_result;

typedef struct bh_tools {
  uint32_t size;
  uint32_t reserved;

  /* Returns the items of one kind as a JSON array, in the format of MCP's list methods. Returns
   * BH_E_UNSUPPORTED if the plugin has no such items, and BH_PENDING if they are not known yet;
   * list_changed must follow. All clients share one list. Called when the host first needs it, and
   * again after list_changed. [io] */
  bh_status (*list)(void *self, uint32_t kind, bh_buf *out, bh_error *error);

  /* Executes a call. Returns BH_OK if complete() was called inside this function, and BH_PENDING
   * if it will be called later. After an error, complete() must not be called; the client
   * receives error->text as a JSON-RPC error. `info` is borrowed. [io] */
  bh_status (*call_begin)(void *self, bh_call call, const bh_call_info *info, bh_error *error);

  /* Cancels a call. Called at most once. The host no longer needs the result, but complete()
   * must be called nevertheless. [io] */
  void (*call_cancel)(void *self, bh_call call);

  /* Returns BH_TOOLS_... bits, which are constant for an instance. Called after start(). A NULL
   * member means 0. [io] */
  uint32_t (*features)(void *self);
} bh_tools;

typedef struct bh_host_tools {
  uint32_t size;
  uint32_t reserved;

  /* Completes a call. Must be called exactly once for each pending call. BH_STALE means that the
   * result came too late; the plugin can ignore this. Returns BH_E_LIMIT, and drops the result, if
   * the queue for calls from other threads is full. [any] */
  bh_status (*complete)(void *ctx, bh_call call, const bh_result *result);

  /* Reports progress, which must increase. `total` is 0 if unknown. Has no effect if the client
   * did not request progress. [any] */
  void (*progress)(void *ctx, bh_call call, double progress, double total, bh_str message);

  /* Reports that the items of this kind have changed. [any] */
  void (*list_changed)(void *ctx, uint32_t kind);

  /* Reports that a resource may have been changed, removed or created. `uri` (borrowed) is the
   * subscribed URI, or the URI of a part of the resource. Clients are notified immediately, so
   * combine changes in quick succession. Reports without a subscription are dropped. [any] */
  void (*resource_updated)(void *ctx, bh_str uri);
} bh_host_tools;

#ifdef __cplusplus
}
#endif

#endif
