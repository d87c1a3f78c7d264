/* Policy: decides calls after they are resolved, and looks at results before they leave.
 *
 * Everything it judges is the resolved call: server and original name, never the client's spelling.
 * Whatever goes wrong (an error, an unknown verdict, a time-out) is a refusal: of the call, of the
 * result, or of the place in a list. Telemetry gets such a call with the rule "policy-failed" or
 * "policy-timeout".
 *
 * Each question may be answered later: the plugin returns BH_PENDING and completes it through
 * bh_host_policy, once, from any thread. Meanwhile the host keeps what it needs (the call; the
 * result, of which nobody else gets a byte; the requests that wait for a list), at most
 * limits.policy_waiting_bytes of them, and goes on with everything else. After
 * limits.policy_timeout_ms the answer is a refusal, and what comes later is dropped; likewise when
 * the client has cancelled the call or has gone, of which the plugin is not told. An answer to a
 * question that is not pending is dropped.
 *
 * A plugin that runs in a compartment of its own sees the same, and what it answers is always
 * "later" for the host.
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

/* What a policy reads; asked once after start. The host then does just that work. */
enum {
  BH_POLICY_READS_ARGUMENTS = 1,   /* arguments, argument, context and extra are given, and the call
                                      is refused beforehand if any object in them has duplicate
                                      members */
  BH_POLICY_READS_RESULTS = 2,     /* observe() is called */
  BH_POLICY_FILTERS_LISTS = 4,     /* filter() is called */
  BH_POLICY_DECIDES = 8,           /* decide() is called; without it every call is allowed */
  BH_POLICY_READS_DEFINITION = 16, /* definition is given */
  BH_POLICY_JUDGES_INPUT = 32,     /* decide() is called for BH_EVENT_INPUT_... */
  BH_POLICY_JUDGES_NOTIFICATIONS = 64 /* decide() is called for BH_EVENT_NOTIFICATION */
};

/* What decide() is asked about. Of what is no call, `arguments` is the JSON text of `params`, or of
 * the answer's `result` (empty: there is none), `method` the method of the message, `name` the tool
 * whose call it belongs to (empty: not one), `exchange` the number of this question alone. ALLOW
 * lets it go on; every other verdict is a refusal: of a request of a server, or of its answer, the
 * server is told, a notification is dropped. A call that waits for its client's input is one call,
 * decided once. Notifications that the gateway itself acts on (lists have changed, a request is
 * cancelled) are not judged. */
enum {
  BH_EVENT_CALL = 0,
  BH_EVENT_INPUT_REQUEST = 1,  /* of a server to the client: elicitation, sampling, roots */
  BH_EVENT_INPUT_RESPONSE = 2, /* the client's result of one, on its way to the server */
  BH_EVENT_NOTIFICATION = 3    /* to the client; with BH_REQUEST_TO_SERVER to the server */
};

/* Is the listed definition the one that was approved? */
enum { BH_PIN_UNKNOWN = 0, BH_PIN_SAME = 1, BH_PIN_CHANGED = 2 };
/* AGAIN: decide() once more of a call that some policy of the profile wanted a person to allow, and
 * that a person has allowed: rules may be others by now. It is still one call, which each policy
 * has been asked about before, to be counted once. APPROVED, with it: it was this policy that
 * wanted that; ASK by a rule that the person was told lets it pass. */
enum { BH_REQUEST_APPROVED = 1, BH_REQUEST_TO_SERVER = 2, BH_REQUEST_AGAIN = 4 };

