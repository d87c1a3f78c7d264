/* Policy: decides whether calls may be sent to servers, and whether results may be sent to
 * clients.
 *
 * A policy receives a call after its name was resolved: the server and the original name, but
 * not the client-visible name. If the policy fails in any way (an error, an unknown verdict, a
 * timeout), the call or result is rejected, or the item is not listed. A failure of decide() or
 * observe() is recorded with the rule "policy-failed" or "policy-timeout".
 *
 * A policy can make each decision asynchronously: it returns BH_PENDING, and later calls a
 * function of bh_host_policy once, on any thread. Until then, the host stores the data (the
 * call, the result, or the requests that wait for a list), limited to
 * limits.policy_waiting_bytes, and processes other work. After limits.policy_timeout_ms, the
 * call or result is rejected. Decisions that do not belong to a pending request are ignored, for
 * example after a timeout, or after the client has cancelled the call or disconnected. The plugin
 * is not notified of this.
 *
 * A policy in a compartment uses the same interface. All of its decisions are asynchronous for
 * the host.
 *
 * Since 1.0. Stable. */
#ifndef BULKHEAD_ABI_EXT_POLICY_H
#define BULKHEAD_ABI_EXT_POLICY_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_POLICY "bh.policy/1"
#define BH_EXT_HOST_POLICY "bh.host.policy/1"

enum { BH_VERDICT_ALLOW = 1, BH_VERDICT_ASK = 2, BH_VERDICT_BLOCK = 3, BH_VERDICT_REWRITE = 4 };

/* The data and functions that a policy needs. The host requests them once after start. It
 * provides no other data, and calls no other functions. */
enum {
  /* arguments, argument, context and extra are set; a call with duplicate members in one of
   * them, at any depth, is rejected first */
  BH_POLICY_READS_ARGUMENTS = 1,
  BH_POLICY_READS_RESULTS = 2,        /* observe() is called */
  BH_POLICY_FILTERS_LISTS = 4,        /* filter() is called */
  BH_POLICY_DECIDES = 8,              /* decide() is called; otherwise all calls are allowed */
  BH_POLICY_READS_DEFINITION = 16,    /* definition is set */
  BH_POLICY_JUDGES_INPUT = 32,        /* decide() is called for BH_EVENT_INPUT_... */
  BH_POLICY_JUDGES_NOTIFICATIONS = 64 /* decide() is called for BH_EVENT_NOTIFICATION */
};

/* The kinds of messages that decide() evaluates. For messages other than calls, `arguments` is
 * the JSON text of `params`, or of a response's `result` (empty if missing). `method` is the
 * method of the message. `name` is the tool during whose call the message was sent (empty if
 * unknown). `exchange` identifies this decision, and is not the number of a call. The verdict
 * ALLOW forwards the message; all other verdicts reject it. A message with duplicate members in
 * `arguments`, at any depth, is rejected first. If a server-initiated request or its response is
 * rejected, the server receives an error. A rejected notification is dropped. A call that waits for
 * its client's input is decided only once. Notifications that the gateway handles itself (list
 * changes, cancellation) are not evaluated. */
enum {
  BH_EVENT_CALL = 0,
  BH_EVENT_INPUT_REQUEST = 1,  /* from a server to its client: elicitation, sampling, roots */
  BH_EVENT_INPUT_RESPONSE = 2, /* the client's response to such a request */
  BH_EVENT_NOTIFICATION = 3    /* to the client or, with BH_REQUEST_TO_SERVER, to the server */
};

/* Whether the listed definition is the approved one. */
enum { BH_PIN_UNKNOWN = 0, BH_PIN_SAME = 1, BH_PIN_CHANGED = 2 };
/* BH_REQUEST_AGAIN: the call was evaluated before and must not be counted twice. It is evaluated
 * again because a human has approved it, or because the rules or its definition may have changed
 * while it waited. Also set if an existing subscription is evaluated again.
 * BH_REQUEST_APPROVED: this policy required approval of the call, and a human has approved it. If
 * the verdict is then ASK with a rule that was part of the approval request, the call is
 * allowed.
 * BH_REQUEST_UNDECIDED, in observe() only: decide() was not called for the request, for example
 * because it is resources/unsubscribe or about a task (tasks/get, tasks/result, tasks/cancel). For
 * requests about a task, `method` and `name` are those of the call that created the task. */
enum {
  BH_REQUEST_APPROVED = 1,
  BH_REQUEST_TO_SERVER = 2,
  BH_REQUEST_AGAIN = 4,
  BH_REQUEST_UNDECIDED = 8
};

/* A resolved call. Borrowed until the called function returns. In observe(), `pin` is
 * BH_PIN_UNKNOWN, and these members are empty: arguments, meta, definition_hash, definition,
 * argument, context, extra. In filter(), only `pin` and `definition` of these are set. For
 * sessionless messages, `session`, session_calls and session_age_ns describe the client that sent
 * them, as far as its connection, or its principal and address, identify it. */
