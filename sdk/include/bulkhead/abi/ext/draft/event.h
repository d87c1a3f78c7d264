/* Draft: lets a tools plugin record its actions during a call.
 *
 * `detail` is a JSON object. Members whose values are unknown are omitted:
 *   BH_RECORD_NET: "domain", "port", "decision" ("allowed", "denied", "error"), "method", "path",
 *   "status_code", "bytes_sent", "bytes_received", "duration_ms", "rule", "reason".
 *   BH_RECORD_FS: "action" ("created", "modified", "deleted", "restored"), "path", "size".
 *   BH_RECORD_SNAPSHOT: "slot", "origin", "name", "files_count".
 * It must not contain credentials, so URLs must be recorded without their query.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_EVENT_H
#define BULKHEAD_ABI_EXT_DRAFT_EVENT_H

#include "../telemetry.h"
#include "../tools.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_EVENT "bh.host.event/1"

enum {
  BH_EVENT_BYTES = 4096,    /* size limit for `detail`; larger events are dropped */
  BH_EVENTS_PER_CALL = 1024 /* more events are dropped and counted */
};

typedef struct bh_host_event {
  uint32_t size;
  uint32_t reserved;

  /* Records an event of an in-flight call. `kind` is BH_RECORD_NET, BH_RECORD_FS or
   * BH_RECORD_SNAPSHOT. Has no effect if the call is not in flight, or if no telemetry plugin
   * needs this kind of record. [any] */
  void (*event)(void *ctx, bh_call call, uint32_t kind, bh_str detail);
} bh_host_event;

#ifdef __cplusplus
}
#endif

#endif
