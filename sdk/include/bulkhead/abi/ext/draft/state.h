/* Draft: moves a plugin's state from an instance to the instance that replaces it (a hot swap, or a
 * reload that starts a new process). Without it, the new instance begins without state. Offered by
 * policies; a host uses it only if they run in a compartment of their own and both instances offer
 * it.
 *
 * The host exports the state between two calls, imports it into the new instance, and then sends
 * all further calls to the new instance. Until then, calls are queued, for at most
 * BH_STATE_TIME_MS. If one of the functions fails, or if they take longer, the new instance is
 * discarded, and the former one continues as if export_state had not been called.
 *
 * Requests for which the former instance has returned BH_PENDING, and which it has not completed
 * when the state is exported, are sent to the new instance again (except those of filter()). The
 * exported state must therefore not contain their effects. Request numbers (`exchange`) and
 * sessions are the same for both instances, so the state may refer to them.
 *
 * The host keeps the state in memory only. It must not contain credentials.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_STATE_H
#define BULKHEAD_ABI_EXT_DRAFT_STATE_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_STATE "bh.state/1"

enum {
  BH_STATE_BYTES = 1048576,    /* limit for `bytes` */
  BH_STATE_SCHEMA_BYTES = 128, /* limit for `schema` */
  BH_STATE_TIME_MS = 50        /* limit for export and import together */
};

typedef struct bh_state_blob {
  uint32_t size;
  uint32_t version; /* version of the format */
  bh_str schema;    /* ID of the format, such as "com.example.quota"; not empty */
  bh_str bytes;
  const int32_t *fds; /* reserved for file descriptors; NULL */
  uint32_t fd_count;  /* reserved; 0. A host or plugin rejects other values */
  uint32_t reserved;
} bh_state_blob;

typedef struct bh_state {
  uint32_t size;
  uint32_t reserved;

  /* Sets *out to the state. The strings must remain valid until the next call of the same instance.
   * An error, or a state that exceeds a limit, rejects the replacement; the error's text states
   * the reason. May be called several times. [io] */
  bh_status (*export_state)(void *self, bh_state_blob *out, bh_error *error);

  /* Replaces the state of an instance that has been started and has received no request. Called
   * again if the host repeats the export. `blob` is borrowed until the function returns. It comes
   * from another version of the plugin or from a process that may be compromised: check every
   * length and value, and return BH_E_INVALID if it is malformed or has an unknown schema or
   * version. After an error, the instance is discarded. [io] */
  bh_status (*import_state)(void *self, const bh_state_blob *blob, bh_error *error);
} bh_state;

#ifdef __cplusplus
}
#endif

#endif
