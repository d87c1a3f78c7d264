/* Tools: a plugin that is itself an MCP server. It lists and executes tools in its own process.
 *
 * Since 1.0. Stable. */
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

/* A kind of list, and the client that receives it. Borrowed. */
typedef struct bh_list_info {
  uint32_t size;
  uint32_t kind; /* BH_LIST_... */
  /* The client that receives the list, as in bh_call_info. At present, all clients share one list:
   * session is 0 and principal is empty. A later minor version may request a list for each client
   * from plugins that state this in features(). */
  uint64_t session;
  bh_str principal;
} bh_list_info;

/* A call, or a request to subscribe to a resource. Borrowed until call_begin() returns. */
typedef struct bh_call_info {
  uint32_t size;
  uint32_t flags; /* BH_CALL_...; unknown bits must be ignored */
  /* "tools/call", "resources/read" or "prompts/get"; with BH_TOOLS_SUBSCRIBE also
   * "resources/subscribe" and "resources/unsubscribe" */
  bh_str method;
  bh_str name; /* name of the tool or prompt, or URI of the resource; unescaped */
  /* JSON text of `arguments`, perhaps rewritten by a policy; empty if missing */
  bh_str arguments;
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
  /* Number that identifies the client, as in bh_policy_request. 0 in requests that the host itself
   * makes: subscriptions that it repeats after a restart, and the unsubscribe after the last
   * subscriber has disconnected. */
  uint64_t session;
  bh_str principal; /* authenticated identity of the client; empty if none, or if session is 0 */
  /* W3C traceparent of the client's request (_meta.traceparent), as sent by the client. Empty if
   * missing or invalid. */
  bh_str traceparent;
  /* If the request is repeated after a BH_RESULT_INPUT_REQUIRED: a JSON object with the client's
   * answers to the keys of `inputRequests`, and the result's `requestState`, unescaped. Each is
   * empty if the result had no such member. Otherwise, both are empty: the host accepts answers
   * only together with a seal of the plugin's result, which is bound to the client's principal and
   * to the method, name and arguments. A client chooses the answers, and can repeat a request with
   * the same seal more than once. */
  bh_str input_responses;
  bh_str request_state;
} bh_call_info;
enum {
  BH_CALL_PROGRESS = 1, /* flag: the client requested progress */
  /* Flags: the input that this client supports, which a result of kind BH_RESULT_INPUT_REQUIRED may
   * request. Set only for plugins with BH_TOOLS_ASKS_INPUT. */
  BH_CALL_ELICITATION = 2,     /* elicitation/create with a form */
  BH_CALL_ELICITATION_URL = 4, /* elicitation/create with a URL */
  BH_CALL_SAMPLING = 8,        /* sampling/createMessage */
  BH_CALL_ROOTS = 16 /* roots/list; at present never set: clients' roots are not given to plugins */
};

/* Why a call is cancelled. Unknown values must be handled like BH_CANCEL_OTHER. */
enum {
  BH_CANCEL_OTHER = 0,  /* for example, to make room for other calls */
  BH_CANCEL_CLIENT = 1, /* the client cancelled its request */
  /* the client has disconnected, closed its session or, without a session, closed the stream of its
   * request, as clients of MCP 2026-07-28 cancel over HTTP */
  BH_CANCEL_CLIENT_GONE = 2,
  BH_CANCEL_DEADLINE = 3, /* the call timed out */
  BH_CANCEL_SHUTDOWN = 4, /* the gateway is stopping */
  /* a reload has removed or changed the plugin's server, and limits.drain_ms has passed */
  BH_CANCEL_REMOVED = 5,
  BH_CANCEL_HOST_LOST = 6 /* the process that made the call has exited */
};

/* A cancellation. Borrowed. */
typedef struct bh_cancel {
  uint32_t size;
  uint32_t reason; /* BH_CANCEL_... */
  /* With BH_CANCEL_CLIENT: the client's reason as free text, unescaped, at most BH_CANCEL_BYTES
   * bytes. Empty if missing. */
  bh_str text;
} bh_cancel;
enum { BH_CANCEL_BYTES = 1024 };

/* Optional features of a plugin. */
enum {
  /* The plugin supports "resources/subscribe" and "resources/unsubscribe", whose result is {}.
   * Both are idempotent. The host counts the subscribers of a URI: after a subscribe has succeeded,
   * the plugin receives no other subscribe for this URI, and only the last unsubscribe. The first
   * client's subscribe serves all clients, so a plugin must not decide it by `principal`; this is
   * the task of a policy. All subscriptions end with stop(). */
  BH_TOOLS_SUBSCRIBE = 1,
  /* The plugin may return BH_RESULT_INPUT_REQUIRED. The host then keeps each request until its call
   * has ended. */
  BH_TOOLS_ASKS_INPUT = 2
};

