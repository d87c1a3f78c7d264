/* A telemetry plugin in plain C. It appends one line of JSON for each call to records.ndjson in the
 * plugin's private folder. At max_bytes, the file is renamed to records.old.ndjson, and a new one
 * is begun.
 *
 * batch() runs on the gateway's reactor thread and must not block, so a separate thread writes the
 * lines. If the disk is too slow, records are dropped and counted. */
#include <bulkhead/abi/ext/draft/mask.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/abi/plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN_ID "hello-telemetry-c"
#define TEXT(literal) {literal, sizeof literal - 1}
#define MAX_QUEUED ((size_t)4 << 20) /* bytes that wait for the disk */

/* The JSON Schema for the configuration. The gateway reads it from this section of the file, and
 * rejects an invalid configuration before it loads the plugin. */
static const char schema_json[] __attribute__((section(BH_SCHEMA_SECTION), used)) =
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"max_bytes\":"
    "{\"type\":\"integer\",\"minimum\":4096}}}";

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_mask *mask;
  const bh_host_metrics *metrics;
  bh_metric dropped;
  int warned;
  char path[4096], old_path[4096];
  uint64_t max_bytes;
  pthread_t thread;
  int running;
  atomic_uint_fast64_t lost; /* records that could not be written */

  /* Used by the thread only, after start(). */
  int fd;
  uint64_t bytes;
  int failed;
  char *writing;

  pthread_mutex_t mutex; /* guards the following members */
  pthread_cond_t wake;
  char *queue;
  size_t queued;
  int stopping;
} instance;

