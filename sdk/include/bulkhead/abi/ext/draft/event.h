/* Draft: records the actions of a tools plugin during a call. Draft ids may change between minor
 * versions.
 *
 * `detail` is a JSON object with these members; missing members are unknown:
 *   BH_RECORD_NET: "domain", "port", "decision" ("allowed", "denied", "error"), "method",
 *   "path", "status_code", "bytes_sent", "bytes_received", "duration_ms", "rule", "reason".
 *   BH_RECORD_FS: "action" ("created", "modified", "deleted", "restored"), "path", "size".
 *   BH_RECORD_SNAPSHOT: "slot", "origin", "name", "files_count".
 * It must not contain credentials, so URLs are recorded without their query.
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
  BH_EVENT_BYTES = 4096,    /* maximum size of `detail`; larger events are dropped and counted */
  BH_EVENTS_PER_CALL = 1024 /* additional events are dropped and counted */
};

typedef struct bh_host_event {
  uint32_t size;
  uint32_t reserved;

  /* Records an event of a pending call. `kind` is BH_RECORD_NET, BH_RECORD_FS or
   * BH_RECORD_SNAPSHOT. Ignored if the call is not pending or no telemetry plugin requests records
   * of this kind. [any] */
  void (*event)(void *ctx, bh_call call, uint32_t kind, bh_str detail);
} bh_host_event;

#ifdef __cplusplus
}
#endif

#endif
