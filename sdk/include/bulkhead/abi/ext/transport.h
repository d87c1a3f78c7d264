/* Transport: lets clients in and carries message bytes. It reports who the peer is; it never
 * decides policy, never composes MCP answers, and never looks inside a message.
 *
 * A *session* is one client's conversation. A *stream* is the transport's own number for the place
 * where the answer to a message is awaited (an HTTP request, a frame's stream id); 0 is the
 * session's general stream (stdio has only that one).
 *
 * A *sessionless* message stands alone: its session is 0, and its stream is a number of the
 * transport's own that is unique among its open sessionless streams. The host sends what belongs to
 * it with session 0 and that stream, and ends the stream with the answer. MCP's revision 2026-07-28
 * has only such messages.
 *
 * Two ends. bh_transport is what the plugin implements, bh_host_transport what it calls.
 */
#ifndef BULKHEAD_ABI_EXT_TRANSPORT_H
#define BULKHEAD_ABI_EXT_TRANSPORT_H

#include "../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_TRANSPORT "bh.transport/1"
#define BH_EXT_HOST_TRANSPORT "bh.host.transport/1"

typedef uint64_t bh_session; /* 0: none; carries a generation */

enum {
  /* Clients of this kind may skip initialize or repeat it: without one the session is one of the
   * oldest revision and without capabilities, and each one starts it anew. */
  BH_PEER_HANDSHAKE_OPTIONAL = 1,
  /* Takes answers only: the host sends it no BH_OUT_EVENT and no BH_OUT_ASK, and declares none of
   * its capabilities to servers. */
  BH_PEER_ANSWERS_ONLY = 2
};

/* Who is at the other end, as far as the transport knows it. Copied by the host. */
typedef struct bh_peer {
  uint32_t size;
  uint32_t flags;      /* BH_PEER_...; unknown bits are ignored */
  bh_str transport;    /* "http", "stdio", "vsock" ... */
  bh_str address;      /* "127.0.0.1:4711", "cid:3", "" */
  bh_str principal;    /* authenticated identity; empty: none */
  bh_str process_name; /* as the peer states it; display only */
  /* The largest message that the transport can carry to this peer, in bytes; 0: no bound of its
   * own. Lists come in pages that fit; any other message that is larger is the transport's to
   * refuse. */
  uint64_t max_message_bytes;
} bh_peer;

enum {
  BH_INCOMING_HEADERS = 1 /* flag: messages have headers on this wire, and `headers` is complete: a
                             header of MCP that is not in it was not sent */
};

/* A message of a client. Everything in it is borrowed until deliver_message() returns. */
typedef struct bh_incoming {
  uint32_t size;
  uint32_t flags;     /* BH_INCOMING_...; unknown bits are ignored */
  bh_session session; /* 0: the message is sessionless */
  uint64_t stream;
  bh_str message;
  /* MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Param-*, each as often as it was sent, in
   * the order of arrival; undecoded. No other header, and never one that holds a credential or
   * names a session. Bounds: see bh_header. */
  const bh_header *headers;
  uint32_t header_count;
  uint32_t reserved; /* 0 */
  /* The client. Of a sessionless message never NULL; BH_PEER_HANDSHAKE_OPTIONAL has no meaning
   * there. With a session: NULL, or the session's peer; the address may have changed. */
  const bh_peer *peer;
} bh_incoming;

enum {
  BH_DELIVERED_NOTHING = 0, /* taken; no answer will come for it (notification, response) */
  BH_DELIVERED_ANSWER = 1   /* exactly one BH_OUT_ANSWER comes on this stream, maybe it came already
                               inside deliver() */
};
enum {
  BH_DELIVERED_INITIALIZE = 1, /* flag: an initialize that was accepted: the session goes on */
  BH_DELIVERED_REFUSED = 2,    /* flag: not a message that this session may send; answered so */
  BH_DELIVERED_READY = 4       /* flag: the client has sent notifications/initialized, with this
                                  message or before */
};

typedef struct bh_delivery {
  uint32_t size;
  uint32_t kind;  /* BH_DELIVERED_... */
  uint32_t flags; /* ignore unknown bits */
  uint32_t reserved;
} bh_delivery;

enum {
  BH_OUT_ANSWER = 1, /* the one answer to what was delivered on `stream` (a response, or an array of
                        them for a batch); ends that stream */
  BH_OUT_EVENT = 2,  /* a notification */
  BH_OUT_ASK = 3     /* a request of the server to this client */
};

/* A message for the client, in parts that follow each other without gap. Borrowed. */
typedef struct bh_outgoing {
  uint32_t size;
  uint32_t kind;      /* BH_OUT_... */
  bh_session session; /* 0: of a sessionless message; never with BH_OUT_ASK */
  uint64_t stream;
  uint32_t http_status; /* hint where there is such a thing: 0 or 200 in-band, else 400, 404 ... */
  uint32_t part_count; /* 0 (BH_OUT_ANSWER only): the request has ended without an answer, since the
                          client has cancelled it; release the stream and send no message */
  const bh_str *parts;
} bh_outgoing;

