/* Policy: decides calls after their names are resolved, and evaluates results before they are sent.
 *
 * A policy receives the resolved call: the server and the original name, never the client's name
 * for the tool. Every failure (an error, an unknown verdict, a time-out) rejects the call or the
 * result, or hides the item in a list. Telemetry records it with the rule "policy-failed" or
 * "policy-timeout".
 *
 * A plugin can answer each question asynchronously: it returns BH_PENDING and completes the
 * question through bh_host_policy, once, from any thread. Until then, the host stores the data (the
 * call; the result, none of which is sent; the requests that wait for a list), limited by
 * limits.policy_waiting_bytes, and processes other work. After limits.policy_timeout_ms, the
 * question is rejected, and a later answer is dropped. The same happens if the client cancels the
 * call or disconnects; the plugin is not notified. Answers without a pending question are dropped.
 *
 * A plugin in its own compartment uses the same interface; to the host, all of its answers are
 * asynchronous.
 */
#ifndef BULKHEAD_ABI_EXT_POLICY_H
#define BULKHEAD_ABI_EXT_POLICY_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_POLICY "bh.policy/1"
#define BH_EXT_HOST_POLICY "bh.host.policy/1"

enum { BH_VERDICT_ALLOW = 1, BH_VERDICT_ASK = 2, BH_VERDICT_BLOCK = 3, BH_VERDICT_REWRITE = 4 };

/* The data and functions that a policy requires, requested once after start. The host provides no
 * other data and calls no other functions. */
enum {
  BH_POLICY_READS_ARGUMENTS = 1,      /* arguments, argument, context and extra are set; a call with
                                       * duplicate members in any object in them is rejected first */
  BH_POLICY_READS_RESULTS = 2,        /* observe() is called */
  BH_POLICY_FILTERS_LISTS = 4,        /* filter() is called */
  BH_POLICY_DECIDES = 8,              /* decide() is called; otherwise every call is allowed */
  BH_POLICY_READS_DEFINITION = 16,    /* definition is set */
  BH_POLICY_JUDGES_INPUT = 32,        /* decide() is called for BH_EVENT_INPUT_... */
  BH_POLICY_JUDGES_NOTIFICATIONS = 64 /* decide() is called for BH_EVENT_NOTIFICATION */
};

/* Message kinds for decide(). For kinds other than calls, `arguments` is the JSON text of `params`
 * or of the response's `result` (empty if absent). `method` is the method of the message, `name`
 * the tool whose call it belongs to (empty if unknown), and `exchange` a number for this question
 * only. ALLOW forwards the message; every other verdict rejects it. If a server-initiated request
 * or its response is rejected, the server gets an error. A rejected notification is dropped. A call
 * that waits for its client's input remains one call and is decided once. Notifications that the
 * gateway handles itself (changed lists, cancellation) are not evaluated. */
enum {
  BH_EVENT_CALL = 0,
  BH_EVENT_INPUT_REQUEST = 1,  /* from a server to the client: elicitation, sampling, roots */
  BH_EVENT_INPUT_RESPONSE = 2, /* the client's response to such a request */
  BH_EVENT_NOTIFICATION = 3    /* to the client; with BH_REQUEST_TO_SERVER, to the server */
};

/* States whether the listed definition is the approved definition. */
enum { BH_PIN_UNKNOWN = 0, BH_PIN_SAME = 1, BH_PIN_CHANGED = 2 };
/* AGAIN marks a repeated decide(): a policy in the profile required approval of the call, and a
 * person has approved it. The rules may have changed since then. The call must not be counted
 * again. APPROVED is set together with AGAIN if this policy required the approval. If the policy
 * then answers ASK with a rule that the approval question named, the call is allowed. */
enum { BH_REQUEST_APPROVED = 1, BH_REQUEST_TO_SERVER = 2, BH_REQUEST_AGAIN = 4 };

