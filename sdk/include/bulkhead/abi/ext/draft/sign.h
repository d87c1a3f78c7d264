/* Draft: the host signs statements for a plugin. The plugin's process does not have the key: if
 * there are compartments, the supervisor signs. Provided to telemetry plugins.
 *
 * The signed text is "bulkhead.audit/1\n" INSTANCE "\n" UNIX_S "\n" STATEMENT. INSTANCE is the
 * calling plugin instance. UNIX_S is the signer's time in seconds, in decimal. For each
 * instance, the host keeps a list of statements of the form "chain C seq N head HASH" (C is 1 to
 * 64, HASH is 64 hexadecimal digits). N must be greater than in the chain's last statement,
 * unless the statement repeats N and HASH of the last one.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_SIGN_H
#define BULKHEAD_ABI_EXT_DRAFT_SIGN_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_SIGN "bh.host.sign/1"

enum { BH_SIGN_KEY_BYTES = 32, BH_SIGN_BYTES = 64, BH_SIGN_MOST_BYTES = 512 };

typedef struct bh_signature {
  uint32_t size;
  uint32_t reserved;
  uint64_t unix_s;        /* the signer's time */
  uint8_t public_key[32]; /* Ed25519 */
  uint8_t signature[64];
} bh_signature;

typedef struct bh_host_sign {
  uint32_t size;
  uint32_t reserved;

  /* Signs a statement and sets *out. The statement must be printable ASCII of at most
   * BH_SIGN_MOST_BYTES. May block for several seconds, so it must not be called on the reactor
   * thread. Returns BH_E_UNAVAILABLE if there was no response, and BH_E_LIMIT if signatures are
   * requested too often or the host is busy (retry later in both cases). Returns BH_E_DENIED if a
   * later position, or this position with another HASH, has already been signed. [any] */
  bh_status (*sign)(void *ctx, bh_str statement, bh_signature *out, bh_error *error);
} bh_host_sign;

#ifdef __cplusplus
}
#endif

#endif
