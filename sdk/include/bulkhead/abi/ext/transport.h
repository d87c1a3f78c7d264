/* Transport: accepts clients and transfers message bytes. It reports the peer's identity. It does
 * not decide policy, compose MCP answers, or parse messages.
 *
 * A *session* is the conversation with one client. A *stream* is the transport's number for the
 * destination of the answer to a message (an HTTP request, a frame's stream id). Stream 0 is the
 * session's general stream (the only stream in stdio).
 *
 * A *sessionless* message has session 0 and a stream number that is unique among the transport's
 * open sessionless streams. The host sends related messages with session 0 and that stream, and
 * ends the stream with the answer. In MCP 2026-07-28, all messages are sessionless.
 *
 * The plugin implements bh_transport and calls bh_host_transport.
 */
#ifndef BULKHEAD_ABI_EXT_TRANSPORT_H
#define BULKHEAD_ABI_EXT_TRANSPORT_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TRANSPORT "bh.transport/1"
#define BH_EXT_HOST_TRANSPORT "bh.host.transport/1"

typedef uint64_t bh_session; /* 0 means none; includes a generation */

enum {
  /* Clients may skip or repeat initialize. If they skip it, the session has the oldest revision and
   * no capabilities. Each initialize starts a new session. */
  BH_PEER_HANDSHAKE_OPTIONAL = 1,
  /* The client accepts only answers. The host sends no BH_OUT_EVENT or BH_OUT_ASK, and declares no
   * client capabilities to servers. */
  BH_PEER_ANSWERS_ONLY = 2
};

/* Identity of the peer as known to the transport. Copied by the host. */
typedef struct bh_peer {
  uint32_t size;
  uint32_t flags;      /* BH_PEER_...; unknown bits are ignored */
  bh_str transport;    /* "http", "stdio", "vsock" ... */
  bh_str address;      /* "127.0.0.1:4711", "cid:3", "" */
  bh_str principal;    /* authenticated identity; empty if there is none */
  bh_str process_name; /* as claimed by the peer; only for display */
  /* The largest message that can be sent to this peer, in bytes; 0 if there is no limit. Lists are
   * paged to fit; the transport must reject other messages that are larger. */
  uint64_t max_message_bytes;
} bh_peer;

enum {
  BH_INCOMING_HEADERS = 1 /* flag: the wire has headers, and `headers` contains all MCP headers */
};

/* A message from a client. All data is borrowed until deliver_message() returns. */
typedef struct bh_incoming {
  uint32_t size;
  uint32_t flags;     /* BH_INCOMING_...; unknown bits are ignored */
  bh_session session; /* 0 for a sessionless message */
  uint64_t stream;
  bh_str message;
  /* MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Param-*, including duplicates, in order of
   * arrival, not decoded. Must not contain other headers, in particular no credentials and no
   * session id. Limits: see bh_header. */
  const bh_header *headers;
  uint32_t header_count;
  uint32_t reserved; /* 0 */
  /* The client. Must not be NULL for a sessionless message; BH_PEER_HANDSHAKE_OPTIONAL is ignored.
   * If the message has a session, this member is NULL or the session's peer, whose address may have
   * changed. */
  const bh_peer *peer;
} bh_incoming;

enum {
  BH_DELIVERED_NOTHING = 0, /* accepted; there will be no answer (notification, response) */
  BH_DELIVERED_ANSWER = 1   /* exactly one BH_OUT_ANSWER is sent on this stream, possibly inside
                             * deliver() */
};
enum {
  BH_DELIVERED_INITIALIZE = 1, /* flag: an accepted initialize */
  BH_DELIVERED_REFUSED =
      2,                 /* flag: not allowed in this session; the host answers it with an error */
  BH_DELIVERED_READY = 4 /* flag: the client has sent notifications/initialized, with this
                          * message or earlier */
};

typedef struct bh_delivery {
  uint32_t size;
  uint32_t kind;  /* BH_DELIVERED_... */
  uint32_t flags; /* ignore unknown bits */
  uint32_t reserved;
} bh_delivery;

enum {
  BH_OUT_ANSWER = 1, /* the answer to the message delivered on `stream` (a response, or an array
                      * of responses to a batch); ends the stream */
  BH_OUT_EVENT = 2,  /* a notification */
  BH_OUT_ASK = 3     /* a server-initiated request to this client */
};

/* A message for the client, in consecutive parts. Borrowed. */
typedef struct bh_outgoing {
  uint32_t size;
  uint32_t kind;      /* BH_OUT_... */
  bh_session session; /* 0 for a sessionless message; never with BH_OUT_ASK */
  uint64_t stream;
  uint32_t http_status; /* hint for HTTP: 0 or 200 for in-band answers, else 400, 404 ... */
  uint32_t part_count;  /* 0 (only with BH_OUT_ANSWER) if the client cancelled the request, which
                         * has no answer: release the stream and send nothing */
  const bh_str *parts;
} bh_outgoing;

