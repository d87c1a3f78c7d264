/* The entry point of a plugin library, and the lifecycle of a plugin instance.
 *
 * Since 1.0. Stable.
 *
 * A library exports exactly one function, bh_plugin_entry_v1 (one per ABI major version). The
 * manifest NAME.plugin.toml is in the same folder as the library NAME.so, and is read before any
 * code of the library is executed.
 *
 * Lifecycle of an instance (each step is one call, in this order):
 *   create -> configure -> start -> (probe)* -> drain -> stop -> destroy
 * The host may omit probe and drain. At present, it calls them only for transports, when it stops.
 * If configure or start fails, destroy is called next. A replaced library is *retired*: its
 * instances are destroyed, deinit is called, and its code remains mapped. */
#ifndef BULKHEAD_ABI_PLUGIN_H
#define BULKHEAD_ABI_PLUGIN_H

#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_plugin {
  uint32_t size;
  uint32_t reserved;
  void *self; /* first argument of all functions below, and of the instance's extensions */

  /* Receives the instance's configuration as a JSON object. The host has converted it from TOML
   * and validated it against config_schema. Called once, before start. Must not acquire anything
   * that another instance of the plugin may hold, and must not call [io] functions of the host.
   * [control] */
  bh_status (*configure)(void *self, bh_str config_json, bh_error *error);

  /* Acquires resources. Threads of the plugin may run only between start and stop. Must return
   * BH_OK or an error, and must not wait: for example, a tools plugin that is not ready returns
   * BH_PENDING in bh_tools.list(). [control] */
  bh_status (*start)(void *self, bh_error *error);

  /* Returns BH_OK if the instance is ready, and BH_PENDING if it is still starting. An error
   * means that it has failed, and contains the reason. After drain(), BH_PENDING means that work
   * is in progress; the host then calls stop() when the deadline of drain() has passed.
   * [control] */
  bh_status (*probe)(void *self, bh_error *error);

  /* Stops accepting work. Work in progress may continue until deadline_ns (CLOCK_MONOTONIC). A
   * plugin with work in progress returns BH_PENDING in probe() until the work is done. [control] */
  void (*drain)(void *self, uint64_t deadline_ns);

  /* Stops all work. The plugin must join all threads, and release all watches and timers, before
   * this function returns. It may close descriptors in destroy(). [control] */
  void (*stop)(void *self);

  /* Frees the instance, including this struct. [control] */
  void (*destroy)(void *self);

  /* Returns the instance's table for an extension (BH_EXT_TRANSPORT ...), or NULL for an unknown
   * ID. Must always return the same pointer for an ID, which is valid until destroy. The whole
   * ID must be compared. [control] */
  const void *(*get_ext)(void *self, const char *id);
} bh_plugin;

/* A plugin in a library. Valid until deinit. The host copies the data. */
typedef struct bh_descriptor {
  uint32_t size;
  uint32_t flags;              /* no flags are defined; must be 0 */
  const char *id;              /* [a-z0-9-]{1,64}; the same ID as in the manifest */
  const char *const *provides; /* extension IDs, terminated by NULL */
  bh_str name;                 /* for display */
  bh_str version;
  bh_str vendor;
  bh_str config_schema; /* JSON Schema, draft 4; empty: any object is valid */
} bh_descriptor;

typedef struct bh_entry {
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor_built;  /* minor version of the headers at build time */
  uint32_t abi_minor_needed; /* lowest minor version of the host that is sufficient */

  /* Called before create. May be called on any thread. Must return within the profile's timeout
   * for loading a plugin. `host` may be used only for logging, and only until init returns. A
   * process may load a library more than once, at the same time or successively. Each load calls
   * init once and deinit once, so a library with global state must count the calls. [no-host] */
  bh_status (*init)(const bh_host *host, bh_error *error);
  /* Called after the last destroy of this load. [no-host] */
  void (*deinit)(void);

  uint32_t count;  /* number of plugins in the library, 1 to 64 */
  uint32_t abi_rc; /* BH_ABI_RC of the headers at build time; must be equal to the host's */
  /* Returns the descriptor with index i, or NULL if i >= count. Called before init. [any] */
  const bh_descriptor *(*descriptor)(uint32_t i);

  /* Creates an instance. `host` is valid until destroy has returned. Returns BH_E_NOT_FOUND if
   * no descriptor has this ID. [no-host] */
  bh_status (*create)(const char *id, const bh_host *host, const bh_plugin **out, bh_error *error);
} bh_entry;

/* The only exported function. It must have no side effects, and must always return the same
 * pointer, which is valid while the library is mapped. */
typedef const bh_entry *(*bh_plugin_entry_fn)(void);
#define BH_PLUGIN_ENTRY_SYMBOL "bh_plugin_entry_v1"

/* An optional ELF section with a copy of the config_schema of the manifest's plugin, terminated
 * by NUL. The host reads it from the file, so that it can report errors in all configurations
 * before it executes code of any plugin. */
#define BH_SCHEMA_SECTION "bh_config_schema"

#ifdef __cplusplus
}
#endif

#endif
