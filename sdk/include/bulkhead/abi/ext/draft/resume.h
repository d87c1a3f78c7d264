/* Draft: session resumption after a restart of the process. There are two forms. In the first,
 * the state that the host needs for a client (revision, capabilities, principal) is sealed into
 * the client's session ID. A restarted process can restore the session from it; only in-flight
 * calls fail. The second form is for a client that cannot reconnect, because it uses the
 * process's standard input and output. Its session is *carried*: the host stores the session and
 * its unanswered requests.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_RESUME_H
#define BULKHEAD_ABI_EXT_DRAFT_RESUME_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_RESUME "bh.host.resume/1"

typedef struct bh_carried {
  uint32_t size;
  uint32_t restored;    /* 1: restored without a handshake; 0: new */
  uint64_t last_stream; /* stream numbers of this process must be greater */
  uint64_t note;        /* last value that was passed to note(), or 0 */
  bh_str unread;        /* input from keep() that was not processed; valid until the next keep() */
} bh_carried;

typedef struct bh_host_resume {
  uint32_t size;
  uint32_t reserved;

  /* Returns the sealed state of an initialized session: at most 160 characters of [A-Za-z0-9_-].
   * It is valid for this transport and for `id` only. The transport must choose `id` at random.
   * Returns BH_STALE if the session does not exist or is not initialized. [io] */
  bh_status (*seal)(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error);

  /* Restores a session from a result of seal(). The result must be from an earlier process or,
   * if the session was evicted (BH_SESSION_EVICTED) and is not open, from this process. Returns
   * BH_STALE if the session was closed for another reason, or if the state is forged, has
   * expired, or belongs to another principal or transport. Returns BH_E_LIMIT and
   * BH_E_UNAVAILABLE as session_open does. [io] */
  bh_status (*reopen)(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                      bh_error *error);

  /* Opens the session of the client on standard input and output, either as a new session or
   * restored from an earlier process. Called instead of session_open. For each request that an
   * earlier process left unsettled, bh_transport.send is called with an error on the request's
   * stream, after this function has returned. Only one session can be carried at a time. Returns
   * BH_E_UNSUPPORTED if this host does not support session resumption, or if another session is
   * carried, and BH_E_LIMIT and BH_E_UNAVAILABLE as session_open does. [io] */
  bh_status (*carry)(void *ctx, const bh_peer *peer, bh_session *out, bh_carried *before,
                     bh_error *error);

  /* Stores 64 bits for the next process of this transport, such as a position in its stream. The
   * cost is one store instruction. [io] */
  void (*note)(void *ctx, bh_session session, uint64_t note);

  /* Reports that the response on this stream of a carried session was sent, or that there will
   * be none. Otherwise, the next process responds to the request with an error. Each stream has
   * one message. [io] */
  void (*settled)(void *ctx, bh_session session, uint64_t stream);

  /* Stores input of a carried client that was read but not delivered, for the next process. If
   * `more` is 1, the input is appended to the stored input; if `more` is 0, the input replaces it.
   * The input is copied. The limit for the stored input is 256 KiB; if it would be exceeded, all
   * stored input is removed, and BH_E_LIMIT is returned. [io] */
  bh_status (*keep)(void *ctx, bh_session session, bh_str bytes, int32_t more);

  /* Reports that the first n bytes of the stored input are about to be delivered. The host
   * removes them when it processes them, so that a message that crashes this process is not
   * delivered to the next one. [io] */
  void (*taken)(void *ctx, bh_session session, uint64_t n);
} bh_host_resume;

#ifdef __cplusplus
}
#endif

#endif
