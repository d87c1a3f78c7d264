/* Draft: explanations of policy decisions, for authors of rules. No call is made and no budget is
 * changed. Draft ids may change between minors.
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

  /* Explains a decision. `call`: a JSON object with the members of bh_policy_request under these
   * names: server, name, method
   * ("tools/call" if absent), arguments, meta, argument, context, extra, definition (JSON
   * values), transport, peer, principal, process_name (texts), session, session_calls,
   * session_age_s (numbers), pinned (boolean); and optionally result (a JSON object), to
   * explain the decision about a result.
   *
   * *out: a JSON object, {"request": ANSWER}, with "response": ANSWER if a result was given:
   *   {"decision": "allow", "ask", "block" or "rewrite", "rule": ID, "reason": TEXT,
   *    "warned": BOOLEAN, "rewritten": the new arguments or result,
   *    "rules": [{"rule": ID, "place": FILE:LINE, "decision": ..., "found": TEXT}, ...]}
   * "rules" are the evaluated rules, in order. BH_E_INVALID: the call is invalid, with the reason.
   * Available after configure. [control] */
  bh_status (*explain)(void *self, bh_str call, bh_buf *out, bh_error *error);
} bh_explain;

#ifdef __cplusplus
}
#endif

#endif