typedef struct bh_policy_request {
  uint32_t size;
  uint32_t flags;    /* BH_REQUEST_...; unknown bits are ignored */
  uint64_t exchange; /* number of the call or, in filter(), of the request */
  uint64_t session;
  bh_str transport; /* the client's transport */
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;          /* "tools/call", "resources/read", "prompts/get" ... */
  bh_str server;          /* name of the server in the profile */
  bh_str name;            /* original tool or prompt name, or URI; unescaped */
  bh_str arguments;       /* JSON text; empty if missing or not needed */
  bh_str meta;            /* JSON text of _meta; empty if missing */
  bh_str definition_hash; /* 32 hex digits; empty if the item is not listed */
  /* JSON text of the listed item, as sent by its server; empty if the item is not listed or the
   * definition is not needed */
  bh_str definition;
  /* number of calls in this session; includes this call except in filter() */
  uint64_t session_calls;
  uint64_t session_age_ns; /* time since the session was opened in this process */
  uint32_t pin;            /* BH_PIN_...; handle unknown values like BH_PIN_UNKNOWN */
  uint32_t event;          /* BH_EVENT_...; reject unknown values */
  /* The next three members are set only for calls, and only if the policy reads arguments. They
   * are never rewritten. */
  bh_str argument; /* completion/complete: JSON text of `argument`; empty if missing */
  bh_str context;  /* completion/complete: JSON text of `context`; empty if missing */
  /* JSON object with all other members of `params` that are sent to the server: members that MCP
   * does not define, `task`, and a `ref` with additional members. Empty if there are none. */
  bh_str extra;
  /* Unverified clientInfo.name from the client's initialize or from a sessionless message's
   * _meta, at most 128 bytes. Empty if missing, or if the session was restored. */
  bh_str claimed_name;
} bh_policy_request;

/* A flag of bh_verdict: the call continues, and its record has a warning. */
enum { BH_VERDICT_WARNED = 1 };

/* In decide() and observe(), the host provides the struct with all members 0, and the plugin sets
 * members; see core.h. Its strings must remain valid until the next call of the same instance. */
typedef struct bh_verdict {
  uint32_t size;
  uint32_t verdict; /* BH_VERDICT_...; unknown values reject the call */
  bh_str rule;      /* ID of the rule that decided */
  bh_str reason;    /* for the record and the client */
  bh_str arguments; /* for REWRITE: the new JSON text of `arguments` */
  uint32_t flags;   /* BH_VERDICT_WARNED; unknown bits are ignored */
  uint32_t reserved;
} bh_verdict;

typedef struct bh_policy {
  uint32_t size;
  uint32_t reserved;

  /* Returns BH_POLICY_... bits; the host ignores unknown bits. They must not change until the next
   * reconfigure. [control] */
  uint32_t (*needs)(void *self);

  /* Decides a call. BH_OK: *out is set. BH_PENDING: the plugin will call bh_host_policy.decided
   * once. An error rejects the call. [io] */
  bh_status (*decide)(void *self, const bh_policy_request *request, bh_verdict *out,
                      bh_error *error);

  /* Evaluates a result. The verdict is BH_VERDICT_ALLOW, BLOCK, or REWRITE with the new JSON
   * text of `result` in verdict.arguments. A JSON-RPC error is evaluated as a result with isError,
   * and cannot be rewritten. Returns BH_PENDING as decide() does. `result` is borrowed until this
   * function returns. The call is never sent to the server again. [io] */
  bh_status (*observe)(void *self, const bh_policy_request *request, bh_str result, bh_verdict *out,
                       bh_error *error);

  /* Decides whether an item is listed. Items that this principal can never call should not be
   * listed. BH_OK: the item is listed. BH_PENDING: the plugin will call bh_host_policy.filtered
   * once. BH_E_DENIED: the item is not listed. Any other error means that the policy has failed:
   * the item is not listed, and the error's text is logged, at most once in 10 s. Called for each
   * item, once per principal, and again after changed(). [io] */
  bh_status (*filter)(void *self, const bh_policy_request *request, bh_error *error);

  /* Replaces the configuration at run time; see configure(). BH_OK: the new configuration
   * applies to all later decisions, and the host calls needs() and filter() again. An error: the
   * old configuration remains in use. If this member is NULL, a changed configuration requires a
   * restart. [control] */
  bh_status (*reconfigure)(void *self, bh_str config_json, bh_error *error);
} bh_policy;

typedef struct bh_host_policy {
  uint32_t size;
  uint32_t reserved;

  /* Completes a pending decide() or observe(). The verdict is borrowed until this function
   * returns. Returns BH_OK even if the verdict is ignored because no such request is pending.
   * Returns BH_E_LIMIT if the host's queue is full; retry later. [any] */
  bh_status (*decided)(void *ctx, uint64_t exchange, const bh_verdict *verdict);

  /* Reports that the rules have changed. Lists are filtered again, and clients receive
   * list_changed. [any] */
  void (*changed)(void *ctx);

  /* Completes a pending filter(). `exchange` is the number of its request; `listed` is 1 or 0.
   * Returns BH_OK or BH_E_LIMIT as decided() does. [any] */
  bh_status (*filtered)(void *ctx, uint64_t exchange, uint32_t listed);
} bh_host_policy;

#ifdef __cplusplus
}
#endif

#endif
