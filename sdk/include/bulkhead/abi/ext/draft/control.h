/* Draft: lets a plugin add, remove and list upstream servers, and list their items.
 *
 * This extension can start programs. Therefore get_ext returns it only to plugin instances with
 * grants = ["control"] in the profile, and NULL to all others.
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_CONTROL_H
#define BULKHEAD_ABI_EXT_DRAFT_CONTROL_H

#include "../transport.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_CONTROL "bh.host.control/1"

/* Called on the reactor thread, but not inside replace_servers and not after the plugin's stop()
 * has returned. `report` is a borrowed JSON object:
 *   {"added":N,"changed":N,"removed":N,"unchanged":N,"ready":N,
 *    "failed":[{"name":"x","reason":"..."}],
 *    "refused":[{"name":"x","reason":"..."}]}
 * "failed" lists accepted servers that have failed or are still connecting. "refused" lists
 * rejected definitions. */
typedef void (*bh_control_done)(void *arg, bh_str report);

typedef struct bh_host_control {
  uint32_t size;
  uint32_t reserved;

  /* Replaces all servers that this instance has added. The servers of the profile are kept, and
   * their names cannot be used. `definitions` is a JSON array of at most 1000 objects. Each has
   * a "name" and the members of a server in the profile's mcpServers (docs/profile.md). Values
   * are used unchanged: ${...} is not expanded. The optional member "source" is a text of at
   * most 64 bytes, which list_servers returns.
   *
   * If a definition is unchanged, its connections are kept. All other old servers are drained:
   * their in-flight calls may complete within limits.drain_ms, and then fail. New servers
   * replace old servers immediately. Invalid definitions are skipped and listed in the report.
   *
   * Returns BH_PENDING if `done` will be called. It is called exactly once, unless the gateway
   * shuts down first: when the old servers have stopped and the new servers have listed their
   * tools or failed, or after wait_ms.
   * Returns BH_E_INVALID, and changes nothing, if `definitions` is not an array or is too long.
   * Returns BH_E_LIMIT if 16 changes are pending, and BH_E_UNAVAILABLE if the gateway is
   * shutting down. `error` never contains values of a definition. [io] */
  bh_status (*replace_servers)(void *ctx, bh_str definitions, uint64_t wait_ms,
                               bh_control_done done, void *arg, bh_error *error);

  /* Returns a JSON array of all servers in order, including servers of the profile and tools
   * plugins:
   *   {"name":"x","type":"stdio","url":"","enabled":true,"source":"profile","is_stdio":true,
   *    "state":"ready","reason":"","connected":true,"restarts":0,
   *    "tool_count":1,"resource_count":0,"prompt_count":0}
   * state: "connecting", "ready", "idle", "failed" or "disabled". url: without user, password,
   * query and fragment. source: the "source" of the definition if it has one, "builtin" for tools
   * plugins, "corp" or "user" for servers from these layers of the profile, otherwise "profile".
   * [io] */
  bh_status (*list_servers)(void *ctx, bh_buf *out, bh_error *error);

  /* Returns a JSON array of the items of one kind (BH_LIST_... of tools.h) that `session` sees, in
   * list order. This instance must have opened and initialized the session:
   *   {"server":"x","name":"x__say","original_name":"say","timeout_ms":1000,"item":{...}}
   * `item` is the item as sent by the server. `name` is the item's client-visible name, and
   * `original_name` the server's; for resources these are URIs, and for templates URI templates.
   * timeout_ms is omitted unless the profile sets it. Returns BH_STALE if the session does not
   * exist or belongs to another instance, BH_E_UNAVAILABLE if it is not initialized, and
   * BH_E_INVALID if `kind` is unknown. Returns BH_WOULD_BLOCK while servers are connecting for the
   * first time, up to limits.first_list_wait_ms, or while a policy filters the list; retry later.
   * [io] */
  bh_status (*list_items)(void *ctx, bh_session session, uint32_t kind, bh_buf *out,
                          bh_error *error);
} bh_host_control;

#ifdef __cplusplus
}
#endif

#endif
