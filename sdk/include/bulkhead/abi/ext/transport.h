/* Transport: accepts clients and transfers messages. It reports the identity of the peer. It
 * does not decide policy, parse messages, or compose MCP responses.
 *
 * A *session* is the conversation with one client. A *stream* is the number that tells the
 * transport where to send the response to a message, for example an HTTP request or a stream ID
 * in a frame. Stream 0 is the general stream of a session, and the only stream of stdio.
 *
 * A *sessionless* message has session 0, and a stream number that is unique among the
 * transport's open sessionless streams. The host sends all messages that belong to it with
 * session 0 and this stream number. The response closes the stream. In MCP 2026-07-28, all
 * messages are sessionless.
 *
 * The plugin implements bh_transport and calls bh_host_transport.
 *
 * Since 1.0. Draft: not frozen in 1.0. The ID stays the same when this header becomes stable. */
#ifndef BULKHEAD_ABI_EXT_TRANSPORT_H
#define BULKHEAD_ABI_EXT_TRANSPORT_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TRANSPORT "bh.transport/1"
#define BH_EXT_HOST_TRANSPORT "bh.host.transport/1"

typedef uint64_t bh_session; /* 0: none; contains a generation */

enum {
  /* Clients may omit or repeat initialize. If initialize is omitted, the session has the oldest
   * revision and no capabilities. Each initialize restarts the session under the same handle;
   * in-flight calls continue. */
  BH_PEER_HANDSHAKE_OPTIONAL = 1,
  /* The client accepts only responses. The host sends no BH_OUT_EVENT and no BH_OUT_ASK, and
   * declares no client capabilities to servers. */
  BH_PEER_ANSWERS_ONLY = 2
};

/* The identity of the peer as the transport knows it. Copied by the host. */
typedef struct bh_peer {
  uint32_t size;
  uint32_t flags;      /* BH_PEER_...; unknown bits are ignored */
  bh_str transport;    /* "http", "stdio", "vsock" ... */
  bh_str address;      /* "127.0.0.1:4711", "cid:3", "" */
  bh_str principal;    /* authenticated identity; empty if none */
  bh_str process_name; /* as claimed by the peer; for display only */
  /* Size limit for messages to this peer, in bytes; 0: none. Lists are divided into pages that
   * fit; the transport must reject other messages that are too large. */
  uint64_t max_message_bytes;
  uint64_t claims; /* reserved for a handle of the client's verified claims; must be 0 */
} bh_peer;

enum {
  BH_INCOMING_HEADERS = 1 /* flag: the protocol has headers; `headers` contains all MCP headers */
};

/* A message from a client. All data is borrowed until deliver() returns. */
typedef struct bh_incoming {
  uint32_t size;
  uint32_t flags;     /* BH_INCOMING_...; unknown bits are ignored */
  bh_session session; /* 0 for a sessionless message */
  uint64_t stream;
  bh_str message;
  /* MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Param-*: all headers including
   * duplicates, in order of arrival, not decoded. There must be no other headers, and in
   * particular no credentials and no session ID. For limits, see bh_header. */
  const bh_header *headers;
  uint32_t header_count;
  uint32_t reserved; /* 0 */
  /* The client. Must be set for a sessionless message; BH_PEER_HANDSHAKE_OPTIONAL is then
   * ignored. For a message in a session, may be NULL, or the session's peer with a new address. */
  const bh_peer *peer;
} bh_incoming;

enum {
  BH_DELIVERED_NOTHING = 0, /* accepted; no response follows (notification, response) */
  /* exactly one BH_OUT_ANSWER follows on this stream, perhaps inside deliver() */
  BH_DELIVERED_ANSWER = 1
};
enum {
  BH_DELIVERED_INITIALIZE = 1, /* flag: an accepted initialize */
  BH_DELIVERED_REFUSED = 2, /* flag: not allowed in this session; the host responds with an error */
  /* flag: the client has sent notifications/initialized, in this message or before */
  BH_DELIVERED_READY = 4
};

typedef struct bh_delivery {
  uint32_t size;
  uint32_t kind;  /* BH_DELIVERED_... */
  uint32_t flags; /* unknown bits must be ignored */
  uint32_t reserved;
} bh_delivery;

enum {
  /* the response to the message that was delivered on `stream`, or an array of responses to a
   * batch; closes the stream */
  BH_OUT_ANSWER = 1,
  BH_OUT_EVENT = 2, /* a notification */
  BH_OUT_ASK = 3    /* a server-initiated request to this client */
};

/* A message to the client, in consecutive parts. Borrowed. */
typedef struct bh_outgoing {
  uint32_t size;
  uint32_t kind;      /* BH_OUT_... */
  bh_session session; /* 0 for a sessionless message; never 0 with BH_OUT_ASK */
  uint64_t stream;
  uint32_t http_status; /* for HTTP: the status of the response; 0 means 200 */
  /* 0 (only with BH_OUT_ANSWER) if the client has cancelled the request: release the stream and
   * send nothing */
  uint32_t part_count;
  const bh_str *parts;
} bh_outgoing;

