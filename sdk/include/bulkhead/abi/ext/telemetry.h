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

enum {
  BH_OUTCOME_OK = 1,
  BH_OUTCOME_ERROR = 2,
  BH_OUTCOME_REFUSED = 3,
  BH_OUTCOME_TIMEOUT = 4,
  BH_OUTCOME_CANCELLED = 5
};

/* One exchange that has ended. Texts are borrowed until batch() returns. */
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
} bh_record;

typedef struct bh_telemetry {
  uint32_t size;
  uint32_t reserved;

  /* Takes up to n records in order and returns how many it took; the host keeps the others
   * (bounded) and offers them again. [io] */
  uint32_t (*batch)(void *self, const bh_record *const *records, uint32_t n);
} bh_telemetry;

#ifdef __cplusplus
}
#endif

#endif
