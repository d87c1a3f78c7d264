/* Draft: what a connector and its host tell each other of a lane's wire, where there is one
 * connection per lane. A host that passes messages on without knowing what they mean needs it: it
 * keeps what it has not sent while there is no connection, and it ends its half of the conversation
 * when its own input has ended. Both ends are optional. Draft ids may change between minors.
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
} bh_wire;

typedef struct bh_host_wire {
  uint32_t size;
  uint32_t reserved;

  /* The lane's connection stands. Once per lane, not from inside lane_open. Before it, lane_down
   * with BH_E_UNAVAILABLE says that it could not be made, and nothing was sent. [io] */
  void (*lane_connected)(void *ctx, bh_lane lane);
} bh_host_wire;

#ifdef __cplusplus
}
#endif

#endif
