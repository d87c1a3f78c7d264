/* Draft: a policy that can say what it would decide, and why. For people who write its rules; no
 * call is made and nothing is counted. Draft ids may change between minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_EXPLAIN_H
#define BULKHEAD_ABI_EXT_DRAFT_EXPLAIN_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_EXPLAIN "bh.explain/1"

typedef struct bh_explain {
  uint32_t size;
  uint32_t reserved;

  /* `call`: a JSON object with what bh_policy_request has, by these names: server, name, method
   * ("tools/call" if absent), arguments, meta, argument, context, extra, definition (JSON
   * values), transport, peer, principal, process_name (texts), session, session_calls,
   * session_age_s (numbers), pinned (boolean); and result (a JSON object), to see what becomes of
   * it, too.
   *
   * *out: a JSON object, {"request": ANSWER}, with "response": ANSWER if there was a result:
   *   {"decision": "allow", "ask", "block" or "rewrite", "rule": ID, "reason": TEXT,
   *    "warned": BOOLEAN, "rewritten": the new arguments or result,
   *    "rules": [{"rule": ID, "place": FILE:LINE, "decision": ..., "found": TEXT}, ...]}
   * "rules" are those that were looked at, in order. BH_E_INVALID: the call is not what it should
   * be, and the text says how. Works from configure on. [control] */
  bh_status (*explain)(void *self, bh_str call, bh_buf *out, bh_error *error);
} bh_explain;

#ifdef __cplusplus
}
#endif

#endif
