/* Draft: state of a lane's wire, for connectors with one connection per lane. A host that
 * forwards messages without parsing them needs it: the host queues messages while there is no
 * connection, closes its half of the conversation when its input has ended, and provides flow
 * control. Both tables are optional. Draft ids may change between minor versions.
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

  /* Reports the end of output on this lane: queued messages are sent, then the peer sees the end of
   * the stream. Answers are still received; lane_down follows when the peer has closed its half.
   * [io] */
  void (*lane_finish)(void *self, void *lane);

  /* With hold 1, stops reading from this lane's connection until it is called with 0. Input that
   * was already read is still delivered, at most 64 KiB and one message; the end of the
   * connection may be reported only after that. May be called from inside message(), and before
   * lane_connected for later input. [io] */
  void (*lane_hold)(void *self, void *lane, uint32_t hold);
} bh_wire;

typedef struct bh_host_wire {
  uint32_t size;
  uint32_t reserved;

  /* Reports that the lane's connection is established. Called once per lane, not from inside
   * lane_open. A lane_down with BH_E_UNAVAILABLE before it means that the connection failed and
   * nothing was sent. [io] */
  void (*lane_connected)(void *ctx, bh_lane lane);

  /* `full` is 1 if output is pending because the peer does not read, and 0 when all output was
   * sent. Called with 1 and 0 alternately, beginning with 1, between lane_connected and
   * lane_down, not from inside lane_send. Messages sent while full are queued, within
   * limits->write_queue_bytes. [io] */
  void (*lane_full)(void *ctx, bh_lane lane, uint32_t full);
} bh_host_wire;

#ifdef __cplusplus
}
#endif

#endif
