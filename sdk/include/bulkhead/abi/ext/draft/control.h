/* Draft: adds, removes and lists upstream servers and their items.
 *
 * Privileged, because it permits starting programs. get_ext returns it only to plugin instances
 * with grants = ["control"] in the profile, and NULL to all others. Draft ids may change between
 * minor versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_CONTROL_H
#define BULKHEAD_ABI_EXT_DRAFT_CONTROL_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_CONTROL "bh.host.control/1"

/* Called on the reactor thread, but never inside replace_servers or after the caller's stop() has
 * returned. `report` is a borrowed JSON object:
 *   {"added":N,"changed":N,"removed":N,"unchanged":N,"ready":N,
 *    "failed":[{"name":"x","reason":"..."}],
 *    "refused":[{"name":"x","reason":"..."}]}
 * "failed" lists servers that were accepted but are not connected yet. "refused" lists rejected
 * definitions.
 */
typedef void (*bh_control_done)(void *arg, bh_str report);

typedef struct bh_host_control {
  uint32_t size;
  uint32_t reserved;

  /* Replaces all servers that this instance has added. The servers of the profile are kept, and
   * their names are reserved. `definitions` is a JSON array of at most 1000 objects with "name" and
   * the members of a server in the profile's mcpServers (docs/profile.md). Values are used
   * unchanged: ${...} is not expanded. An additional member "source", a text of at most 64 bytes,
   * is returned by list_servers.
   *
   * If a definition is unchanged, its connections are kept. Other replaced servers are drained:
   * in-flight calls may finish within limits.drain_ms, and then fail. New servers replace old
   * servers immediately. Invalid definitions are skipped and listed in the report.
   *
   * Returns BH_PENDING if `done` will be called. It is called once, when old servers have ended and
   * new servers have answered or failed, but at most wait_ms later. Returns BH_E_INVALID, and
   * changes nothing, if `definitions` is not an array or is too long. Returns BH_E_LIMIT if 16
   * changes are pending, and BH_E_UNAVAILABLE if the gateway is stopping. `error` never contains a
   * value of a definition. [io] */
  bh_status (*replace_servers)(void *ctx, bh_str definitions, uint64_t wait_ms,
                               bh_control_done done, void *arg, bh_error *error);

  /* Returns a JSON array of all servers in order, including servers of the profile and tools
   * plugins:
   *   {"name":"x","type":"stdio","url":"","enabled":true,"source":"profile","is_stdio":true,
   *    "state":"ready","reason":"","connected":true,"restarts":0,
   *    "tool_count":1,"resource_count":0,"prompt_count":0}
   * state: "connecting", "ready", "failed" or "disabled". url: without user, password, query and
   * fragment. source: as defined; "profile" for servers of the profile, "builtin" for tools
   * plugins. [io] */
  bh_status (*list_servers)(void *ctx, bh_buf *out, bh_error *error);

  /* Returns a JSON array of the items of one kind (BH_LIST_... of tools.h) that `session` sees, in
   * list order. This instance must have opened and initialized the session:
   *   {"server":"x","name":"x__say","original_name":"say","timeout_ms":1000,"item":{...}} `item` is
   * the item as sent by the server, unchanged. `name` is the client's name for the item, and
   * `original_name` the server's. For resources, they are URIs; for templates, URI templates.
   * timeout_ms is present if the profile sets it. Returns BH_STALE if the session does not exist,
   * and BH_E_UNAVAILABLE if it is not initialized. Returns BH_WOULD_BLOCK while servers are
   * connecting for the first time, within limits.first_list_wait_ms; retry later. [io] */
  bh_status (*list_items)(void *ctx, bh_session session, uint32_t kind, bh_buf *out,
                          bh_error *error);
} bh_host_control;

#ifdef __cplusplus
}
#endif

#endif
