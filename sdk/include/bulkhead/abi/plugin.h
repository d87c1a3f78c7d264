/* Entry point of a plugin library, and the lifecycle of a plugin instance.
 *
 * A library exports exactly one function, bh_plugin_entry_v0 (one per ABI major version). The
 * manifest NAME.plugin.toml is in the same folder as the library NAME.so, and is read before any
 * code of the library is executed.
 *
 * Lifecycle of an instance (each step is one call, in this order):
 *   create -> configure -> start -> (probe)* -> drain -> stop -> destroy
 * After a failed configure or start, destroy follows. A replaced library is *retired*: its
 * instances are destroyed, deinit is called, and its code remains mapped.
 */
#ifndef BULKHEAD_ABI_PLUGIN_H
#define BULKHEAD_ABI_PLUGIN_H

#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_plugin {
  uint32_t size;
  uint32_t reserved;
  void *self; /* first argument of all functions below and of the instance's extensions */

  /* Receives the instance's configuration as one JSON object. The host has converted it from TOML
   * and validated it against config_schema. Called once, before start. [control] */
  bh_status (*configure)(void *self, bh_str config_json, bh_error *error);

  /* Acquires resources. The plugin's threads may run only between start and stop. [control] */
  bh_status (*start)(void *self, bh_error *error);

  /* Returns BH_OK if the instance is ready, BH_PENDING if it is still starting, or an error with
   * the reason if it has failed. After drain(), BH_PENDING means that work is in progress; the host
   * stops the instance no later than the deadline of drain(). [control] */
  bh_status (*probe)(void *self, bh_error *error);

  /* Stops accepting work. Work in progress may continue until deadline_ns (CLOCK_MONOTONIC).
   * [control] */
  void (*drain)(void *self, uint64_t deadline_ns);

  /* Ends all work. When it returns, all threads have been joined, and all descriptors, watches and
   * timers have been released. [control] */
  void (*stop)(void *self);

  /* Frees the instance, including this struct. [control] */
  void (*destroy)(void *self);

  /* Returns the instance's table for an extension (BH_EXT_TRANSPORT ...), or NULL for unknown ids.
   * The pointer is always the same and is valid until destroy. Compare the whole id. [control]
   */
  const void *(*get_ext)(void *self, const char *id);
} bh_plugin;

/* A plugin in a library. Valid until deinit; the host copies what it needs. */
typedef struct bh_descriptor {
  uint32_t size;
  uint32_t flags;              /* none defined; must be 0 */
  const char *id;              /* [a-z0-9-]{1,64}, equal to the manifest's */
  const char *const *provides; /* extension ids, terminated by NULL */
  bh_str name;                 /* for display */
  bh_str version;
  bh_str vendor;
  bh_str config_schema; /* JSON Schema, draft 4; if empty, any object is valid */
} bh_descriptor;

typedef struct bh_entry {
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor_built;  /* the minor version of the headers at build time */
  uint32_t abi_minor_needed; /* lowest minor version of the host that is sufficient */

  /* Called before create. Must return within the profile's init time-out. `host` is valid only for
   * log, and only until init returns. A process may load a library more than once (two hosts, or
   * one after the other). Each load calls init once and deinit once, so count the calls. [no-host]
   */
  bh_status (*init)(const bh_host *host, bh_error *error);
  /* Called after the last destroy of this load. [no-host] */
  void (*deinit)(void);

  uint32_t count;
  uint32_t reserved;
  /* Returns the descriptor with index i < count, else NULL. [any] */
  const bh_descriptor *(*descriptor)(uint32_t i);

  /* Creates an instance. The host struct is valid until destroy has returned. Returns
   * BH_E_NOT_FOUND if no descriptor has this id. [no-host] */
  bh_status (*create)(const char *id, const bh_host *host, const bh_plugin **out, bh_error *error);
} bh_entry;

/* The only exported function. It has no side effects and always returns the same pointer, which is
 * valid as long as the library is mapped. */
typedef const bh_entry *(*bh_plugin_entry_fn)(void);
#define BH_PLUGIN_ENTRY_SYMBOL "bh_plugin_entry_v0"

/* Optional: an ELF section with a copy of the config_schema of the manifest's plugin, terminated by
 * NUL. The host reads it from the file, so it can report errors in all configurations before it
 * executes any plugin code. */
#define BH_SCHEMA_SECTION "bh_config_schema"

#ifdef __cplusplus
}
#endif

#endif