typedef struct bh_transport {
  uint32_t size;
  uint32_t reserved;

  /* Start accepting clients; called once, after start. [control] */
  bh_status (*listen)(void *self, bh_error *error);

  /* Accept no further client; open sessions go on. [control] */
  void (*stop_accepting)(void *self);

  /* Sends or queues (bounded). BH_STALE: that session or stream has gone, the message is dropped.
   * BH_E_LIMIT: the client reads too slowly; the transport ends the session by itself (of a
   * sessionless message its stream, with stream_gone() unless this was the answer). May be
   * called from inside deliver(). A session_close() or stream_gone() from inside takes effect at
   * the end of the turn. [io] */
  bh_status (*send)(void *self, const bh_outgoing *message);

  /* The host has ended the session: tell the client and forget it. [io] */
  void (*session_ended)(void *self, bh_session session, bh_str reason);

  /* Where clients can reach it ("http://127.0.0.1:8808/mcp", "stdio"); lives until stop. [control]
   */
  bh_str (*endpoint)(void *self);
} bh_transport;

enum {
  BH_SESSION_GONE = 0, /* the client has gone or ended it: everything under way is cancelled */
  BH_SESSION_INPUT_ENDED = 1, /* nothing more will be delivered; what is under way goes on */
  BH_SESSION_EVICTED = 2 /* like BH_SESSION_GONE, but the session was ended to make room for another
                            one: bh_host_resume.reopen() takes it up again, for session_idle_ms at
                            least */
};

typedef struct bh_host_transport {
  uint32_t size;
  uint32_t reserved;

  const bh_limits *limits;

  /* Opens a session. BH_E_LIMIT when limits->sessions are open. [io] */
  bh_status (*session_open)(void *ctx, const bh_peer *peer, bh_session *out, bh_error *error);

  /* deliver_message() of a message with a session, without headers and peer. Hands one whole
   * message over (borrowed; the host has taken what it needs when this returns). BH_OK with *out
   * filled, whatever the message holds: a malformed one is answered like any other. BH_STALE: no
   * such session. BH_WOULD_BLOCK: never. [io] */
  bh_status (*deliver)(void *ctx, bh_session session, uint64_t stream, bh_str message,
                       bh_delivery *out);

  /* The place where `stream` was awaited is gone; its answer would be dropped. With a session
   * (revisions up to 2025-11-25) that is *not* a cancellation. Of a sessionless message it is one:
   * what is under way for it is cancelled, and nothing more is sent on that stream. [io] */
  void (*stream_gone)(void *ctx, bh_session session, uint64_t stream);

  /* how: BH_SESSION_... . After BH_SESSION_GONE and BH_SESSION_EVICTED the handle is stale. [io] */
  void (*session_close)(void *ctx, bh_session session, uint32_t how);

  /* May `revision` (of an MCP-Protocol-Version header) be used on this session? BH_OK or
   * BH_E_INVALID. [io] */
  bh_status (*check_revision)(void *ctx, bh_session session, bh_str revision);

  /* No client can come any more (stdin has ended, say). The host ends when all transports have said
   * so and their answers are out. [io] */
  void (*finished)(void *ctx);

  /* The process that what is delivered from now on comes from, where one session carries several;
   * until then it is the peer's. Copied; display and attribution only. [io] */
  void (*set_process_name)(void *ctx, bh_session session, bh_str name);

  /* Since minor 2. Hands one whole message over, with its headers; see bh_incoming. The host has
   * taken what it needs when this returns, and the answer may have come inside.
   * BH_OK: *out is filled, whatever the message holds: a malformed one is answered like any other.
   *   A sessionless stream is open from here to its BH_OUT_ANSWER or stream_gone(), and is not
   *   opened by BH_DELIVERED_NOTHING. session_ended() is never called for one: when the host stops,
   *   it answers each with an error.
   * BH_STALE: no such session.
   * BH_E_SESSION_LOST: sessionless, but the message is one that begins a session (initialize): open
   *   one and deliver the message there. The host has not answered or recorded it.
   * BH_E_LIMIT: sessionless, and limits->sessions of all transports' streams are open already.
   * BH_E_UNAVAILABLE: sessionless, and the host is stopping.
   * BH_E_UNSUPPORTED: sessionless, and this host takes none (a pipe); or the caller is not a
   *   transport.
   * BH_E_INVALID: the struct is wrong: no peer or another one than the session's, a
   *   stream that is open, or headers that bh_header does not allow. The host logs what is wrong,
   *   and the message is not answered. [io] */
  bh_status (*deliver_message)(void *ctx, const bh_incoming *message, bh_delivery *out);
} bh_host_transport;

#ifdef __cplusplus
}
#endif

#endif
