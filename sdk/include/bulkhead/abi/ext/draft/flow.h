/* Draft: flow control through a host that only forwards messages and cannot reject requests: if
 * one side does not read, the host does not read from the other side either. This header is the
 * transport's part; bh.wire/1 and bh.host.wire/1 are the connector's. Both tables are optional.
 * Draft ids may change between minor versions.
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

  /* With hold 1, stops delivering messages of this session and reading from its client, until it
   * is called with 0. If called inside deliver(), the current message is the last one. Input
   * that was already read is kept, at most 1 MiB. No effect after BH_SESSION_INPUT_ENDED. [io] */
  void (*hold_input)(void *self, bh_session session, uint32_t hold);
} bh_flow;

typedef struct bh_host_flow {
  uint32_t size;
  uint32_t reserved;

  /* `full` is 1 if output for this client is pending because it does not read, and 0 when all
   * output was sent. Called with 1 and 0 alternately, beginning with 1, from inside send() or at
   * the end of the turn. Messages sent while full are queued, within limits->write_queue_bytes.
   * With a host that has this table, limits->write_stall_ms applies only after the client's
   * input has ended. [io] */
  void (*output_full)(void *ctx, bh_session session, uint32_t full);
} bh_host_flow;

#ifdef __cplusplus
}
#endif

#endif
