/* Telemetry: takes batches of records. It must not block; what it cannot take it counts.
 *
 * A plugin in a compartment of its own gets them a moment later. The host keeps those that it has
 * not heard of as taken, a bounded number, and offers them again when the plugin's process is there
 * again. Whatever such a plugin does, calls do not wait for it.
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

/* What a telemetry plugin wants; see needs(). */
enum {
  BH_TELEMETRY_TEXTS = 1,  /* `request` and `response`; without it nothing of them is copied */
  BH_TELEMETRY_BLOCKS = 2, /* rather no call than one without a record: while so many records wait
                              that the next might find no place, calls are refused */
  /* No call is sent to a server before its intent is committed, and nothing is answered before its
   * record is; see bh_host_telemetry. Both wait, each at most BH_TELEMETRY_COMMIT_MS. */
  BH_TELEMETRY_COMMITS = 4,
  BH_TELEMETRY_EVENTS = 8 /* records of other kinds than BH_RECORD_CALL, too */
};

enum { BH_TELEMETRY_COMMIT_MS = 10000 };

/* What a record is about. A plugin gets other kinds than the first only if it asks for events, and
 * intents only if it commits; it takes kinds that it does not know, and leaves them aside. */
enum {
  BH_RECORD_CALL = 0,     /* a request or notification of a client that has ended */
  BH_RECORD_INTENT = 1,   /* a call that is about to be sent to its server */
  BH_RECORD_APPROVAL = 2, /* a question to a person: it was asked, or has ended */
  /* What a tools plugin has done for a call; see ext/draft/event.h for `detail`. */
  BH_RECORD_NET = 3,
  BH_RECORD_FS = 4,
  BH_RECORD_SNAPSHOT = 5,
  BH_RECORD_IDENTITY = 6, /* whose gateway it is; the first record of a process */
  BH_RECORD_POLICY = 7    /* the policies and rules that are in force from here on: at the start of
                             a process, and after each reload that changed them */
};

/* Bits of bh_record.flags. */
enum {
  BH_RECORD_WARNED = 1,       /* the policy let it pass, with a warning */
  BH_RECORD_NOTIFICATION = 2, /* had no id, and so no answer */
  BH_RECORD_REQUEST_CUT = 4,  /* `request` is not all of it; empty: there was no room for it */
  BH_RECORD_RESPONSE_CUT = 8  /* likewise */
};

enum { BH_RECORD_TEXT_BYTES = 262144 }; /* the most of `request`, and of `response` */

/* One request or notification of a client, when it has ended, or what `kind` says; of other kinds
 * what does not apply is 0 or empty. Texts are borrowed until batch() returns. They may hold
 * whatever client and server said to each other, credentials too: what keeps them masks them. */
typedef struct bh_record {
  uint32_t size;
  uint32_t outcome; /* BH_OUTCOME_... */
  uint64_t exchange;
  uint64_t session;
  uint64_t start_unix_ns;
  uint64_t duration_ns;
  uint64_t bytes_in;  /* of the client's message */
  uint64_t bytes_out; /* of the answer */
  bh_str transport;
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;
  bh_str server; /* empty: answered by the gateway itself */
  bh_str name;   /* original tool or prompt name, or URI */
  bh_str rule;   /* that decided; empty: none */
  bh_str error;  /* text of an error; empty: none */
  /* Grows from record to record, also when the gateway is started again (unless the clock went
   * back). One that is offered twice has the same number: that happens when a plugin in a
   * compartment of its own ended after it had taken a record and before the host heard of it. */
  uint64_t number;

  bh_str request_id; /* JSON text, as the client wrote it; empty: a notification */
  /* JSON text of `params`, at most BH_RECORD_TEXT_BYTES and cut on a character boundary. Of a call
   * that the policy has refused without `arguments`: {"redacted_by_policy":true} in their place.
   * Empty: absent, or nobody wants texts. */
  bh_str request;
  /* Likewise of what has left: of `result` or of the error object, never what a policy withheld. */
  bh_str response;
  uint64_t params_bytes; /* lengths of these JSON texts, uncut; 0: absent */
  uint64_t result_bytes;
  uint32_t action; /* BH_VERDICT_...: what the policy said; 0: it was not asked */
  uint32_t flags;  /* BH_RECORD_... */
  bh_str reason;   /* of the policy; empty: none */
  /* 32 hex digits: of the request's _meta.traceparent, else of the session */
  bh_str trace_id;

  uint32_t kind; /* BH_RECORD_CALL and so on */
  uint32_t reserved;
  uint64_t intent; /* of a call: the number of its intent's record; 0: there was none */
  /* A JSON object with what only this kind has. BH_RECORD_APPROVAL: {"id", "status" ("pending",
   * "approved", "denied", "expired", "withdrawn"), "digest", "surface", "scope"};
   * BH_RECORD_IDENTITY:
   * {"profile", "user"}; texts each. BH_RECORD_POLICY: {"generation", "rules" (numbers), "digest",
   * "policies" ("ID (PLUGIN), ..."), "changes" (from the generation before; "" at a start)}. Empty
   * for calls and intents. */
  bh_str detail;
} bh_record;

typedef struct bh_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* Takes up to n records in order and returns how many it took; the host keeps the others
   * (bounded) and offers them again. [io] */
  uint32_t (*batch)(void *self, const bh_record *const *records, uint32_t n);

  /* BH_TELEMETRY_... bits; asked after start, the same answer until the next configure. A plugin
   * whose table ends before this wants none. [control] */
  uint32_t (*needs)(void *self);
} bh_telemetry;

/* Offered to telemetry plugins. */
typedef struct bh_host_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* Of a plugin that wants BH_TELEMETRY_COMMITS: every record that it has taken and whose number is
   * below this one is where it outlives the process, and the power if the plugin says so. [any] */
  void (*committed)(void *ctx, uint64_t below);
} bh_host_telemetry;

#ifdef __cplusplus
}
#endif

#endif