/* A resolved call. Borrowed until the function that got it returns. */
typedef struct bh_policy_request {
  uint32_t size;
  uint32_t flags;    /* BH_REQUEST_...; unknown ones are ignored */
  uint64_t exchange; /* the same number in every look at this call; of filter(): of this question */
  uint64_t session;
  bh_str transport; /* of the client */
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;          /* "tools/call", "resources/read", "prompts/get" ... */
  bh_str server;          /* the server's name in the profile */
  bh_str name;            /* original tool or prompt name, or URI; unescaped */
  bh_str arguments;       /* JSON text; empty: absent or not asked for */
  bh_str meta;            /* JSON text of _meta; empty: absent */
  bh_str definition_hash; /* 32 hex digits, of the listed definition; empty: not listed */
  bh_str definition; /* JSON text of the listed item, as its server wrote it; empty: not listed,
                        not asked for, or in observe() */
  uint64_t session_calls;  /* calls of this session so far, with this one; in filter() without */
  uint64_t session_age_ns; /* since the session began, in this process */
  uint32_t pin;            /* BH_PIN_... */
  uint32_t event;          /* BH_EVENT_...; refuse those that you do not know */
  /* Since minor 2. Of a call, as `arguments` (never rewritten): */
  bh_str argument; /* completion/complete: JSON text of what is completed; empty: absent */
  bh_str context;  /* and of what the client knows already */
  bh_str extra; /* JSON object of the other members of `params`, which the server gets, too: those
                   that MCP does not have, `task`, a `ref` that says more than what is completed;
                   empty: there are none */
  bh_str claimed_name; /* what the client calls itself (clientInfo.name of initialize), at most 128
                          bytes: its own claim, which nothing verifies. Empty: it has said nothing,
                          or its session was restored */
} bh_policy_request;

/* bh_verdict.flags: the call goes on, and what is recorded of it says that it was warned of. */
enum { BH_VERDICT_WARNED = 1 };

/* Filled by the plugin; its texts live until the next call on the same instance. */
typedef struct bh_verdict {
  uint32_t size;
  uint32_t verdict; /* BH_VERDICT_...; unknown values are a refusal */
  bh_str rule;      /* id of the rule that decided */
  bh_str reason;    /* for the record and the client */
  bh_str arguments; /* REWRITE: the new JSON text of `arguments` */
  uint32_t flags;   /* BH_VERDICT_WARNED; unknown ones are ignored */
  uint32_t reserved;
} bh_verdict;

typedef struct bh_policy {
  uint32_t size;
  uint32_t reserved;

  /* BH_POLICY_... bits; the same answer until the next configure. [control] */
  uint32_t (*needs)(void *self);

  /* BH_OK: *out is filled. BH_PENDING: bh_host_policy.decided follows, once. Any error refuses the
   * call. [io] */
  bh_status (*decide)(void *self, const bh_policy_request *request, bh_verdict *out,
                      bh_error *error);

  /* A result on its way to the client: BH_VERDICT_ALLOW, BLOCK, or REWRITE with the new JSON text
   * of `result` in arguments. BH_PENDING as above; `result` is borrowed all the same. The server is
   * done with the call: whatever comes of this, it is not asked again. [io] */
  bh_status (*observe)(void *self, const bh_policy_request *request, bh_str result, bh_verdict *out,
                       bh_error *error);

  /* Could this principal ever call that? BH_OK: list it. BH_PENDING: bh_host_policy.filtered
   * follows, once. BH_E_DENIED, or any other error: hide it. Asked once per principal and list, and
   * again after changed(). [io] */
  bh_status (*filter)(void *self, const bh_policy_request *request);

  /* Another configuration while it runs, as in configure(). BH_OK: it holds from the next question
   * on, and the host asks anew what is needed and what is listed. An error: the present one stays.
   * NULL: another configuration needs another start. [control, on the thread of [io]] */
  bh_status (*reconfigure)(void *self, bh_str config_json, bh_error *error);
} bh_policy;

typedef struct bh_host_policy {
  uint32_t size;
  uint32_t reserved;

  /* Completes a pending decide() or observe(); the verdict is borrowed until this returns. BH_OK:
   * it is taken, and dropped if nobody waits for it any more. BH_STALE: nobody does. [any] */
  bh_status (*decided)(void *ctx, uint64_t exchange, const bh_verdict *verdict);

  /* The rules are others now: lists are filtered anew, and clients are told that they may have
   * changed. [any] */
  void (*changed)(void *ctx);

  /* Completes a pending filter(); `exchange` as in its request, listed: 1 or 0. BH_OK and BH_STALE
   * as above. [any] */
  bh_status (*filtered)(void *ctx, uint64_t exchange, uint32_t listed);
} bh_host_policy;

#ifdef __cplusplus
}
#endif

#endif
