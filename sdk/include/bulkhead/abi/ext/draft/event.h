/* Draft: what a tools plugin has done for a call, for the record. Draft ids may change between
 * minors.
 *
 * `detail` is a JSON object. Members of BH_RECORD_NET: "domain", "port", "decision" ("allowed",
 * "denied", "error"), "method", "path", "status_code", "bytes_sent", "bytes_received",
 * "duration_ms", "rule", "reason". Of BH_RECORD_FS: "action" ("created", "modified", "deleted",
 * "restored"), "path", "size". Of BH_RECORD_SNAPSHOT: "slot", "origin", "name", "files_count".
 * What is absent is unknown. No credentials: a path goes without its query.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_EVENT_H
#define BULKHEAD_ABI_EXT_DRAFT_EVENT_H

#include "../telemetry.h"
#include "../tools.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_EVENT "bh.host.event/1"

enum {
  BH_EVENT_BYTES = 4096,    /* the most of `detail`; a larger one is dropped and counted */
  BH_EVENTS_PER_CALL = 1024 /* further ones are dropped and counted */
};

typedef struct bh_host_event {
  uint32_t size;
  uint32_t reserved;

  /* kind: BH_RECORD_NET, BH_RECORD_FS or BH_RECORD_SNAPSHOT. Of a call that is pending; of any
   * other, and where nobody keeps such records, it does nothing. [any] */
  void (*event)(void *ctx, bh_call call, uint32_t kind, bh_str detail);
} bh_host_event;

#ifdef __cplusplus
}
#endif

#endif
