/* Draft: masks the gateway's credentials in a text, without revealing them to the plugin.
 * Provided to telemetry plugins.
 *
 * Since 1.0. Draft. */
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

  /* Masks the credentials of at least 8 bytes that the profile passes to servers in headers,
   * variables, arguments and URLs: values whose names or formats are typical of credentials. Also
   * finds values with JSON or URL escapes. Returns the number of masked values. If it is 0, *out
   * is unchanged. Otherwise *out is the text with "***" in place of each value. If the search would
   * take too long, *out is "***" and the number is 1; if memory is exhausted, *out is empty. The
   * caller owns *out. [any] */
  uint64_t (*mask)(void *ctx, bh_str text, bh_buf *out);
} bh_host_mask;

#ifdef __cplusplus
}
#endif

#endif
