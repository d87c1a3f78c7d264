/* Draft: what a connector and its host tell each other of a lane's wire, where there is one
 * connection per lane. A host that passes messages on without knowing what they mean needs it: it
 * keeps what it has not sent while there is no connection, it ends its half of the conversation
 * when its own input has ended, and it lets either side wait for the other. Both ends are optional.
 * Draft ids may change between minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_WIRE_H
#define BULKHEAD_ABI_EXT_DRAFT_WIRE_H

#include "../connector.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_WIRE "bh.wire/1"
#define BH_EXT_HOST_WIRE "bh.host.wire/1"

typedef struct bh_wire {
  uint32_t size;
  uint32_t reserved;

  /* Nothing more will be sent on this lane: what is queued goes out, then the peer sees the end of
   * the stream. Answers still come; lane_down follows when the peer has ended its half too. [io] */
  void (*lane_finish)(void *self, void *lane);

  /* hold 1: read nothing more from this lane's connection until this is called with 0; what has
   * been read is still handed over, at most 64 KiB and one message. The end of the connection may
   * be told only after that. From inside message(), too; before lane_connected it holds what
   * follows. [io] */
  void (*lane_hold)(void *self, void *lane, uint32_t hold);
} bh_wire;

typedef struct bh_host_wire {
  uint32_t size;
  uint32_t reserved;

  /* The lane's connection stands. Once per lane, not from inside lane_open. Before it, lane_down
   * with BH_E_UNAVAILABLE says that it could not be made, and nothing was sent. [io] */
  void (*lane_connected)(void *ctx, bh_lane lane);

  /* full 1: something waits to be sent on this lane, which the peer does not take now; 0: it has
   * taken all. By turns, beginning with 1, between lane_connected and lane_down; not from inside
   * lane_send. What is sent meanwhile waits, too, within limits->write_queue_bytes. [io] */
  void (*lane_full)(void *ctx, bh_lane lane, uint32_t full);
} bh_host_wire;

#ifdef __cplusplus
}
#endif

#endif
