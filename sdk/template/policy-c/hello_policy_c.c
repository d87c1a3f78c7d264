/* A policy plugin in plain C. It blocks calls of tools whose name begins with a configured prefix,
 * and removes these tools from the lists that clients see.
 *
 * All functions of an instance run on the gateway's reactor thread, one call at a time. Therefore
 * no locks are needed, and no function may block. */
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_ID "hello-policy-c"
#define TEXT(literal) {literal, sizeof literal - 1}
#define MAX_PREFIX 64

/* The JSON Schema for the configuration. The gateway reads it from this section of the file, and
 * rejects an invalid configuration before it loads the plugin. */
static const char schema_json[] __attribute__((section(BH_SCHEMA_SECTION), used)) =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"blocked_prefix\":"
    "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.-]{1,64}$\","
    "\"description\":\"must have 1 to 64 of the characters A-Z a-z 0-9 _ . -\"}}}";

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  char prefix[MAX_PREFIX + 1];
  char reason[MAX_PREFIX + 64];
} instance;

static bh_str str(const char *text) {
  bh_str s = {text, strlen(text)};
  return s;
}

/* Sets the caller's error buffer, if there is one. `text` must fit into the buffer. */
static bh_status refuse(bh_error *error, bh_status code, const char *text) {
  if (error != NULL && BH_HAS(bh_error, error, text)) {
    error->code = code;
    error->retry_after_ms = 0;
    error->n = (uint32_t)strlen(text);
    memcpy(error->text, text, error->n);
  }
  return code;
}

/* A cursor in a JSON text. */
typedef struct cursor {
  const char *p;
  const char *end;
} cursor;

/* Skips white space and then `text`. Returns 0 if the input continues with something else. */
static int skip(cursor *in, const char *text) {
  const size_t n = strlen(text);
  while (in->p < in->end && strchr(" \t\r\n", *in->p) != NULL && *in->p != '\0') in->p++;
  if ((size_t)(in->end - in->p) < n || memcmp(in->p, text, n) != 0) return 0;
  in->p += n;
  return 1;
}

/* Reads {} or {"blocked_prefix":"..."}. Returns 0 if the text is anything else. The schema allows
 * no other key, and in the value only characters that need no escapes. */
static int read_config(bh_str json, char prefix[MAX_PREFIX + 1]) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  cursor in = {json.p, json.p + json.n};
  size_t n = 0;
  strcpy(prefix, "delete_"); /* the default */
  if (!skip(&in, "{")) return 0;
  if (skip(&in, "\"blocked_prefix\"")) {
    if (!skip(&in, ":") || !skip(&in, "\"")) return 0;
    while (in.p < in.end && *in.p != '\0' && strchr(allowed, *in.p) != NULL && n < MAX_PREFIX) {
      prefix[n++] = *in.p++;
    }
    prefix[n] = '\0';
    if (n == 0 || in.p == in.end || *in.p++ != '"') return 0; /* "" would block every tool */
  }
  return skip(&in, "}") && skip(&in, "") && in.p == in.end;
}

static int is_blocked(const instance *self, const bh_policy_request *request) {
  static const char method[] = "tools/call";
  const size_t n = strlen(self->prefix);
  return request->method.n == sizeof method - 1 &&
         memcmp(request->method.p, method, sizeof method - 1) == 0 && request->name.n >= n &&
         memcmp(request->name.p, self->prefix, n) == 0;
}

/* ---- bh.policy/1 ---- */

/* The gateway calls only the functions, and sends only the data, that needs() requests. To see
 * arguments or results, add BH_POLICY_READS_ARGUMENTS or BH_POLICY_READS_RESULTS. */
static uint32_t needs(void *self) {
  (void)self;
  return BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS;
}

static bh_status decide(void *self_, const bh_policy_request *request, bh_verdict *out,
                        bh_error *error) {
  const instance *self = self_;
  if (request->event != BH_EVENT_CALL) {
    return refuse(error, BH_E_UNSUPPORTED, "this policy evaluates only calls");
  }
  out->verdict = BH_VERDICT_ALLOW;
  if (is_blocked(self, request)) {
    out->verdict = BH_VERDICT_BLOCK;
    out->rule = str("blocked-prefix");
    out->reason = str(self->reason); /* must be valid until the next call of this instance */
  }
  return BH_OK;
}