/* A resolved call. Borrowed until the called function returns. */
typedef struct bh_policy_request {
  uint32_t size;
  uint32_t flags;    /* BH_REQUEST_...; unknown bits are ignored */
  uint64_t exchange; /* number of the call; in filter(), number of the question */
  uint64_t session;
  bh_str transport; /* the client's transport */
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;          /* "tools/call", "resources/read", "prompts/get" ... */
  bh_str server;          /* name of the server in the profile */
  bh_str name;            /* original tool or prompt name, or URI; unescaped */
  bh_str arguments;       /* JSON text; empty if absent or not needed */
  bh_str meta;            /* JSON text of _meta; empty if absent */
  bh_str definition_hash; /* hash of the listed definition, 32 hex digits; empty if not listed */
  bh_str definition; /* JSON text of the listed item, as sent by its server; empty if not listed,
                      * not needed, or in observe() */
  uint64_t session_calls;  /* calls of this session, including this call except in filter() */
  uint64_t session_age_ns; /* age of the session in this process */
  uint32_t pin;            /* BH_PIN_... */
  uint32_t event;          /* BH_EVENT_...; reject unknown values */
  /* Since minor 2. For calls, like `arguments`, but never rewritten: */
  bh_str argument;     /* completion/complete: JSON text of `argument`; empty if absent */
  bh_str context;      /* completion/complete: JSON text of `context`; empty if absent */
  bh_str extra;        /* JSON object of the other members of `params` that are sent to the server:
                        * members that MCP does not define, `task`, and a `ref` with additional members;
                        * empty if there are none */
  bh_str claimed_name; /* unverified clientInfo.name in the client's initialize, at most 128
                        * bytes. Empty if absent or if the session was restored */
} bh_policy_request;

/* A flag in bh_verdict: the call continues, and its record contains a warning. */
enum { BH_VERDICT_WARNED = 1 };

/* Set by the plugin. Its strings must remain valid until the next call on the same instance. */
typedef struct bh_verdict {
  uint32_t size;
  uint32_t verdict; /* BH_VERDICT_...; an unknown value rejects the call */
  bh_str rule;      /* id of the rule that decided */
  bh_str reason;    /* for the record and the client */
  bh_str arguments; /* for REWRITE, the new JSON text of `arguments` */
  uint32_t flags;   /* BH_VERDICT_WARNED; unknown bits are ignored */
  uint32_t reserved;
} bh_verdict;

typedef struct bh_policy {
  uint32_t size;
  uint32_t reserved;

  /* Returns BH_POLICY_... bits, which must not change until the next configure. [control] */
  uint32_t (*needs)(void *self);

  /* Decides a call. If BH_OK is returned, *out is set. If BH_PENDING is returned,
   * bh_host_policy.decided follows once. Any error rejects the call. [io] */
  bh_status (*decide)(void *self, const bh_policy_request *request, bh_verdict *out,
                      bh_error *error);

  /* Evaluates a result. The verdict is BH_VERDICT_ALLOW, BLOCK, or REWRITE with the new JSON text
   * of `result` in arguments. BH_PENDING is used as in decide(); `result` is borrowed until
   * observe() returns. The call is never sent to the server again. [io] */
  bh_status (*observe)(void *self, const bh_policy_request *request, bh_str result, bh_verdict *out,
                       bh_error *error);

  /* Decides whether to list an item, that is, whether this principal can ever call it. BH_OK lists
   * the item; any error, such as BH_E_DENIED, hides it. If BH_PENDING is returned,
   * bh_host_policy.filtered follows once. Called once per principal and list, and again after
   * changed(). [io] */
  bh_status (*filter)(void *self, const bh_policy_request *request);

  /* Applies a new configuration at runtime; see configure(). If BH_OK is returned, the
   * configuration applies to the next question, and the host calls needs() and filter() again. On
   * error, the current configuration remains in use. If this member is NULL, a new configuration
   * requires a restart. [control, on the thread of [io]] */
  bh_status (*reconfigure)(void *self, bh_str config_json, bh_error *error);
} bh_policy;

typedef struct bh_host_policy {
  uint32_t size;
  uint32_t reserved;

  /* Completes a pending decide() or observe(). The verdict is borrowed until this returns. Returns
   * BH_STALE if there was no question, otherwise BH_OK, even if the question is no longer pending
   * and the verdict is dropped. [any] */
  bh_status (*decided)(void *ctx, uint64_t exchange, const bh_verdict *verdict);

  /* Reports that the rules have changed. Lists are filtered again, and clients get list_changed.
   * [any] */
  void (*changed)(void *ctx);

  /* Completes a pending filter(). `exchange` is the number of its request, and `listed` is 1 or 0.
   * Returns BH_OK or BH_STALE as decided() does. [any] */
  bh_status (*filtered)(void *ctx, uint64_t exchange, uint32_t listed);
} bh_host_policy;

#ifdef __cplusplus
}
#endif

#endif
