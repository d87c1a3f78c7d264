/* Writes layout.rs, which has the layout of the structs and the values of the constants of the
 * plugin ABI as the C compiler sees them: layout OUTPUT. src/abi.rs compares them with its own
 * declarations, so that a change of the headers breaks the build and not the plugin.
 *
 * The types of the members are compared here. Each type is written as src/abi.rs declares it. */
#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/abi/plugin.h>
#include <stdio.h>

#define STRUCT(type)                                                                        \
  for (fprintf(out, "pub mod " #type " {\n  pub const SIZE: usize = %zu;\n", sizeof(type)), \
       fprintf(out, "  pub const ALIGN: usize = %zu;\n", _Alignof(type)), open = 1;         \
       open; fprintf(out, "}\n"), open = 0)

/* The offset and the size of a member, and its name in Rust. The last argument is its type, which
 * may have commas. */
#define MEMBER_AS(name, type, member, ...)                                                        \
  do {                                                                                            \
    _Static_assert(_Generic(((type *)0)->member, __VA_ARGS__: 1, default: 0),                     \
                   #type "." #member " has another type in the headers; see src/abi.rs");         \
    fprintf(out, "  pub const " #name ": (usize, usize) = (%zu, %zu);\n", offsetof(type, member), \
            sizeof(((type *)0)->member));                                                         \
  } while (0)
#define MEMBER(type, member, ...) MEMBER_AS(member, type, member, __VA_ARGS__)

#define NUMBER(name, type) fprintf(out, "pub const " #name ": " type " = %ld;\n", (long)(name))
#define TEXT(name) fprintf(out, "pub const " #name ": &str = \"%s\";\n", name)

int main(int argc, char **argv) {
  FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
  int open;
  if (out == NULL) return 2;

  _Static_assert(_Generic((bh_status)0, int32_t: 1, default: 0), "bh_status is not int32_t");
  _Static_assert(_Generic((bh_call)0, uint64_t: 1, default: 0), "bh_call is not uint64_t");

  /* core.h */
  STRUCT(bh_str) {
    MEMBER(bh_str, p, const char *);
    MEMBER(bh_str, n, uint64_t);
  }
  STRUCT(bh_buf) {
    MEMBER(bh_buf, p, const char *);
    MEMBER(bh_buf, n, uint64_t);
    MEMBER(bh_buf, owner, void *);
    MEMBER(bh_buf, release, void (*)(void *));
  }
  STRUCT(bh_error) {
    MEMBER(bh_error, size, uint32_t);
    MEMBER(bh_error, code, int32_t);
    MEMBER(bh_error, retry_after_ms, uint32_t);
    MEMBER(bh_error, n, uint32_t);
    MEMBER(bh_error, text, char *); /* an array, which becomes a pointer here */
  }

  /* host.h */
  STRUCT(bh_host) {
    MEMBER(bh_host, size, uint32_t);
    MEMBER(bh_host, abi_minor, uint32_t);
    MEMBER(bh_host, ctx, void *);
    MEMBER(bh_host, name, bh_str);
    MEMBER(bh_host, version, bh_str);
    MEMBER(bh_host, get_ext, const void *(*)(void *, const char *));
    MEMBER(bh_host, log, void (*)(void *, int32_t, bh_str));
    MEMBER(bh_host, log_enabled, int32_t (*)(void *, int32_t));
  }

  /* plugin.h */
  STRUCT(bh_plugin) {
    MEMBER(bh_plugin, size, uint32_t);
    MEMBER(bh_plugin, reserved, uint32_t);
    MEMBER_AS(this, bh_plugin, self, void *); /* `self` is a keyword of Rust */
    MEMBER(bh_plugin, configure, bh_status(*)(void *, bh_str, bh_error *));
    MEMBER(bh_plugin, start, bh_status(*)(void *, bh_error *));
    MEMBER(bh_plugin, probe, bh_status(*)(void *, bh_error *));
    MEMBER(bh_plugin, drain, void (*)(void *, uint64_t));
    MEMBER(bh_plugin, stop, void (*)(void *));
    MEMBER(bh_plugin, destroy, void (*)(void *));
    MEMBER(bh_plugin, get_ext, const void *(*)(void *, const char *));
  }
  STRUCT(bh_descriptor) {
    MEMBER(bh_descriptor, size, uint32_t);
    MEMBER(bh_descriptor, flags, uint32_t);
    MEMBER(bh_descriptor, id, const char *);
    MEMBER(bh_descriptor, provides, const char *const *);
    MEMBER(bh_descriptor, name, bh_str);
    MEMBER(bh_descriptor, version, bh_str);
    MEMBER(bh_descriptor, vendor, bh_str);
    MEMBER(bh_descriptor, config_schema, bh_str);
  }
  STRUCT(bh_entry) {
    MEMBER(bh_entry, size, uint32_t);
    MEMBER(bh_entry, abi_major, uint32_t);
    MEMBER(bh_entry, abi_minor_built, uint32_t);
    MEMBER(bh_entry, abi_minor_needed, uint32_t);
    MEMBER(bh_entry, init, bh_status(*)(const bh_host *, bh_error *));
    MEMBER(bh_entry, deinit, void (*)(void));
    MEMBER(bh_entry, count, uint32_t);
    MEMBER(bh_entry, abi_rc, uint32_t);
    MEMBER(bh_entry, descriptor, const bh_descriptor *(*)(uint32_t));
    MEMBER(bh_entry, create,
           bh_status(*)(const char *, const bh_host *, const bh_plugin **, bh_error *));
  }

  /* ext/tools.h */
  STRUCT(bh_call_info) {
    MEMBER(bh_call_info, size, uint32_t);
    MEMBER(bh_call_info, flags, uint32_t);
    MEMBER(bh_call_info, method, bh_str);
    MEMBER(bh_call_info, name, bh_str);
    MEMBER(bh_call_info, arguments, bh_str);
    MEMBER(bh_call_info, deadline_ns, uint64_t);
    MEMBER(bh_call_info, session, uint64_t);
    MEMBER(bh_call_info, principal, bh_str);
    MEMBER(bh_call_info, traceparent, bh_str);
    MEMBER(bh_call_info, input_responses, bh_str);
    MEMBER(bh_call_info, request_state, bh_str);
  }
  STRUCT(bh_list_info) {
    MEMBER(bh_list_info, size, uint32_t);
    MEMBER(bh_list_info, kind, uint32_t);
    MEMBER(bh_list_info, session, uint64_t);
    MEMBER(bh_list_info, principal, bh_str);
  }
  STRUCT(bh_cancel) {
    MEMBER(bh_cancel, size, uint32_t);
    MEMBER(bh_cancel, reason, uint32_t);
    MEMBER(bh_cancel, text, bh_str);
  }
  STRUCT(bh_progress) {
    MEMBER(bh_progress, size, uint32_t);
    MEMBER(bh_progress, reserved, uint32_t);
    MEMBER(bh_progress, progress, double);
    MEMBER(bh_progress, total, double);
    MEMBER(bh_progress, message, bh_str);
  }
  STRUCT(bh_result) {
    MEMBER(bh_result, size, uint32_t);
    MEMBER(bh_result, kind, uint32_t);
    MEMBER(bh_result, json, bh_buf);
  }
  STRUCT(bh_tools) {
    MEMBER(bh_tools, size, uint32_t);
    MEMBER(bh_tools, reserved, uint32_t);
    MEMBER(bh_tools, list, bh_status(*)(void *, const bh_list_info *, bh_buf *, bh_error *));
    MEMBER(bh_tools, call_begin, bh_status(*)(void *, bh_call, const bh_call_info *, bh_error *));
    MEMBER(bh_tools, call_cancel, void (*)(void *, bh_call, const bh_cancel *));
    MEMBER(bh_tools, features, uint32_t (*)(void *));
  }
  STRUCT(bh_host_tools) {
    MEMBER(bh_host_tools, size, uint32_t);
    MEMBER(bh_host_tools, reserved, uint32_t);
    MEMBER(bh_host_tools, complete, bh_status(*)(void *, bh_call, const bh_result *));
    MEMBER(bh_host_tools, progress, void (*)(void *, bh_call, const bh_progress *));
    MEMBER(bh_host_tools, list_changed, void (*)(void *, const bh_list_info *));
    MEMBER(bh_host_tools, resource_updated, void (*)(void *, bh_str));
  }

  NUMBER(BH_ABI_MAJOR, "u32");
  NUMBER(BH_ABI_MINOR, "u32");
  NUMBER(BH_ABI_RC, "u32");
  NUMBER(BH_OK, "i32");
  NUMBER(BH_E_INVALID, "i32");
  NUMBER(BH_E_UNSUPPORTED, "i32");
  NUMBER(BH_E_NOT_FOUND, "i32");
  NUMBER(BH_E_INTERNAL, "i32");
  NUMBER(BH_LOG_INFO, "i32");
  NUMBER(BH_LIST_TOOLS, "u32");
  NUMBER(BH_RESULT_OK, "u32");
  TEXT(BH_PLUGIN_ENTRY_SYMBOL);
  TEXT(BH_SCHEMA_SECTION);
  TEXT(BH_EXT_TOOLS);
  TEXT(BH_EXT_HOST_TOOLS);
  return fclose(out) == 0 ? 0 : 1;
}
