/* Draft: flow control with a host that only forwards messages and cannot reject requests. If one
 * side does not read, the host stops reading from the other side. This header is for transports;
 * bh.wire/1 and bh.host.wire/1 are for connectors. Both tables are optional. Draft ids may change
 * between minor versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_FLOW_H
#define BULKHEAD_ABI_EXT_DRAFT_FLOW_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_FLOW "bh.flow/1"
#define BH_EXT_HOST_FLOW "bh.host.flow/1"

typedef struct bh_flow {
  uint32_t size;
  uint32_t reserved;

  /* Called with hold 1 to stop delivering messages of this session and reading from its client, and
   * with 0 to resume. If called inside deliver(), the current message is the last one. Input that
   * has already been read is kept, up to 1 MiB. No effect after BH_SESSION_INPUT_ENDED. [io] */
  void (*hold_input)(void *self, bh_session session, uint32_t hold);
} bh_flow;

typedef struct bh_host_flow {
  uint32_t size;
  uint32_t reserved;

  /* Called with `full` 1 if output for this client is pending because the client does not read, and
   * with 0 when all output has been sent. The calls alternate, beginning with 1, inside send() or
   * at the end of the event loop iteration. Messages sent in between are queued, within
   * limits->write_queue_bytes. If the host has this table, limits->write_stall_ms applies only
   * after the client's input has ended. [io] */
  void (*output_full)(void *ctx, bh_session session, uint32_t full);
} bh_host_flow;

#ifdef __cplusplus
}
#endif

#endif
