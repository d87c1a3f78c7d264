/* Draft: explains policy decisions to authors of rules. The call is not executed and does not
 * count against a budget.
 *
 * Since 1.0. Draft. */
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

  /* Explains the decision about a call. `call` is a JSON object with these members, most of which
   * correspond to bh_policy_request: server, name, method (default "tools/call"), arguments, meta,
   * argument, context, extra, definition (JSON objects), transport, peer, principal, process_name,
   * claimed_name (strings), session, session_calls, session_age_s (numbers), pinned (boolean). If
   * it also has the member `result` (a JSON object), the decision about this result is explained
   * too. For a message other than a call, `on` is "mcp.input_request", "mcp.input_response" or
   * "mcp.notification", and to_server (boolean) is true if it is sent to the server.
   *
   * *out is a JSON object: {"request": DECISION} or, if there is a result, also
   * "response": DECISION. DECISION:
   *   {"decision": "allow", "ask", "block" or "rewrite", "rule": ID, "reason": TEXT,
   *    "warned": BOOLEAN, "rewritten": the new arguments or result,
   *    "rules": [{"rule": ID, "place": FILE:LINE, "decision": ..., "found": TEXT}, ...]}
   * "rules" has the evaluated rules in order. Returns BH_E_INVALID with the reason if the call is
   * invalid. May be called after configure. [control] */
  bh_status (*explain)(void *self, bh_str call, bh_buf *out, bh_error *error);
} bh_explain;

#ifdef __cplusplus
}
#endif

#endif
