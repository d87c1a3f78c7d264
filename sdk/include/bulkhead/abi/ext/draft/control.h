/* Draft: changes which upstream servers the gateway has, and looks at them and at what they offer.
 *
 * Powerful: whoever has this starts programs. get_ext returns it only to plugin instances whose
 * part of the profile says grants = ["control"]; NULL for all others. Draft ids may change between
 * minors.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_CONTROL_H
#define BULKHEAD_ABI_EXT_DRAFT_CONTROL_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_CONTROL "bh.host.control/1"

/* Called on the reactor thread, never from inside replace_servers; not any more once the caller's
 * stop() has returned. `report` is borrowed, one JSON object:
 *   {"added":N,"changed":N,"removed":N,"unchanged":N,"ready":N,
 *    "failed":[{"name":"x","reason":"..."}],     there, but not connected when the report was made
 *    "refused":[{"name":"x","reason":"..."}]}    definitions that were left out
 */
typedef void (*bh_control_done)(void *arg, bh_str report);

typedef struct bh_host_control {
  uint32_t size;
  uint32_t reserved;

  /* Replaces all servers that this instance has given before; those of the profile stay, and
   * their names are taken. `definitions` is a JSON array of at most 1000 objects: "name" and the
   * members that a server of the profile's mcpServers has (docs/profile.md), values taken as they
   * are: ${...} is not expanded. One member more: "source", a text of at most 64 bytes that
   * list_servers repeats.
   *
   * A definition that is equal to the one it replaces keeps its connections. Others are drained:
   * calls in flight there may finish for a moment (limits.drain_ms) and fail after it; new
   * ones take their place at once. A definition that is wrong in itself is left out and named in
   * the report.
   *
   * BH_PENDING: `done` will be called once, when old servers have ended and new ones have answered
   * or failed, at the latest after wait_ms. BH_E_INVALID: no array, or too long: nothing was
   * changed. BH_E_LIMIT: 16 earlier ones still wait for their `done`. BH_E_UNAVAILABLE: the gateway
   * is stopping. `error` never repeats a value of a definition. [io] */
  bh_status (*replace_servers)(void *ctx, bh_str definitions, uint64_t wait_ms,
                               bh_control_done done, void *arg, bh_error *error);

  /* A JSON array of every server, the profile's and the tools plugins' included, in order:
   *   {"name":"x","type":"stdio","url":"","enabled":true,"source":"profile","is_stdio":true,
   *    "state":"ready","reason":"","connected":true,"restarts":0,
   *    "tool_count":1,"resource_count":0,"prompt_count":0}
   * state: "connecting", "ready", "failed", "disabled". url without user, password, query and
   * fragment. source: as given; "profile" for those of the profile, "builtin" for tools plugins.
   * [io] */
  bh_status (*list_servers)(void *ctx, bh_buf *out, bh_error *error);

  /* A JSON array of the items of one kind (BH_LIST_... of tools.h) as `session`, one that this
   * instance has opened and initialised, sees them, in the order of its list:
   *   {"server":"x","name":"x__say","original_name":"say","timeout_ms":1000,"item":{...}}
   * `item` is what the server listed, byte for byte, with its own name or URI; name and
   * original_name are what the client calls it and what the server does: of resources the URIs, of
   * templates the URI templates. timeout_ms is there if the profile sets one for it. BH_STALE: no
   * such session. BH_E_UNAVAILABLE: it is not initialised. BH_WOULD_BLOCK: servers are still
   * connecting for the first time, and limits.first_list_wait_ms is not over: there may be more in
   * a moment. [io] */
  bh_status (*list_items)(void *ctx, bh_session session, uint32_t kind, bh_buf *out,
                          bh_error *error);
} bh_host_control;

#ifdef __cplusplus
}
#endif

#endif
