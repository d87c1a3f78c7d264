/* A tools plugin in plain C. Its tool `echo` returns its arguments as text.
 *
 * All functions of an instance run on the gateway's reactor thread, one call at a time. Therefore
 * no locks are needed, and no function may block. */
#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/abi/plugin.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_ID "hello-tools-c"
#define TEXT(literal) {literal, sizeof literal - 1}

static const char tools_json[] =
    "[{\"name\":\"echo\",\"description\":\"Returns its arguments as text.\","
    "\"inputSchema\":{\"type\":\"object\"},\"annotations\":{\"readOnlyHint\":true}}]";

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_tools *tools;
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

/* Writes the text as a JSON string and returns the end of the output. The buffer must be large
 * enough: each byte needs up to six characters, and the quotes need two. */
static char *write_quoted(char *out, bh_str text) {
  static const char hex[] = "0123456789abcdef";
  uint64_t i;
  *out++ = '"';
  for (i = 0; i < text.n; i++) {
    const unsigned char c = (unsigned char)text.p[i];
    if (c == '"' || c == '\\') {
      *out++ = '\\';
      *out++ = (char)c;
    } else if (c < 0x20) {
      memcpy(out, "\\u00", 4);
      out[4] = hex[c >> 4];
      out[5] = hex[c & 15];
      out += 6;
    } else {
      *out++ = (char)c;
    }
  }
  *out++ = '"';
  return out;
}

/* ---- bh.tools/1 ---- */

static bh_status list(void *self, const bh_list_info *info, bh_buf *out, bh_error *error) {
  (void)self;
  if (info->kind != BH_LIST_TOOLS) return refuse(error, BH_E_UNSUPPORTED, "tools only");
  out->p = tools_json;
  out->n = sizeof tools_json - 1;
  out->owner = NULL;
  out->release = NULL; /* static data is not freed */
  return BH_OK;
}

static bh_status call_begin(void *self_, bh_call call, const bh_call_info *info, bh_error *error) {
  static const char head[] = "{\"content\":[{\"type\":\"text\",\"text\":";
  static const char tail[] = "}]}";
  instance *self = self_;
  bh_result result = {0};
  char *json, *end;
  if (info->name.n != 4 || memcmp(info->name.p, "echo", 4) != 0) {
    return refuse(error, BH_E_NOT_FOUND, "unknown tool");
  }
  json = malloc(sizeof head + 6 * info->arguments.n + 2 + sizeof tail);
  if (json == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  memcpy(json, head, sizeof head - 1);
  end = write_quoted(json + sizeof head - 1, info->arguments);
  memcpy(end, tail, sizeof tail - 1);
  end += sizeof tail - 1;

  result.size = sizeof result;
  result.kind = BH_RESULT_OK;
  result.json.p = json;
  result.json.n = (uint64_t)(end - json);
  result.json.owner = json; /* the host calls release(owner) when it no longer needs the data */
  result.json.release = free;
  self->tools->complete(self->host->ctx, call, &result);
  return BH_OK;
}

static void call_cancel(void *self, bh_call call, const bh_cancel *cancel) {
  (void)self;
  (void)cancel;
  (void)call; /* every call is completed inside call_begin */
}

static const bh_tools tools_table = {sizeof(bh_tools), 0,           list,
                                     call_begin,       call_cancel, NULL /* no features */};

/* ---- instance lifecycle ---- */

static bh_status configure(void *self_, bh_str config_json, bh_error *error) {
  instance *self = self_;
  (void)config_json;
  self->tools = self->host->get_ext(self->host->ctx, BH_EXT_HOST_TOOLS);
  if (self->tools == NULL)
    return refuse(error, BH_E_UNSUPPORTED, "this host does not support tools");
  return BH_OK;
}

static bh_status start(void *self_, bh_error *error) {
  instance *self = self_;
  (void)error;
  self->host->log(self->host->ctx, BH_LOG_INFO, str("ready"));
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
  return strcmp(id, BH_EXT_TOOLS) == 0 ? &tools_table : NULL;
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
  static const char *const provides[] = {BH_EXT_TOOLS, NULL};
  static const bh_descriptor value = {.size = sizeof(bh_descriptor),
                                      .id = PLUGIN_ID,
                                      .provides = provides,
                                      .name = TEXT(PLUGIN_ID),
                                      .version = TEXT("1.0.0"),
                                      .vendor = TEXT("Example")};
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
