/* Draft: session resumption across processes, in two forms. First, the state that the host needs
 * of a client (revision, capabilities, principal) is sealed into the session id that the client
 * holds. A process that is restarted after a crash can therefore restore the session; the client
 * gets errors only for its in-flight calls. Second, the session of the one client that belongs
 * to the process (standard input and output) is *carried* over: the host stores the session and
 * its unanswered requests. Draft ids may change between minor versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_RESUME_H
#define BULKHEAD_ABI_EXT_DRAFT_RESUME_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_RESUME "bh.host.resume/1"

/* Result of carry(). */
typedef struct bh_carried {
  uint32_t size;
  uint32_t restored; /* 1: the session was restored, without a handshake; 0: the session is new */
  uint64_t last_stream; /* stream numbers of this process must be larger */
  uint64_t note;        /* the last value of note(); 0 if there is none */
  bh_str unread;        /* input of keep() that was not consumed; valid until the next keep() */
} bh_carried;

typedef struct bh_host_resume {
  uint32_t size;
  uint32_t reserved;

  /* Returns the sealed state of an initialized session: at most 160 characters of [A-Za-z0-9_-],
   * valid only for this transport and this `id` (random, chosen by the transport). Returns
   * BH_E_UNSUPPORTED if this host does not support session resumption. [io] */
  bh_status (*seal)(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error);

  /* Restores a session from the result of seal() in an earlier process, or in this process if
   * the session was evicted (BH_SESSION_EVICTED) and is not open. Returns BH_STALE if the
   * session has ended for another reason, or if the text is forged, belongs to another principal
   * or transport, or has expired. BH_E_LIMIT is the same as in session_open. [io] */
  bh_status (*reopen)(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                      bh_error *error);

  /* Opens the session of the one client that belongs to the process, new or restored from an
   * earlier process; used instead of session_open. Requests that an earlier process received and
   * did not settle get an error through bh_transport.send, in a later turn and on their original
   * streams. Only one session can be carried at a time. Returns BH_E_UNSUPPORTED if this host
   * does not support session resumption, or if another session is carried. [io] */
  bh_status (*carry)(void *ctx, const bh_peer *peer, bh_session *out, bh_carried *before,
                     bh_error *error);

  /* Stores 64 bits of the transport for its next process, for example a position in its wire.
   * The cost is one store instruction. [io] */
  void (*note)(void *ctx, bh_session session, uint64_t note);

  /* Reports that the answer on this stream of a carried session was sent, or that there will be
   * none. Until then, the next process would answer the request with an error. A stream has one
   * message. [io] */
  void (*settled)(void *ctx, bh_session session, uint64_t stream);

  /* Stores input of a carried client that was read but not yet delivered, for the next process.
   * The input is appended to the stored input if `more` is 1, and replaces it if `more` is 0.
   * Copied, at most 256 KiB. Returns BH_E_LIMIT if the input is too large; nothing is stored.
   * [io] */
  bh_status (*keep)(void *ctx, bh_session session, bh_str bytes, int32_t more);

  /* Reports that the first n bytes of the stored input are about to be delivered. The host removes
   * them when it has processed them, so that a message that crashes this process does not crash the
   * next one. [io] */
  void (*taken)(void *ctx, bh_session session, uint64_t n);
} bh_host_resume;

#ifdef __cplusplus
}
#endif

#endif
