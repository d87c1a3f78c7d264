/* Draft: back-pressure through a host that only passes messages on. Such a host has no requests of
 * its own to refuse: when one side does not take what the other sends, the other must not be read,
 * so that it finds out by itself. This is the transport's part; bh.wire/1 and bh.host.wire/1 have
 * the connector's. Both ends are optional. Draft ids may change between minors.
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

  /* hold 1: deliver no further message of this session, and read nothing more from its client,
   * until this is called with 0. From inside deliver() the message of that call is the last one.
   * What has been read is kept, at most 1 MiB. Without effect after BH_SESSION_INPUT_ENDED. [io] */
  void (*hold_input)(void *self, bh_session session, uint32_t hold);
} bh_flow;

typedef struct bh_host_flow {
  uint32_t size;
  uint32_t reserved;

  /* full 1: something waits for this client, which does not take it now; 0: it has taken all. By
   * turns, beginning with 1; from inside send() or at the end of the turn. What is sent meanwhile
   * waits, too, within limits->write_queue_bytes. With a host that has this table a client may take
   * its time: limits->write_stall_ms holds only once its input has ended. [io] */
  void (*output_full)(void *ctx, bh_session session, uint32_t full);
} bh_host_flow;

#ifdef __cplusplus
}
#endif

#endif
