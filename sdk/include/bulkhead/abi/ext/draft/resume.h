/* Draft: sessions that outlive the gateway's process, in two ways. What the host must know of a
 * client to go on with it (revision, capabilities, principal) travels sealed in the session id that
 * the client holds, so a process that is started again after a crash can take the session up where
 * its client is: the client notices nothing but an error on the calls that were under way. And the
 * one client that comes with the process (standard input and output) is *carried* over: the host
 * remembers its session and which of its requests wait for an answer. Draft ids may change between
 * minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_RESUME_H
#define BULKHEAD_ABI_EXT_DRAFT_RESUME_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_RESUME "bh.host.resume/1"

/* What carry() found. */
typedef struct bh_carried {
  uint32_t size;
  uint32_t restored;    /* 1: the session goes on, no handshake is awaited; 0: it is a new one */
  uint64_t last_stream; /* streams of this process are to be numbered beyond it */
  uint64_t note;        /* what note() was given last; 0: nothing */
  bh_str unread;        /* what keep() was given and nobody has taken; lives until keep() */
} bh_carried;

typedef struct bh_host_resume {
  uint32_t size;
  uint32_t reserved;

  /* The sealed state of an initialized session: at most 160 characters of [A-Za-z0-9_-], valid for
   * this transport and this `id` (its own, random) only. BH_E_UNSUPPORTED: this host keeps no
   * sessions beyond its process. [io] */
  bh_status (*seal)(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error);

  /* Opens a session from what seal() gave in an earlier process, or in this one if the session was
   * evicted (BH_SESSION_EVICTED) and is not open. BH_STALE: the session has ended otherwise, or the
   * text has been forged, is another principal's or another transport's, or has expired.
   * BH_E_LIMIT: as of session_open. [io] */
  bh_status (*reopen)(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                      bh_error *error);

  /* Opens the session of the one client that comes with the process, whether an earlier process had
   * it or not; instead of session_open. Requests that an earlier process has taken and not settled
   * get an error through bh_transport.send, in a later turn and on their streams of then. One
   * session at a time. BH_E_UNSUPPORTED: this host keeps no sessions beyond its process, or has
   * another one that is carried. [io] */
  bh_status (*carry)(void *ctx, const bh_peer *peer, bh_session *out, bh_carried *before,
                     bh_error *error);

  /* 64 bits of the transport's own, kept for its next process: where it stands in its wires, say.
   * Costs a store. [io] */
  void (*note)(void *ctx, bh_session session, uint64_t note);

  /* The answer to what was delivered on this stream of a carried session is out, or none will come.
   * Until then the next process answers it with an error. A stream carries one message. [io] */
  void (*settled)(void *ctx, bh_session session, uint64_t stream);

  /* Bytes of a carried client that were read and not delivered yet, for the next process: behind
   * those that are kept (more: 1), or instead of them (0). Copied, at most 256 KiB. BH_E_LIMIT: it
   * is more, and nothing is kept. [io] */
  bh_status (*keep)(void *ctx, bh_session session, bh_str bytes, int32_t more);

  /* The first n of them are about to be delivered. The host forgets them as soon as it has looked
   * what they are, so that what ends this process does not end the next one, too. [io] */
  void (*taken)(void *ctx, bh_session session, uint64_t n);
} bh_host_resume;

#ifdef __cplusplus
}
#endif

#endif
