/* Telemetry: a plugin that stores or exports records, which it receives in batches. It must not
 * block, and must count the records that it drops.
 *
 * If the plugin is in a compartment, calls do not wait for it unless it sets
 * BH_TELEMETRY_COMMITS. The host stores a limited number of unacknowledged records, and sends
 * them again after a restart of the plugin's process.
 *
 * Since 1.0. Draft: not frozen in 1.0. The ID stays the same when this header becomes stable. */
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

/* The data and guarantees that a telemetry plugin needs; see needs(). */
enum {
  BH_TELEMETRY_TEXTS = 1,  /* `request` and `response`, which are otherwise not copied */
  BH_TELEMETRY_BLOCKS = 2, /* fail closed: reject calls while the queue of records is full */
  /* A call is sent to its server only after its intent has been committed, and a response to the
   * client only after its record has been committed; see bh_host_telemetry. Each wait is limited
   * to BH_TELEMETRY_COMMIT_MS. Ignored without BH_TELEMETRY_EVENTS. */
  BH_TELEMETRY_COMMITS = 4,
  BH_TELEMETRY_EVENTS = 8, /* records of other kinds than BH_RECORD_CALL */
  /* With BH_TELEMETRY_TEXTS, `request` also has the arguments of calls that a policy rejected. They
   * are removed if the policy had rewritten them, or if another plugin needs texts without this
   * bit. */
  BH_TELEMETRY_REJECTED = 16
};

enum { BH_TELEMETRY_COMMIT_MS = 10000 };

/* The kinds of records. Kinds other than calls are sent only with BH_TELEMETRY_EVENTS. Intents are
 * recorded only if a telemetry plugin has BH_TELEMETRY_COMMITS. A plugin must accept and ignore
 * unknown kinds. */
enum {
  BH_RECORD_CALL = 0,     /* a completed request, or a notification, of a client */
  BH_RECORD_INTENT = 1,   /* a call that is about to be sent to its server */
  BH_RECORD_APPROVAL = 2, /* an approval request is pending or was resolved */
  /* Actions of a tools plugin during a call; see ext/draft/event.h for `detail`. */
  BH_RECORD_NET = 3,
  BH_RECORD_FS = 4,
  BH_RECORD_SNAPSHOT = 5,
  BH_RECORD_IDENTITY = 6, /* the gateway's profile and user; the first record of a process */
  /* the current policies and rules; recorded when a process starts, and after each policy reload */
  BH_RECORD_POLICY = 7,
  BH_RECORD_PLUGIN = 8 /* another file of a plugin is in use (a swap or a reload) */
};

/* Flags in bh_record. */
enum {
  BH_RECORD_WARNED = 1,       /* allowed by the policy with a warning */
  BH_RECORD_NOTIFICATION = 2, /* a notification, which has no response */
  /* `request` was truncated, or is empty because too much text is waiting to be recorded */
  BH_RECORD_REQUEST_CUT = 4,
  BH_RECORD_RESPONSE_CUT = 8, /* the same for `response` */
  BH_RECORD_NOT_SENT = 16     /* rejected before it was sent to its server */
};

enum { BH_RECORD_TEXT_BYTES = 262144 }; /* size limit for `request` and for `response` */

/* A completed request or a notification of a client, or another event depending on `kind`.
 * Members that do not apply to the kind are 0 or empty. Texts are borrowed until batch()
 * returns. They may contain credentials, which a plugin must mask before it stores them. */
typedef struct bh_record {
  uint32_t size;
  uint32_t outcome; /* BH_OUTCOME_... */
  uint64_t exchange;
  uint64_t session;
  uint64_t start_unix_ns;
  uint64_t duration_ns;
  uint64_t bytes_in;  /* size of the client's message */
  uint64_t bytes_out; /* size of the response */
  bh_str transport;
  bh_str peer;
  bh_str principal;
  bh_str process_name;
  bh_str method;
  bh_str server; /* empty if the gateway itself responded */
  bh_str name;   /* original tool or prompt name, or URI */
  bh_str rule;   /* the rule that decided; empty if none */
  bh_str error;  /* error message; empty if none */
  /* Increases with each record, even across restarts of the gateway (unless the clock was set
   * back). If a plugin's process exits after it has received a record and before it has
   * acknowledged it, the record is sent again with the same number. */
  uint64_t number;

  bh_str request_id; /* JSON text as sent by the client; empty for a notification */
  /* JSON text of `params`, truncated to BH_RECORD_TEXT_BYTES at a character boundary. If the call
   * was rejected before it was sent, `arguments` is replaced with {"redacted_by_policy":true}, and
   * other members may be removed, unless the plugins need them (BH_TELEMETRY_REJECTED). Empty if
   * missing, or if no plugin needs texts. */
  bh_str request;
  /* JSON text of the `result` or error object that was sent, with the same limit. Never contains
   * data that a policy withheld. */
  bh_str response;
  uint64_t params_bytes; /* full sizes of these JSON texts; 0 if missing */
  uint64_t result_bytes;
  uint32_t action; /* BH_VERDICT_... of the policy; 0 if it was not evaluated */
  uint32_t flags;  /* BH_RECORD_... */
  bh_str reason;   /* the policy's reason; empty if none */
  /* 32 hex digits, from _meta.traceparent of the request or, if it is missing or invalid, the
   * trace ID of the session */
  bh_str trace_id;

  uint32_t kind; /* BH_RECORD_CALL etc. */
  uint32_t reserved;
  uint64_t intent; /* for a call, the number of its intent record; 0 if none */
  /* A JSON object whose members depend on the kind; empty for calls and intents.
   *  BH_RECORD_APPROVAL (strings): {"id", "status" ("pending", "approved", "denied", "expired",
   *  "withdrawn"), "digest", "surface", "scope"}.
   *  BH_RECORD_IDENTITY (strings): {"profile", "user"}.
   *  BH_RECORD_POLICY: {"generation", "rules" (numbers), "digest", "policies" ("ID (PLUGIN), ..."),
   *  "changes" (since the previous generation; "" at the start)}.
   *  BH_RECORD_PLUGIN (strings): {"plugin" ("tools.ID" etc.), "change" (what replaced what)}. */
  bh_str detail;
  /* The unverified clientInfo.name from the client's initialize or from a sessionless message's
   * _meta, at most 128 bytes of UTF-8. Empty if missing, or if the session was restored. */
  bh_str claimed_name;
  /* The MCP revisions that the client and the server of the request use, as decimal numbers such
   * as 20251125 for revision 2025-11-25. client_revision is 0 if the client has not stated a
   * revision. server_revision is 0 if the request was not sent to a server, and for tools plugins,
   * which do not use MCP. */
  uint32_t client_revision;
  uint32_t server_revision;
} bh_record;

typedef struct bh_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* Receives n records in order. Returns k if the first k records were accepted. The host queues
   * the others up to a limit, and sends them again. [io] */
  uint32_t (*batch)(void *self, const bh_record *const *records, uint32_t n);

  /* Returns BH_TELEMETRY_... bits. Called after start; the bits must not change until the next
   * configure. A table without this member requests nothing. [control] */
  uint32_t (*needs)(void *self);
} bh_telemetry;

/* Provided to telemetry plugins. */
typedef struct bh_host_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* For plugins with BH_TELEMETRY_COMMITS: reports that all accepted records with numbers below
   * `below` are stored durably. They must survive an exit of the process and, if the plugin
   * promises it, a power failure. [any] */
  void (*committed)(void *ctx, uint64_t below);
} bh_host_telemetry;

#ifdef __cplusplus
}
#endif

#endif