static void log_line(const instance *self, int32_t level, const char *text) {
  const bh_str line = {text, strlen(text)};
  self->host->log(self->host->ctx, level, line);
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

/* Reads {} or {"max_bytes":N}. Returns 0 if the text is anything else. */
static int read_config(bh_str json, uint64_t *max_bytes) {
  cursor in = {json.p, json.p + json.n};
  if (!skip(&in, "{")) return 0;
  if (skip(&in, "\"max_bytes\"")) {
    uint64_t value = 0;
    if (!skip(&in, ":") || !skip(&in, "") || in.p == in.end || *in.p < '1' || *in.p > '9') return 0;
    for (; in.p < in.end && *in.p >= '0' && *in.p <= '9'; in.p++) {
      if (value > INT64_MAX / 10 - 1) return 0;
      value = value * 10 + (uint64_t)(*in.p - '0');
    }
    *max_bytes = value;
  }
  return skip(&in, "}") && skip(&in, "") && in.p == in.end;
}

/* ---- lines ---- */

/* A buffer for a line. If the line does not fit, `full` is set. */
typedef struct line {
  char *p;
  size_t n, capacity;
  int full;
} line;

static void add_bytes(line *out, const char *p, size_t n) {
  if (out->full || n > out->capacity - out->n) {
    out->full = 1;
    return;
  }
  memcpy(out->p + out->n, p, n);
  out->n += n;
}

__attribute__((format(printf, 2, 3))) static void add_text(line *out, const char *format, ...) {
  char text[256];
  va_list arguments;
  int n;
  va_start(arguments, format);
  n = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (n > 0 && (size_t)n < sizeof text) add_bytes(out, text, (size_t)n);
}

/* Adds ,"name":"value". The texts of records are UTF-8. */
static void add_member(line *out, const char *name, bh_str value) {
  uint64_t i;
  add_text(out, ",\"%s\":\"", name);
  for (i = 0; i < value.n; i++) {
    const unsigned char c = (unsigned char)value.p[i];
    if (c < 0x20) {
      add_text(out, "\\u%04x", (unsigned)c);
    } else {
      if (c == '"' || c == '\\') add_bytes(out, "\\", 1);
      add_bytes(out, value.p + i, 1);
    }
  }
  add_bytes(out, "\"", 1);
}

/* Names and errors may contain credentials of the profile, for example in a URL. */
static void add_masked(const instance *self, line *out, const char *name, bh_str value) {
  bh_buf masked = {0};
  if (self->mask != NULL && self->mask->mask(self->host->ctx, value, &masked) != 0) {
    const bh_str text = {masked.p, masked.n};
    add_member(out, name, text);
    if (masked.release != NULL) masked.release(masked.owner);
  } else {
    add_member(out, name, value);
  }
}

static bh_str outcome_name(uint32_t outcome) {
  static const bh_str names[] = {TEXT("unknown"), TEXT("ok"),      TEXT("error"),
                                 TEXT("refused"), TEXT("timeout"), TEXT("cancelled")};
  return names[outcome <= BH_OUTCOME_CANCELLED ? outcome : 0];
}

static void add_record(const instance *self, line *out, const bh_record *record) {
  add_text(out, "{\"number\":%llu,\"time_ms\":%llu,\"duration_ms\":%llu.%03u",
           (unsigned long long)record->number,
           (unsigned long long)(record->start_unix_ns / 1000000),
           (unsigned long long)(record->duration_ns / 1000000),
           (unsigned)(record->duration_ns / 1000 % 1000));
  add_member(out, "method", record->method);
  add_member(out, "server", record->server);
  add_masked(self, out, "name", record->name);
  add_member(out, "outcome", outcome_name(record->outcome));
  add_member(out, "rule", record->rule);
  add_masked(self, out, "error", record->error);
  add_bytes(out, "}\n", 2);
}

/* ---- bh.telemetry/1 ---- */

static void count_dropped(const instance *self, uint64_t n) {
  if (n > 0 && self->metrics != NULL) self->metrics->add(self->host->ctx, self->dropped, n);
}

/* All records count as accepted, even those that are dropped: the gateway sends the others again.
 */
static uint32_t batch(void *self_, const bh_record *const *records, uint32_t n) {
  instance *self = self_;
  uint64_t dropped = atomic_exchange(&self->lost, 0);
  uint64_t full = 0;
  uint32_t i;
  pthread_mutex_lock(&self->mutex);
  for (i = 0; i < n; i++) {
    line out = {self->queue, self->queued, MAX_QUEUED, 0};
    if (records[i]->kind != BH_RECORD_CALL) continue;
    add_record(self, &out, records[i]);
    if (out.full) {
      full++;
    } else {
      self->queued = out.n;
    }
  }
  pthread_mutex_unlock(&self->mutex);
  pthread_cond_signal(&self->wake);
  count_dropped(self, dropped + full);
  if (full > 0 && !self->warned) {
    self->warned = 1;
    log_line(self, BH_LOG_WARN, "the disk is too slow: records are dropped and counted");
  }
  return n;
}

static const bh_telemetry telemetry_table = {sizeof(bh_telemetry), 0, batch, NULL /* no needs */};

/* ---- the thread: of the host's functions, it may call only those tagged [any] ---- */

static int open_file(instance *self) {
  struct stat status;
  self->fd = open(self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (self->fd < 0 || fstat(self->fd, &status) != 0) return 0;
  self->bytes = (uint64_t)status.st_size;
  return 1;
}

/* Logs the first of several failures. */
static int report_failure(instance *self) {
  if (!self->failed) {
    char text[512];
    snprintf(text, sizeof text,
             "cannot write records.ndjson (errno %d); records are dropped and counted until "
             "writing succeeds",
             errno);
    log_line(self, BH_LOG_ERROR, text);
  }
  self->failed = 1;
  return 0;
}

/* Writes all lines or, after an error, none. */
static int write_all(instance *self, size_t size) {
  size_t done = 0;
  if (self->bytes >= self->max_bytes) {
    rename(self->path, self->old_path);
    if (self->fd >= 0) close(self->fd);
    if (!open_file(self)) return report_failure(self);
  }
  while (done < size) {
    const ssize_t n = write(self->fd, self->writing + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      report_failure(self);
      if (ftruncate(self->fd, (off_t)self->bytes) != 0) report_failure(self);
      return 0;
    }
    done += (size_t)n;
  }
  self->bytes += size;
  self->failed = 0;
  return 1;
}

static void *write_lines(void *self_) {
  instance *self = self_;
  pthread_mutex_lock(&self->mutex);
  while (!self->stopping || self->queued > 0) {
    char *lines;
    size_t size, i;
    while (!self->stopping && self->queued == 0) pthread_cond_wait(&self->wake, &self->mutex);
    lines = self->queue; /* swaps the two buffers */
    self->queue = self->writing;
    self->writing = lines;
    size = self->queued;
    self->queued = 0;
    pthread_mutex_unlock(&self->mutex);
    if (!write_all(self, size)) {
      for (i = 0; i < size; i++) {
        if (lines[i] == '\n') atomic_fetch_add(&self->lost, 1);
      }
    }
    pthread_mutex_lock(&self->mutex);
  }
  pthread_mutex_unlock(&self->mutex);
  return NULL;
}

/* ---- instance lifecycle ---- */

static bh_status configure(void *self_, bh_str config_json, bh_error *error) {
  static const bh_str counter = TEXT("dropped");
  instance *self = self_;
  void *const ctx = self->host->ctx;
  const bh_host_store *const store = self->host->get_ext(ctx, BH_EXT_HOST_STORE);
  bh_str folder;
  if (!read_config(config_json, &self->max_bytes)) {
    return refuse(error, BH_E_INVALID, "max_bytes: must be an integer");
  }
  if (store == NULL) return refuse(error, BH_E_UNSUPPORTED, "the host has no store");
  folder = store->folder(ctx);
  if (folder.n == 0) return refuse(error, BH_E_IO, "the plugin's folder cannot be created");
  if (folder.n > sizeof self->path - 32) return refuse(error, BH_E_LIMIT, "the path is too long");
  snprintf(self->path, sizeof self->path, "%.*s/records.ndjson", (int)folder.n, folder.p);
  snprintf(self->old_path, sizeof self->old_path, "%.*s/records.old.ndjson", (int)folder.n,
           folder.p);
  self->mask = self->host->get_ext(ctx, BH_EXT_HOST_MASK);
  self->metrics = self->host->get_ext(ctx, BH_EXT_HOST_METRICS);
  if (self->metrics != NULL) self->dropped = self->metrics->counter(ctx, counter);
  return BH_OK;
}

static bh_status start(void *self_, bh_error *error) {
  instance *self = self_;
  if (!open_file(self)) return refuse(error, BH_E_IO, "cannot open records.ndjson");
  if (pthread_create(&self->thread, NULL, write_lines, self) != 0) {
    return refuse(error, BH_E_LIMIT, "cannot create a thread");
  }
  self->running = 1;
  return BH_OK;
}

/* Writes the queued lines, and joins the thread. */
static void stop(void *self_) {
  instance *self = self_;
  pthread_mutex_lock(&self->mutex);
  self->stopping = 1;
  pthread_mutex_unlock(&self->mutex);
  pthread_cond_signal(&self->wake);
  if (self->running) pthread_join(self->thread, NULL);
  self->running = 0;
  if (self->fd >= 0) close(self->fd);
  self->fd = -1;
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

static void destroy(void *self_) {
  instance *self = self_;
  stop(self); /* start may have failed halfway */
  pthread_cond_destroy(&self->wake);
  pthread_mutex_destroy(&self->mutex);
  free(self->queue);
  free(self->writing);
  free(self);
}

static const void *get_ext(void *self, const char *id) {
  (void)self;
  return strcmp(id, BH_EXT_TELEMETRY) == 0 ? &telemetry_table : NULL;
}

/* ---- exports ---- */

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  instance *self;
  if (strcmp(id, PLUGIN_ID) != 0) return refuse(error, BH_E_NOT_FOUND, "unknown plugin");
  self = calloc(1, sizeof *self);
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  self->host = host;
  self->fd = -1;
  self->max_bytes = (uint64_t)64 << 20;
  self->queue = malloc(MAX_QUEUED);
  self->writing = malloc(MAX_QUEUED);
  if (self->queue == NULL || self->writing == NULL) {
    free(self->queue);
    free(self->writing);
    free(self);
    return refuse(error, BH_E_LIMIT, "no memory");
  }
  pthread_mutex_init(&self->mutex, NULL);
  pthread_cond_init(&self->wake, NULL);
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
  static const char *const provides[] = {BH_EXT_TELEMETRY, NULL};
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
