/* Telemetry: receives batches of records. It must not block, and must count the records that it
 * drops.
 *
 * A plugin in its own compartment receives records asynchronously. The host stores a limited number
 * of unacknowledged records and resends them after the plugin process has restarted. Calls do not
 * wait for such a plugin, unless it uses BH_TELEMETRY_COMMITS.
 */
#ifndef BULKHEAD_ABI_EXT_TELEMETRY_H
#define BULKHEAD_ABI_EXT_TELEMETRY_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TELEMETRY "bh.telemetry/1"
#define BH_EXT_HOST_TELEMETRY "bh.host.telemetry/1"

enum {
  BH_OUTCOME_OK = 1,
  BH_OUTCOME_ERROR = 2,
  BH_OUTCOME_REFUSED = 3,
  BH_OUTCOME_TIMEOUT = 4,
  BH_OUTCOME_CANCELLED = 5
};

/* The data and guarantees that a telemetry plugin requires; see needs(). */
enum {
  BH_TELEMETRY_TEXTS = 1,  /* `request` and `response`; otherwise they are not copied */
  BH_TELEMETRY_BLOCKS = 2, /* fail closed: calls are rejected while the record queue is full */
  /* A call is sent to its server only after its intent is committed, and an answer to the client
   * only after its record is committed; see bh_host_telemetry. Each waits for at most
   * BH_TELEMETRY_COMMIT_MS. */
  BH_TELEMETRY_COMMITS = 4,
  BH_TELEMETRY_EVENTS = 8, /* also receives kinds other than BH_RECORD_CALL */
  /* Since minor 2: with BH_TELEMETRY_TEXTS, `request` includes the arguments of rejected calls.
   * However, they are replaced if another plugin needs texts without them. */
  BH_TELEMETRY_REJECTED = 16
};

enum { BH_TELEMETRY_COMMIT_MS = 10000 };

/* Record kinds. Kinds other than calls are sent only with BH_TELEMETRY_EVENTS, and intents only
 * with BH_TELEMETRY_COMMITS. A plugin must accept and ignore unknown kinds. */
enum {
  BH_RECORD_CALL = 0,     /* a completed request or notification of a client */
  BH_RECORD_INTENT = 1,   /* a call that is about to be sent to its server */
  BH_RECORD_APPROVAL = 2, /* an approval is pending or has ended */
  /* An action of a tools plugin during a call; see ext/draft/event.h for `detail`. */
  BH_RECORD_NET = 3,
  BH_RECORD_FS = 4,
  BH_RECORD_SNAPSHOT = 5,
  BH_RECORD_IDENTITY = 6, /* the gateway's profile and user; the first record of a process */
  BH_RECORD_POLICY = 7    /* the policies and rules that apply from now on: at the start of a
                           * process, and after each policy reload */
};

/* Flags in bh_record. */
enum {
  BH_RECORD_WARNED = 1,       /* allowed by the policy with a warning */
  BH_RECORD_NOTIFICATION = 2, /* a notification, without an answer */
  BH_RECORD_REQUEST_CUT = 4,  /* `request` was truncated, or dropped (empty) for lack of memory */
  BH_RECORD_RESPONSE_CUT = 8, /* the same for `response` */
  BH_RECORD_NOT_SENT = 16     /* since minor 2: rejected before it was sent to its server */
};

enum { BH_RECORD_TEXT_BYTES = 262144 }; /* maximum size of `request` and of `response` */

/* A completed request or notification of a client, or another event as determined by `kind`.
 * Members that do not apply to the kind are 0 or empty. Texts are borrowed until batch() returns.
 * They may contain credentials: a plugin that stores them must mask them. */
typedef struct bh_record {
  uint32_t size;
  uint32_t outcome; /* BH_OUTCOME_... */
  uint64_t exchange;
  uint64_t session;
  uint64_t start_unix_ns;
  uint64_t duration_ns;
  uint64_t bytes_in;  /* size of the client's message */
  uint64_t bytes_out; /* size of the answer */
  bh_str transport;
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;
  bh_str server; /* empty if the gateway itself answered */
  bh_str name;   /* original tool or prompt name, or URI */
  bh_str rule;   /* the rule that decided; empty if there is none */
  bh_str error;  /* error text; empty if there is none */
  /* Increases from record to record, even across gateway restarts (unless the clock was set back).
   * A record that is sent twice has the same number. This happens if a plugin process exits after
   * receiving the record and before acknowledging it. */
  uint64_t number;

  bh_str request_id; /* JSON text as sent by the client; empty for a notification */
  /* JSON text of `params`, at most BH_RECORD_TEXT_BYTES, truncated at a character boundary. If the
   * policy rejected the call, `arguments` is replaced with {"redacted_by_policy":true}, unless the
   * plugins need it (BH_TELEMETRY_REJECTED). Empty if absent or if no plugin needs texts. */
  bh_str request;
  /* The same for the `result` or error object that was sent. Never contains data that a policy
   * withheld. */
  bh_str response;
  uint64_t params_bytes; /* full lengths of these JSON texts; 0 if absent */
  uint64_t result_bytes;
  uint32_t action; /* BH_VERDICT_... of the policy, or 0 if it was not evaluated */
  uint32_t flags;  /* BH_RECORD_... */
  bh_str reason;   /* the policy's reason; empty if there is none */
  /* 32 hex digits, from the request's _meta.traceparent, or else the trace id of the session */
  bh_str trace_id;

  uint32_t kind; /* BH_RECORD_CALL and so on */
  uint32_t reserved;
  uint64_t intent; /* for a call, the number of its intent record; 0 if there is none */
  /* A JSON object with the members for this kind; empty for calls and intents.
   *  BH_RECORD_APPROVAL (texts): {"id", "status" ("pending", "approved", "denied", "expired",
   *  "withdrawn"), "digest", "surface", "scope"}.
   *  BH_RECORD_IDENTITY (texts): {"profile", "user"}.
   *  BH_RECORD_POLICY: {"generation", "rules" (numbers), "digest", "policies" ("ID (PLUGIN),
   *  ..."), "changes" (from the previous generation; "" at the start)}. */
  bh_str detail;
  /* Since minor 2: the unverified clientInfo.name in the client's initialize, at most 128 bytes of
   * UTF-8. Empty if absent or if the session was restored. */
  bh_str claimed_name;
} bh_record;

typedef struct bh_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* Receives up to n records in order and returns the number of accepted records. The host queues
   * the remaining records, up to a limit, and resends them. [io] */
  uint32_t (*batch)(void *self, const bh_record *const *records, uint32_t n);

  /* Returns BH_TELEMETRY_... bits. Called after start; must not change until the next configure. If
   * the table has no such member, no bits are set. [control] */
  uint32_t (*needs)(void *self);
} bh_telemetry;

/* Offered to telemetry plugins. */
typedef struct bh_host_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* For plugins with BH_TELEMETRY_COMMITS: reports that all accepted records with numbers below
   * `below` are stored durably. They survive the end of the process and, if the plugin promises it,
   * a power failure. [any] */
  void (*committed)(void *ctx, uint64_t below);
} bh_host_telemetry;

#ifdef __cplusplus
}
#endif

#endif