enum {
  BH_RESULT_OK = 1,    /* json is the `result` object, even of a tool result with isError */
  BH_RESULT_ERROR = 2, /* json is the JSON-RPC `error` object */
  /* The plugin needs input from the client. Only for "tools/call", "resources/read" and
   * "prompts/get", and only with BH_TOOLS_ASKS_INPUT. json is an object with `inputRequests`,
   * `requestState` or both, in the format of MCP 2026-07-28, without `resultType`. inputRequests
   * maps keys to objects {"method", "params"}: at most 16, and 1 MiB together with the state.
   * requestState is a JSON string of at most 64 KiB, and must not contain credentials.
   *
   * The call is then complete. The request follows as a new call, with a new deadline, when the
   * client has answered, or after 0.1 to 5 s if there are no inputRequests. For clients with a
   * session, the host converts the requests and repeats the call, at most 32 times. A client of MCP
   * 2026-07-28 repeats its request itself, without this limit, or not at all.
   *
   * An elicitation without an answer has the answer {"action":"cancel"}. If the client rejects
   * sampling or roots, or does not support a request (see BH_CALL_ELICITATION ...), it receives an
   * error instead (for a tool, a result with isError), and the plugin is not called again. */
  BH_RESULT_INPUT_REQUIRED = 3
};

typedef struct bh_result {
  uint32_t size;
  uint32_t kind; /* BH_RESULT_...; an unknown value fails the call */
  bh_buf json;   /* owned by the host after complete(), even if complete() fails */
} bh_result;

/* The progress of a call. Borrowed. */
typedef struct bh_progress {
  uint32_t size;
  uint32_t reserved; /* 0 */
  double progress;   /* must increase with each report, and be finite */
  double total;      /* 0 if unknown */
  bh_str message;    /* empty if none */
} bh_progress;

typedef struct bh_tools {
  uint32_t size;
  uint32_t reserved;

  /* Returns the items of one kind as a JSON array, in the format of MCP's list methods. Returns
   * BH_E_UNSUPPORTED if the plugin has no such items, and BH_PENDING if they are not known yet;
   * list_changed must follow. `info` is borrowed. The host owns *out after BH_OK. Called when the
   * host first needs the list, and again after list_changed. [io] */
  bh_status (*list)(void *self, const bh_list_info *info, bh_buf *out, bh_error *error);

  /* Executes a call. Returns BH_OK if complete() was called inside this function, and BH_PENDING
   * if it will be called later. After an error, complete() must not be called; the client
   * receives error->text as a JSON-RPC error, with code -32602 for BH_E_INVALID, -32601 for
   * BH_E_NOT_FOUND and BH_E_UNSUPPORTED, and -32603 for all others. `info` is borrowed. [io] */
  bh_status (*call_begin)(void *self, bh_call call, const bh_call_info *info, bh_error *error);

  /* Cancels a call. The host no longer needs the result, but complete() must be called
   * nevertheless. Called at most once for each call, and not for subscription requests that the
   * host itself makes. May be called for a call that has just been completed; the plugin must
   * ignore a call that it does not know. `cancel` is borrowed. [io] */
  void (*call_cancel)(void *self, bh_call call, const bh_cancel *cancel);

  /* Returns BH_TOOLS_... bits, which are constant for an instance; the host ignores unknown bits.
   * Called after start(). A NULL member means 0. [io] */
  uint32_t (*features)(void *self);
} bh_tools;

typedef struct bh_host_tools {
  uint32_t size;
  uint32_t reserved;

  /* Completes a call. Must be called exactly once for each call for which call_begin() returns
   * BH_OK or BH_PENDING. BH_STALE means that the result came too late; the plugin can ignore this.
   * After BH_OK, the result can still come too late, or be too large, which fails the call.
   * Returns BH_E_LIMIT, and drops the result, if the queue for calls from other threads is full.
   * [any] */
  bh_status (*complete)(void *ctx, bh_call call, const bh_result *result);

  /* Reports progress. Has no effect if the client did not request progress. Dropped if the queue
   * for calls from other threads is full. `progress` is borrowed. [any] */
  void (*progress)(void *ctx, bh_call call, const bh_progress *progress);

  /* Reports that the items of info->kind have changed. Set info->session to 0 and leave
   * info->principal empty: at present, all clients share one list, which the host then requests
   * again. Dropped if it is called on another thread than the reactor's and the queue for such
   * calls is full. `info` is borrowed. [any] */
  void (*list_changed)(void *ctx, const bh_list_info *info);

  /* Reports that a resource may have been changed, removed or created. `uri` (borrowed) is the
   * subscribed URI, or the URI of a part of the resource. Clients are notified immediately, so
   * combine changes in quick succession. Reports without a subscription are dropped, and reports
   * from other threads if the queue for them is full. [any] */
  void (*resource_updated)(void *ctx, bh_str uri);
} bh_host_tools;

#ifdef __cplusplus
}
#endif

#endif