/* Called only if needs() has BH_POLICY_READS_RESULTS. */
static bh_status observe(void *self, const bh_policy_request *request, bh_str result,
                         bh_verdict *out, bh_error *error) {
  (void)self;
  (void)request;
  (void)result;
  (void)error;
  out->verdict = BH_VERDICT_ALLOW;
  return BH_OK;
}

static bh_status filter(void *self, const bh_policy_request *request, bh_error *error) {
  (void)error;
  return is_blocked(self, request) ? BH_E_DENIED : BH_OK;
}

/* Applies a changed configuration at run time (bulkhead reload). If it returns an error, the old
 * configuration remains in use, so the instance is changed only after the last check. */
static bh_status reconfigure(void *self_, bh_str config_json, bh_error *error) {
  instance *self = self_;
  char prefix[MAX_PREFIX + 1];
  if (!read_config(config_json, prefix)) {
    return refuse(error, BH_E_INVALID,
                  "blocked_prefix: must have 1 to 64 of the characters A-Z a-z 0-9 _ . -");
  }
  memcpy(self->prefix, prefix, sizeof prefix);
  snprintf(self->reason, sizeof self->reason, "tools whose name begins with \"%s\" are blocked",
           self->prefix);
  return BH_OK;
}

static const bh_policy policy_table = {sizeof(bh_policy), 0,      needs,      decide,
                                       observe,           filter, reconfigure};

/* ---- instance lifecycle ---- */

static bh_status configure(void *self, bh_str config_json, bh_error *error) {
  return reconfigure(self, config_json, error);
}

static bh_status start(void *self_, bh_error *error) {
  instance *self = self_;
  (void)error;
  self->host->log(self->host->ctx, BH_LOG_INFO, str(self->reason));
  return BH_OK;
}

static bh_status probe(void *self, bh_error *error) {
  (void)self;
  (void)error;
  return BH_OK;
}

static void drain(void *self, uint64_t deadline_ns) {
  (void)self;
  (void)deadline_ns;
}

static void stop(void *self) {
  (void)self;
}

static void destroy(void *self) {
  free(self);
}

static const void *get_ext(void *self, const char *id) {
  (void)self;
  return strcmp(id, BH_EXT_POLICY) == 0 ? &policy_table : NULL;
}

/* ---- exports ---- */

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  instance *self;
  if (strcmp(id, PLUGIN_ID) != 0) return refuse(error, BH_E_NOT_FOUND, "unknown plugin");
  self = calloc(1, sizeof *self);
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  self->host = host;
  self->plugin.size = sizeof self->plugin;
  self->plugin.self = self;
  self->plugin.configure = configure;
  self->plugin.start = start;
  self->plugin.probe = probe;
  self->plugin.drain = drain;
  self->plugin.stop = stop;
  self->plugin.destroy = destroy;
  self->plugin.get_ext = get_ext;
  *out = &self->plugin;
  return BH_OK;
}

static bh_status init(const bh_host *host, bh_error *error) {
  (void)host;
  (void)error;
  return BH_OK;
}

static void deinit(void) {}

static const bh_descriptor *descriptor(uint32_t i) {
  static const char *const provides[] = {BH_EXT_POLICY, NULL};
  static const bh_descriptor value = {.size = sizeof(bh_descriptor),
                                      .id = PLUGIN_ID,
                                      .provides = provides,
                                      .name = TEXT(PLUGIN_ID),
                                      .version = TEXT("1.0.0"),
                                      .vendor = TEXT("Example"),
                                      .config_schema = TEXT(schema_json)};
  return i == 0 ? &value : NULL;
}

__attribute__((visibility("default"))) const bh_entry *bh_plugin_entry_v1(void);
const bh_entry *bh_plugin_entry_v1(void) {
  static const bh_entry entry = {.size = sizeof(bh_entry),
                                 .abi_major = BH_ABI_MAJOR,
                                 .abi_minor_built = BH_ABI_MINOR,
                                 .abi_minor_needed = 0,
                                 .init = init,
                                 .deinit = deinit,
                                 .count = 1,
                                 .abi_rc = BH_ABI_RC,
                                 .descriptor = descriptor,
                                 .create = create};
  return &entry;
}
