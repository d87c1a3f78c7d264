/* Draft: session resumption across processes, in two forms. First, the state that the host needs
 * for a client (revision, capabilities, principal) is sealed into the client's session id. A
 * process that restarts after a crash can therefore restore the session; the client gets errors
 * only for its in-flight calls. Second, if a client belongs to the process (standard input and
 * output), its session is *carried* over: the host stores the session and its unanswered requests.
 * Draft ids may change between minor versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_RESUME_H
#define BULKHEAD_ABI_EXT_DRAFT_RESUME_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_RESUME "bh.host.resume/1"

typedef struct bh_carried {
  uint32_t size;
  uint32_t restored;    /* 1 if restored without a handshake, 0 if new */
  uint64_t last_stream; /* stream numbers of this process must be larger */
  uint64_t note;        /* last value passed to note(); 0 if there is none */
  bh_str unread;        /* input from keep() that was not consumed; valid until the next keep() */
} bh_carried;

typedef struct bh_host_resume {
  uint32_t size;
  uint32_t reserved;

  /* Returns the sealed state of an initialized session: at most 160 characters of [A-Za-z0-9_-]. It
   * is valid only for this transport and for `id`, which the transport chooses at random. Returns
   * BH_E_UNSUPPORTED if this host does not support session resumption. [io] */
  bh_status (*seal)(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error);

  /* Restores a session from the result of seal(). The state must come from an earlier process, or
   * from this process if the session was evicted (BH_SESSION_EVICTED) and is not open. Returns
   * BH_STALE if the session has ended for another reason, or if the state is forged, has expired,
   * or belongs to another principal or transport. Returns BH_E_LIMIT as session_open does. [io] */
  bh_status (*reopen)(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                      bh_error *error);

  /* Opens the session of the client that belongs to the process, either as a new session or
   * restored from an earlier process. Used instead of session_open. If an earlier process left
   * requests unsettled, bh_transport.send is called with an error for each, in a later event loop
   * iteration and on the original stream. Only one session can be carried at a time. Returns
   * BH_E_UNSUPPORTED if this host does not support session resumption, or if another session is
   * carried. [io] */
  bh_status (*carry)(void *ctx, const bh_peer *peer, bh_session *out, bh_carried *before,
                     bh_error *error);

  /* Stores 64 bits for the transport's next process, for example a position in its stream. The cost
   * is one store instruction. [io] */
  void (*note)(void *ctx, bh_session session, uint64_t note);

  /* Reports that the answer on this stream of a carried session was sent, or that there will be no
   * answer. Without this report, the next process answers the request with an error. Each stream
   * has one message. [io] */
  void (*settled)(void *ctx, bh_session session, uint64_t stream);

  /* Stores input of a carried client that was read but not delivered, for the next process. If
   * `more` is 1, the input is appended to the stored input; if `more` is 0, it replaces the stored
   * input. Copied; at most 256 KiB. If the input is too large, returns BH_E_LIMIT and stores
   * nothing. [io] */
  bh_status (*keep)(void *ctx, bh_session session, bh_str bytes, int32_t more);

  /* Reports that the first n bytes of the stored input are about to be delivered. The host removes
   * them after processing them, so a message that crashes this process is not delivered to the next
   * process. [io] */
  void (*taken)(void *ctx, bh_session session, uint64_t n);
} bh_host_resume;

#ifdef __cplusplus
}
#endif

#endif
