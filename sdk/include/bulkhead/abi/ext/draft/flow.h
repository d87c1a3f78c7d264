/* Draft: flow control between a transport and a host that forwards messages but cannot reject
 * requests. If one side does not read, the host stops reading from the other side. The tables
 * for connectors are bh.wire/1 and bh.host.wire/1. Both tables in this header are optional.
 *
 * Since 1.0. Draft. */
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

  /* If hold is 1, stops delivering messages of this session and reading from its client; if it
   * is 0, resumes both. If called inside deliver(), the current message is the last one. Up to 1
   * MiB of input that has already been read is kept. Has no effect after BH_SESSION_INPUT_ENDED.
   * [io] */
  void (*hold_input)(void *self, bh_session session, uint32_t hold);
} bh_flow;

typedef struct bh_host_flow {
  uint32_t size;
  uint32_t reserved;

  /* Called with `full` 1 if output for this client is pending because the client does not read,
   * and with 0 when all output has been sent. The calls alternate, beginning with 1. They occur
   * inside send() or at the end of an event loop iteration. Messages that are sent while the
   * output is full are queued up to limits->write_queue_bytes. With a host that provides this
   * table, limits->write_stall_ms applies only after the client's input has ended. [io] */
  void (*output_full)(void *ctx, bh_session session, uint32_t full);
} bh_host_flow;

#ifdef __cplusplus
}
#endif

#endif
