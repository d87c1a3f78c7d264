/* Draft: sessions that outlive the gateway's process. What the host must know of a client to go on
 * with it (revision, capabilities, principal) travels sealed in the session id that the client
 * holds, so a process that is started again after a crash can take the session up where its client
 * is: the client notices nothing but an error on the calls that were under way. Draft ids may
 * change between minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_RESUME_H
#define BULKHEAD_ABI_EXT_DRAFT_RESUME_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_RESUME "bh.host.resume/1"

typedef struct bh_host_resume {
  uint32_t size;
  uint32_t reserved;

  /* The sealed state of an initialized session: at most 160 characters of [A-Za-z0-9_-], valid for
   * this `id` (the transport's own, random) only. BH_E_UNSUPPORTED: this host keeps no sessions
   * beyond its process. [io] */
  bh_status (*seal)(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error);

  /* Opens a session from what seal() gave in an earlier process. BH_STALE: it is not from one, has
   * been forged, is another principal's, or would have expired meanwhile. [io] */
  bh_status (*reopen)(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                      bh_error *error);
} bh_host_resume;

#ifdef __cplusplus
}
#endif

#endif
