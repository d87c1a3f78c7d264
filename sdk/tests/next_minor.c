/* The entry of a plugin that is built with the headers of a next minor version. create() checks
 * that the additional members, which next_minor.sh appends to these structs, are not found in the
 * structs of this host. ENTRY is the name of the exported function. The plugin itself is a
 * template, whose entry is inner_entry(). */
#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/abi/plugin.h>
#include <stdio.h>

const bh_entry *inner_entry(void);
__attribute__((visibility("default"))) const bh_entry *ENTRY(void);

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  const bh_host_tools *tools = host->get_ext(host->ctx, BH_EXT_HOST_TOOLS);
  if (BH_HAS(bh_host, host, later) || (tools != NULL && BH_HAS(bh_host_tools, tools, later))) {
    if (error != NULL) {
      error->code = BH_E_INTERNAL;
      error->n = (uint32_t)snprintf(error->text, sizeof error->text,
                                    "a struct of the host has members of a later version");
    }
    return BH_E_INTERNAL;
  }
  return inner_entry()->create(id, host, out, error);
}

const bh_entry *ENTRY(void) {
  static bh_entry entry;
  entry = *inner_entry();
  entry.abi_minor_needed = NEEDED;
  entry.create = create;
  return &entry;
}
