/* Connector: connects to upstream MCP servers and transfers messages. A connector implements the
 * wire (a child's pipes, or HTTP with its sessions and event streams). The host implements MCP's
 * methods, including the handshake, IDs and timeouts.
 *
 * A *lane* is the conversation with one upstream server. An *exchange* is the number that the
 * host assigns to a request on a lane. If the wire associates responses with requests (HTTP),
 * the connector reports the exchange of each incoming message; otherwise it reports 0.
 *
 * Since 1.0. Stable. */
#ifndef BULKHEAD_ABI_EXT_CONNECTOR_H
#define BULKHEAD_ABI_EXT_CONNECTOR_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_CONNECTOR "bh.connector/1"
#define BH_EXT_HOST_CONNECTOR "bh.host.connector/1"

typedef uint64_t bh_lane; /* the host's handle; 0: none; contains a generation */

typedef struct bh_lane_info {
  uint32_t size;
  uint32_t flags; /* no flags are defined; unknown bits must be ignored */
  bh_str server;  /* the name in the profile, for logs and error messages */
  /* JSON object with expanded references. May contain credentials, so it must not be logged. */
  bh_str definition;
  uint64_t connect_timeout_ms;
} bh_lane_info;

enum { BH_LANE_REQUEST = 1, BH_LANE_NOTIFICATION = 2, BH_LANE_RESPONSE = 3 };

/* A message to the upstream, in consecutive parts. Borrowed. */
typedef struct bh_lane_message {
  uint32_t size;
  uint32_t kind;        /* BH_LANE_...; reject unknown values with BH_E_UNSUPPORTED */
  uint64_t exchange;    /* the number of a request; otherwise 0 */
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none; the host enforces it */
  uint32_t flags;       /* BH_LANE_INITIALIZE, BH_LANE_REPEATABLE; unknown bits must be ignored */
  uint32_t part_count;
  const bh_str *parts;
  /* Headers for the request that carries this message. Only for wires with headers (HTTP); other
   * connectors ignore them. Names begin with "Mcp-", but the connector sets Mcp-Session-Id itself.
   * Mcp-Protocol-Version overrides the revision of lane_ready(). A connector must either send all
   * headers or reject the message with BH_E_INVALID. For limits, see bh_header. */
  const bh_header *headers;
  uint32_t header_count;
  uint32_t reserved; /* 0 */
} bh_lane_message;
enum {
  /* Flag: the first request of a conversation. The connector may repeat it, as with
   * BH_LANE_REPEATABLE or when it falls back to another MCP transport. */
  BH_LANE_INITIALIZE = 1,
  /* Flag: the request is read-only. If the server temporarily refuses it (HTTP 429 or 503 with
   * Retry-After, RFC 9110 10.2.3), the connector may retry it before the deadline. */
  BH_LANE_REPEATABLE = 2
};

/* Why an exchange has failed, or why a conversation is over. Borrowed, with all data, until the
 * function returns. */
typedef struct bh_lane_failure {
  uint32_t size;
  /* Status of the HTTP response that caused the failure; 0 if there is none, or the wire is not
   * HTTP. */
  uint32_t http_status;
  const bh_error *error; /* the code and the text for users; must not be NULL */
  /* The values of the response's WWW-Authenticate header fields, in order and unchanged, if the
   * server requires credentials (BH_E_AUTH). At most BH_CHALLENGE_COUNT values with at most
   * BH_CHALLENGE_BYTES bytes in total; the connector omits values that exceed this. Written by the
   * server, not verified, and logged. NULL if challenge_count is 0. */
  const bh_str *challenges;
  uint32_t challenge_count;
  uint32_t reserved; /* 0 */
  /* The scope that the server requires, as space-separated tokens (RFC 6750, section 3), from one
   * of the challenges. Only printable ASCII characters. Empty if unknown. */
  bh_str scope;
} bh_lane_failure;
enum { BH_CHALLENGE_COUNT = 8, BH_CHALLENGE_BYTES = 8192 };

typedef struct bh_connector {
  uint32_t size;
  uint32_t reserved;

  /* Opens a lane. After BH_OK, messages can be sent immediately; they are queued until the wire
   * is connected. The error text, here and in lane_down, states the reason and tells the user
   * what to do. [io] */
  bh_status (*lane_open)(void *self, bh_lane lane, const bh_lane_info *info, void **out,
                         bh_error *error);

  /* Sends or queues a message. Queued output is limited to limits->write_queue_bytes: if the
   * upstream reads too slowly, returns BH_E_LIMIT, and the message is not sent. [io] */
  bh_status (*lane_send)(void *self, void *lane, const bh_lane_message *message, bh_error *error);

  /* Called when the handshake is complete. `revision` is the value for MCP-Protocol-Version
   * headers. The connector may now open a stream for server-initiated messages. [io] */
  void (*lane_ready)(void *self, void *lane, bh_str revision);

  /* Called if the host no longer waits for this exchange, because it was answered elsewhere,
   * cancelled or timed out. [io] */
  void (*lane_abandon)(void *self, void *lane, uint64_t exchange);

  /* Closes the lane in an orderly way: sends DELETE for the session, or closes the child's stdin
   * and then sends SIGTERM and finally SIGKILL. Called exactly once per open lane. After
   * releasing all of the lane's resources, the connector must call lane_closed exactly once. The
   * pointer `lane` is then invalid. [io] */
  void (*lane_close)(void *self, void *lane);
} bh_connector;

typedef struct bh_host_connector {
  uint32_t size;
  uint32_t reserved;

  const bh_limits *limits;

  /* Delivers a complete message from the upstream. The message is borrowed. `exchange` is the
   * request on whose stream the message arrived, or 0. May be called inside lane_send. [io] */
  void (*message)(void *ctx, bh_lane lane, uint64_t exchange, bh_str message);

  /* Reports that an exchange has failed. The lane remains usable. failure->error->code is
   * BH_E_AUTH or BH_E_DENIED (credentials), BH_E_UNAVAILABLE (not sent), BH_E_TIMEOUT or BH_E_IO
   * (may have been executed), BH_E_LIMIT, or BH_E_PROTOCOL (an invalid response, or an HTTP status
   * such as 400, 404 or 405; the host may then try another MCP revision). The failure of an unknown
   * exchange is ignored. [io] */
  void (*exchange_failed)(void *ctx, bh_lane lane, uint64_t exchange,
                          const bh_lane_failure *failure);

  /* Reports that the conversation is over (BH_E_UNAVAILABLE: the child has exited;
   * BH_E_SESSION_LOST). The host fails all in-flight exchanges and calls lane_close. Must not be
   * called after lane_close. [io] */
  void (*lane_down)(void *ctx, bh_lane lane, const bh_lane_failure *failure);

  /* Reports that the lane is closed; see lane_close. [io] */
  void (*lane_closed)(void *ctx, bh_lane lane);
} bh_host_connector;

#ifdef __cplusplus
}
#endif

#endif