typedef struct bh_transport {
  uint32_t size;
  uint32_t reserved;

  /* Starts accepting clients. Called once, after start. [control] */
  bh_status (*listen)(void *self, bh_error *error);

  /* Stops accepting clients. Open sessions remain. [control] */
  void (*stop_accepting)(void *self);

  /* Sends or queues a message. Returns BH_STALE if the session or stream is closed; the message
   * is dropped. Returns BH_E_LIMIT if the client reads too slowly and its queue is full. The
   * transport then closes the session. If the message is sessionless, it closes only the stream,
   * and calls stream_gone() unless the message was the response. May be called inside deliver().
   * If session_close() or stream_gone() is called inside send(), it takes effect at the end of
   * the event loop iteration. [io] */
  bh_status (*send)(void *self, const bh_outgoing *message);

  /* Reports that the host has closed the session. The transport must notify the client and
   * release the session. [io] */
  void (*session_ended)(void *self, bh_session session, bh_str reason);

  /* Returns the address for clients ("http://127.0.0.1:8808/mcp", "stdio"). Valid until stop.
   * Empty if the address must not be displayed. [control] */
  bh_str (*endpoint)(void *self);
} bh_transport;

enum {
  BH_SESSION_GONE =
      0, /* the client has disconnected or closed the session; in-flight requests are cancelled */
  BH_SESSION_INPUT_ENDED = 1, /* no more input; in-flight requests continue */
  /* as BH_SESSION_GONE, but another session needed the slot. For at least session_idle_ms
   * afterwards, bh_host_resume.reopen() can restore the session. */
  BH_SESSION_EVICTED = 2
};

typedef struct bh_host_transport {
  uint32_t size;
  uint32_t reserved;

  const bh_limits *limits;

  /* Opens a session. Returns BH_E_LIMIT if limits->sessions sessions are open, and
   * BH_E_UNAVAILABLE if the host is shutting down. Does not return BH_PENDING: a later minor
   * version may do so, but only to transports that implement the function of bh_transport with
   * which that version completes the request. This also applies to deliver(). [io] */
  bh_status (*session_open)(void *ctx, const bh_peer *peer, bh_session *out, bh_error *error);

  /* Delivers a complete message; see bh_incoming. The message is borrowed until this function
   * returns. The response may be sent inside this function. Never returns BH_WOULD_BLOCK.
   * BH_OK: *out is set, even if the message is malformed; the response is then an error. A
   *   sessionless stream is open from now until its BH_OUT_ANSWER or stream_gone(), unless the kind
   *   is BH_DELIVERED_NOTHING. session_ended() is never called for such a stream: when the host
   *   shuts down, it sends a BH_OUT_ANSWER on each open stream.
   * BH_STALE: the session does not exist.
   * BH_E_SESSION_LOST: the message is sessionless but needs a session (initialize). It was neither
   *   answered nor recorded. Open a session and deliver the message in it.
   * BH_E_LIMIT: the message is sessionless, and all transports together already have
   *   limits->sessions open streams.
   * BH_E_UNAVAILABLE: the message is sessionless, and the host is shutting down.
   * BH_E_UNSUPPORTED: the message is sessionless, and this host accepts none (the relay); or the
   *   caller is not a transport.
   * BH_E_INVALID: the struct is invalid: the peer is missing or is not the session's, the stream
   *   is already open, or bh_header does not allow the headers. The host logs the reason, and
   *   sends no response. [io] */
  bh_status (*deliver)(void *ctx, const bh_incoming *message, bh_delivery *out);

  /* Reports that `stream` is closed, so a response cannot be sent on it. If the stream belongs
   * to a session (revisions up to 2025-11-25), the request is *not* cancelled. A sessionless
   * request is cancelled, and the host sends no more messages on the stream. [io] */
  void (*stream_gone)(void *ctx, bh_session session, uint64_t stream);

  /* Closes a session. `how` is one of BH_SESSION_... . After BH_SESSION_GONE and
   * BH_SESSION_EVICTED, the handle is stale. [io] */
  void (*session_close)(void *ctx, bh_session session, uint32_t how);

  /* Returns BH_OK if the host supports `revision` (from an MCP-Protocol-Version header), and
   * BH_E_INVALID otherwise. Does not compare it with the session's revision. [io] */
  bh_status (*check_revision)(void *ctx, bh_session session, bh_str revision);

  /* Reports that no more clients can connect, for example because stdin was closed. The host
   * shuts down when all transports have reported this and all responses have been sent. [io] */
  void (*finished)(void *ctx);

  /* Sets the process name for all later messages of a session. Used if several processes share a
   * session. The default is the peer's process name. Copied; only for display and attribution.
   * [io] */
  void (*set_process_name)(void *ctx, bh_session session, bh_str name);
} bh_host_transport;

#ifdef __cplusplus
}
#endif

#endif