typedef struct bh_transport {
  uint32_t size;
  uint32_t reserved;

  /* Starts accepting clients. Called once, after start. [control] */
  bh_status (*listen)(void *self, bh_error *error);

  /* Stops accepting clients. Open sessions remain. [control] */
  void (*stop_accepting)(void *self);

  /* Sends or queues a message, within limits. Returns BH_STALE if the session or stream has ended;
   * the message is dropped. Returns BH_E_LIMIT if the client reads too slowly. The transport then
   * ends the session or, for a sessionless message, its stream (with stream_gone(), unless this was
   * the answer). May be called inside deliver(). If session_close() or stream_gone() is called
   * inside send(), it takes effect at the end of the event loop iteration. [io] */
  bh_status (*send)(void *self, const bh_outgoing *message);

  /* Reports that the host has ended the session. The transport must notify the client and release
   * the session. [io] */
  void (*session_ended)(void *self, bh_session session, bh_str reason);

  /* Returns the address for clients ("http://127.0.0.1:8808/mcp", "stdio"), valid until stop. Empty
   * if the address must not be shown. [control] */
  bh_str (*endpoint)(void *self);
} bh_transport;

enum {
  BH_SESSION_GONE =
      0, /* the client has disconnected or ended the session; in-flight requests are cancelled */
  BH_SESSION_INPUT_ENDED = 1, /* no more input; in-flight requests continue */
  BH_SESSION_EVICTED = 2      /* like BH_SESSION_GONE, but evicted for another session:
                               * bh_host_resume.reopen() can restore it for at least
                               * session_idle_ms */
};

typedef struct bh_host_transport {
  uint32_t size;
  uint32_t reserved;

  const bh_limits *limits;

  /* Opens a session. Returns BH_E_LIMIT if limits->sessions sessions are open. [io] */
  bh_status (*session_open)(void *ctx, const bh_peer *peer, bh_session *out, bh_error *error);

  /* Delivers one complete message in a session, without headers and peer; see deliver_message().
   * The message is borrowed until this returns. Returns BH_OK and sets *out for any content: a
   * malformed message is answered with an error. Returns BH_STALE if the session does not exist.
   * Never returns BH_WOULD_BLOCK. [io] */
  bh_status (*deliver)(void *ctx, bh_session session, uint64_t stream, bh_str message,
                       bh_delivery *out);

  /* Reports that `stream` has ended, so its answer would be dropped. If the stream belongs to a
   * session (revisions up to 2025-11-25), this does *not* cancel the request. If the message is
   * sessionless, this cancels it, and the host sends no more messages on the stream. [io] */
  void (*stream_gone)(void *ctx, bh_session session, uint64_t stream);

  /* Closes a session. `how` is one of BH_SESSION_... . After BH_SESSION_GONE and
   * BH_SESSION_EVICTED, the handle is stale. [io] */
  void (*session_close)(void *ctx, bh_session session, uint32_t how);

  /* Returns BH_OK if `revision` (from an MCP-Protocol-Version header) can be used in this session,
   * else BH_E_INVALID. [io] */
  bh_status (*check_revision)(void *ctx, bh_session session, bh_str revision);

  /* Reports that no more clients can connect (for example, stdin has ended). The host stops when
   * all transports have reported this and their answers have been sent. [io] */
  void (*finished)(void *ctx);

  /* Sets the process name for subsequent messages, in a session with messages from several
   * processes. The default is the peer's process name. Copied; only for display and attribution.
   * [io] */
  void (*set_process_name)(void *ctx, bh_session session, bh_str name);

  /* Since minor 2. Delivers one complete message with its headers; see bh_incoming. The message is
   * borrowed until this returns. The answer may be sent inside. BH_OK: *out is set for any content;
   * a malformed message is answered with an error. A
   *   sessionless stream is open from now until its BH_OUT_ANSWER or stream_gone().
   *   BH_DELIVERED_NOTHING does not open it. session_ended() is never called for a sessionless
   *   stream: when the host stops, it answers each stream with an error.
   * BH_STALE: the session does not exist. BH_E_SESSION_LOST: the message is sessionless but begins
   * a session (initialize). Open a session
   *   and deliver the message in it. The host has not answered or recorded it.
   * BH_E_LIMIT: the message is sessionless, and all transports together already have
   *   limits->sessions open streams.
   * BH_E_UNAVAILABLE: the message is sessionless, and the host is stopping. BH_E_UNSUPPORTED: the
   * message is sessionless, and this host accepts none (a pipe); or the
   *   caller is not a transport.
   * BH_E_INVALID: the struct is invalid: no peer or not the session's peer, a stream that is
   * already
   *   open, or headers that bh_header does not allow. The host logs the reason, and the message is
   *   not answered. [io] */
  bh_status (*deliver_message)(void *ctx, const bh_incoming *message, bh_delivery *out);
} bh_host_transport;

#ifdef __cplusplus
}
#endif

#endif
