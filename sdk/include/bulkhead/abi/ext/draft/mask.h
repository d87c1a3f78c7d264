/* Draft: the gateway's own credentials, found in texts by those who must not have them. Draft ids
 * may change between minors. Offered to telemetry plugins.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_MASK_H
#define BULKHEAD_ABI_EXT_DRAFT_MASK_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_MASK "bh.host.mask/1"

typedef struct bh_host_mask {
  uint32_t size;
  uint32_t reserved;

  /* Looks for the values that the profile gives servers as headers, variables, arguments and in
   * URLs, at least 8 bytes each, also behind escapes of JSON and of URLs. 0: there are none, and
   * *out is untouched. Else how many, and *out is the text with "***" in place of each, or empty
   * where there was no memory to look; its ownership goes to the caller. [any] */
  uint64_t (*mask)(void *ctx, bh_str text, bh_buf *out);
} bh_host_mask;

#ifdef __cplusplus
}
#endif

#endif
