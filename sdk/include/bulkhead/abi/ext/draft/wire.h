/* Draft: the state of a lane's wire, for connectors with one connection per lane. A host that
 * forwards messages without parsing them needs this state. It queues messages while there is no
 * connection, half-closes the conversation when its input has ended, and implements flow control.
 * Both tables are optional. Draft ids may change between minor versions.
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

  /* Called when there is no more output for this lane. Queued messages are sent, then the peer sees
   * the end of the stream. Answers are still received; lane_down follows when the peer has closed
   * its side. [io] */
  void (*lane_finish)(void *self, void *lane);

  /* Called with hold 1 to stop reading from this lane's connection, and with 0 to resume. Input
   * that has already been read is still delivered, at most 64 KiB and one message. The end of the
   * connection must be reported after this input. May be called inside message(), and before
   * lane_connected for later input. [io] */
  void (*lane_hold)(void *self, void *lane, uint32_t hold);
} bh_wire;

typedef struct bh_host_wire {
  uint32_t size;
  uint32_t reserved;

  /* Reports that the lane's connection is established. Called once per lane, not inside lane_open.
   * If lane_down is called first, with BH_E_UNAVAILABLE, the connection failed and nothing has been
   * sent. [io] */
  void (*lane_connected)(void *ctx, bh_lane lane);

  /* Called with `full` 1 if output is pending because the peer does not read, and with 0 when all
   * output has been sent. The calls alternate, beginning with 1, between lane_connected and
   * lane_down, and not inside lane_send. Messages sent in between are queued, within
   * limits->write_queue_bytes. [io] */
  void (*lane_full)(void *ctx, bh_lane lane, uint32_t full);
} bh_host_wire;

#ifdef __cplusplus
}
#endif

#endif
