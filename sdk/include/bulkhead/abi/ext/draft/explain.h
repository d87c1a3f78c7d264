/* Draft: explains policy decisions to rule authors. No call is made, and no budget is changed.
 * Draft ids may change between minor versions.
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

  /* Explains a decision. `call` is a JSON object with these members of bh_policy_request: server,
   * name, method (default "tools/call"), arguments, meta, argument, context, extra, definition
   * (JSON values), transport, peer, principal, process_name (strings), session, session_calls,
   * session_age_s (numbers), pinned (boolean). An optional member result (a JSON object) requests
   * an explanation of the decision about this result.
   *
   * *out is a JSON object: {"request": ANSWER}, and with a result also "response": ANSWER. ANSWER:
   *   {"decision": "allow", "ask", "block" or "rewrite", "rule": ID, "reason": TEXT,
   *    "warned": BOOLEAN, "rewritten": the new arguments or result,
   *    "rules": [{"rule": ID, "place": FILE:LINE, "decision": ..., "found": TEXT}, ...]}
   * "rules" are the evaluated rules in order. If the call is invalid, returns BH_E_INVALID with the
   * reason. Available after configure. [control] */
  bh_status (*explain)(void *self, bh_str call, bh_buf *out, bh_error *error);
} bh_explain;

#ifdef __cplusplus
}
#endif

#endif
