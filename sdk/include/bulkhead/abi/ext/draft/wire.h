/* Draft: the state of a lane's wire, for connectors with one connection per lane. A host that
 * forwards messages without parsing them uses these tables to queue messages until there is a
 * connection, to half-close the connection when its input has ended, and for flow control. Both
 * tables are optional.
 *
 * Since 1.0. Draft. */
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

  /* Called when there is no more output for this lane. The connector sends queued messages and
   * then half-closes the connection. Responses are still received. lane_down follows when the
   * peer has closed its side. [io] */
  void (*lane_finish)(void *self, void *lane);

  /* If hold is 1, stops reading from this lane's connection; if it is 0, resumes reading. Input
   * that has already been read (at most 64 KiB and one message) is delivered, and the end of the
   * connection must be reported only after that. May be called inside message(), and before
   * lane_connected. [io] */
  void (*lane_hold)(void *self, void *lane, uint32_t hold);
} bh_wire;

typedef struct bh_host_wire {
  uint32_t size;
  uint32_t reserved;

  /* Reports that the lane's connection is established. Called once per lane, not inside
   * lane_open. If the connection fails, lane_down with BH_E_UNAVAILABLE is called instead, and
   * nothing has been sent. [io] */
  void (*lane_connected)(void *ctx, bh_lane lane);

  /* Called with `full` 1 if output is pending because the peer does not read, and with 0 when
   * all output has been sent. The calls alternate, beginning with 1. They occur between
   * lane_connected and lane_down, and not inside lane_send. Messages that are sent while the
   * output is full are queued up to limits->write_queue_bytes. [io] */
  void (*lane_full)(void *ctx, bh_lane lane, uint32_t full);
} bh_host_wire;

#ifdef __cplusplus
}
#endif

#endif
