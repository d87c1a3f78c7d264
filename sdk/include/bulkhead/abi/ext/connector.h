/* Connector: reaches upstream MCP servers and carries message bytes. It knows its wire (a child's
 * pipes, HTTP with its sessions and event streams), not MCP's methods: the host does the handshake,
 * the ids and the time-outs.
 *
 * A *lane* is one conversation with one upstream server. An *exchange* is the host's number for one
 * request sent on it; where the wire ties answers to requests (HTTP), the connector says to which
 * exchange an incoming message belongs, else 0.
 */
#ifndef BULKHEAD_ABI_EXT_CONNECTOR_H
#define BULKHEAD_ABI_EXT_CONNECTOR_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_CONNECTOR "bh.connector/1"
#define BH_EXT_HOST_CONNECTOR "bh.host.connector/1"

typedef uint64_t bh_lane; /* the host's handle; 0: none; carries a generation */

typedef struct bh_lane_info {
  uint32_t size;
  uint32_t flags;    /* none defined; must be 0 */
  bh_str server;     /* the name in the profile; for logs and error texts */
  bh_str definition; /* the server's definition as one JSON object, references resolved. It may
                        hold credentials: never log it */
  uint64_t connect_timeout_ms;
} bh_lane_info;

enum { BH_LANE_REQUEST = 1, BH_LANE_NOTIFICATION = 2, BH_LANE_RESPONSE = 3 };

/* A message for the upstream, in parts that follow each other without gap. Borrowed. */
typedef struct bh_lane_message {
  uint32_t size;
  uint32_t kind;        /* BH_LANE_... */
  uint64_t exchange;    /* of a request; else 0 */
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none. A hint: the host keeps it itself */
  uint32_t flags;       /* BH_LANE_INITIALIZE */
  uint32_t part_count;
  const bh_str *parts;
  /* Since minor 2. Headers for the request that carries this message, on a wire that has headers
   * (HTTP); other connectors ignore them. Only names that begin with "Mcp-", except Mcp-Session-Id,
   * which is the connector's own; Mcp-Protocol-Version takes the place of what lane_ready() has
   * said. A connector sends each or refuses the message with BH_E_INVALID. Bounds: see
   * bh_header. */
  const bh_header *headers;
  uint32_t header_count;
  uint32_t reserved; /* 0 */
} bh_lane_message;
enum {
  BH_LANE_INITIALIZE = 1 /* flag: the first request of a conversation; nothing is lost by
                            trying another transport with it */
};

typedef struct bh_connector {
  uint32_t size;
  uint32_t reserved;

  /* Opens a lane. BH_OK: messages may be sent at once (they are queued until the wire is up).
   * An error, or later lane_down, with a reason that a person can act on. [io] */
  bh_status (*lane_open)(void *self, bh_lane lane, const bh_lane_info *info, void **out,
                         bh_error *error);

  /* Sends or queues (bounded by limits->write_queue_bytes). BH_E_LIMIT: the upstream reads too
   * slowly; this message was not taken and has not run. [io] */
  bh_status (*lane_send)(void *self, void *lane, const bh_lane_message *message, bh_error *error);

  /* The handshake is complete, in this revision (for MCP-Protocol-Version headers); a connector may
   * now open a stream for unrelated messages. [io] */
  void (*lane_ready)(void *self, void *lane, bh_str revision);

  /* The host no longer waits for this exchange (answered otherwise, cancelled, timed out). [io] */
  void (*lane_abandon)(void *self, void *lane, uint64_t exchange);

  /* Ends the lane in good order (session DELETE; stdin closed, then SIGTERM, then SIGKILL). The
   * connector calls lane_closed exactly once when nothing of it is left; `lane` (the connector's
   * pointer) is invalid from then on. Called exactly once per opened lane. [io] */
  void (*lane_close)(void *self, void *lane);
} bh_connector;

typedef struct bh_host_connector {
  uint32_t size;
  uint32_t reserved;

  const bh_limits *limits;

  /* One whole message of the upstream (borrowed). exchange: the request on whose stream it came, or
   * 0. May be called from inside lane_send. [io] */
  void (*message)(void *ctx, bh_lane lane, uint64_t exchange, bh_str message);

  /* This exchange will get no answer; the lane goes on. error->code says why: BH_E_AUTH,
   * BH_E_UNAVAILABLE (not sent), BH_E_IO (may have run), BH_E_PROTOCOL ... [io] */
  void (*exchange_failed)(void *ctx, bh_lane lane, uint64_t exchange, const bh_error *error);

  /* The conversation has ended by itself (child gone, session lost); the host fails what is under
   * way and calls lane_close. Not after lane_close. [io] */
  void (*lane_down)(void *ctx, bh_lane lane, const bh_error *error);

  /* See lane_close. [io] */
  void (*lane_closed)(void *ctx, bh_lane lane);
} bh_host_connector;

#ifdef __cplusplus
}
#endif

#endif
