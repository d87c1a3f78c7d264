/* A small plugin in C that logs each lifecycle step. BEHAVIOUR selects the rule that it
 * violates. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/plugin.h"

#define GOOD 0
#define HANGS_IN_INIT 1
#define HANGS_IN_CONSTRUCTOR 2
#define FAILS_IN_INIT 3
#define WRONG_MAJOR 4
#define NEEDS_NEWER 5
#define NO_CREATE 6
#define OTHER_ID 7
#define OTHER_PROVIDES 8
#define LEAKS 9
#define BIGGER 10
#define SHORTER 11
#define FAILS_IN_START 12
#define TWO_ENTRIES 13
#define UNFINISHED 14
#define CRASHES_IN_INIT 15
#define CRASHES_IN_START 16
#define HANGS_IN_START 17
#define OTHER_CANDIDATE 18

#define EXPORT __attribute__((visibility("default")))

/* Members that a later minor version of the ABI may append. The host must not read them. */
struct bigger_plugin {
  bh_plugin now;
  void *later[4];
};

typedef struct instance {
  struct bigger_plugin table;
  const bh_host *host;
  int pipe_fds[2];
} instance;

static void log_step(const instance *self, const char *text) {
  bh_str message = {text, strlen(text)};
  self->host->log(self->host->ctx, BH_LOG_INFO, message);
}

static bh_status refuse(bh_error *error, bh_status code, const char *text) {
  if (error != NULL && BH_HAS(bh_error, error, text)) {
    error->code = code;
    error->n = (uint32_t)strlen(text);
    memcpy(error->text, text, error->n);
  }
  return code;
}

static void nothing(void *arg) {
  (void)arg;
}
static void nothing_fd(void *arg, int32_t fd, uint32_t events) {
  (void)arg;
  (void)fd;
  (void)events;
}

static bh_status configure(void *self, bh_str json, bh_error *error) {
  log_step(self, "configure");
  if (json.n > 2 && BEHAVIOUR != UNFINISHED)
    return refuse(error, BH_E_INVALID, "an object\x1b[31m is wanted");
  return BH_OK;
}

static bh_status start(void *self_, bh_error *error) {
  instance *self = self_;
  log_step(self, "start");
  if (BEHAVIOUR == FAILS_IN_START) return refuse(error, BH_E_IO, "no such device");
  if (BEHAVIOUR == CRASHES_IN_START) abort();
  while (BEHAVIOUR == HANGS_IN_START) sleep(1);
  if (BEHAVIOUR == LEAKS) {
    const bh_host_executor *executor = self->host->get_ext(self->host->ctx, BH_EXT_HOST_EXECUTOR);
    const bh_host_fd *fd = self->host->get_ext(self->host->ctx, BH_EXT_HOST_FD);
    bh_watch watch;
    if (pipe(self->pipe_fds) != 0) return refuse(error, BH_E_IO, "no pipe");
    executor->timer_start(self->host->ctx, 3600000, nothing, NULL);
    return fd->watch(self->host->ctx, self->pipe_fds[0], BH_FD_READ, nothing_fd, NULL, &watch);
  }
  return BH_OK;
}

static bh_status probe(void *self, bh_error *error) {
  (void)error;
  log_step(self, "probe");
  return BH_PENDING;
}

static void drain(void *self, uint64_t deadline_ns) {
  (void)deadline_ns;
  log_step(self, "drain");
}

static void stop(void *self) {
  log_step(self, "stop");
}

static void destroy(void *self_) {
  instance *self = self_;
  log_step(self, "destroy");
  if (BEHAVIOUR == LEAKS) {
    close(self->pipe_fds[0]);
    close(self->pipe_fds[1]);
  }
  free(self);
}

/* Lists a tool whose calls are reported as complete but have no result, and tools whose calls
 * complete on another thread. */
static bh_status list(void *self, const bh_list_info *info, bh_buf *out, bh_error *error) {
  static const char tools[] =
      "[{\"name\":\"nothing\",\"inputSchema\":{\"type\":\"object\"}},"
      "{\"name\":\"thread\",\"inputSchema\":{\"type\":\"object\"}},"
      "{\"name\":\"slow\",\"inputSchema\":{\"type\":\"object\"}}]";
  (void)self;
  if (info->kind != BH_LIST_TOOLS) return refuse(error, BH_E_UNSUPPORTED, "tools only");
  memset(out, 0, sizeof *out);
  out->p = tools;
  out->n = sizeof tools - 1;
  return BH_OK;
}

struct finishing {
  const bh_host *host;
  bh_call call;
};

static void *finish(void *arg) {
  static const char json[] = "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}";
  const struct finishing *f = arg;
  const bh_host_tools *tools = f->host->get_ext(f->host->ctx, BH_EXT_HOST_TOOLS);
  bh_result result = {sizeof result, BH_RESULT_OK, {json, sizeof json - 1, NULL, NULL}};
  tools->complete(f->host->ctx, f->call, &result);
  return NULL;
}

static void *finish_later(void *arg) {
  sleep(2);
  finish(arg);
  free(arg);
  return NULL;
}

static bh_status call_begin(void *self_, bh_call call, const bh_call_info *info, bh_error *error) {
  const instance *self = self_;
  struct finishing f = {self->host, call};
  pthread_t thread;
  if (info->name.n == 4) {
    struct finishing *later = malloc(sizeof *later);
    if (later == NULL) return refuse(error, BH_E_LIMIT, "no memory");
    *later = f;
    if (pthread_create(&thread, NULL, finish_later, later) != 0) {
      free(later);
      return refuse(error, BH_E_LIMIT, "no thread");
    }
    pthread_detach(thread);
    return BH_PENDING;
  }
  if (info->name.n != 6) return BH_OK;
  if (pthread_create(&thread, NULL, finish, &f) != 0) return refuse(error, BH_E_LIMIT, "no thread");
  pthread_join(thread, NULL);
  return BH_OK;
}

static void call_cancel(void *self, bh_call call, const bh_cancel *cancel) {
  (void)self;
  (void)cancel;
  (void)call;
}

static const bh_tools tools_table = {sizeof(bh_tools), 0, list, call_begin, call_cancel, NULL};

static const void *get_ext(void *self, const char *id) {
  (void)self;
  if (BEHAVIOUR == UNFINISHED && strcmp(id, BH_EXT_TOOLS) == 0) return &tools_table;
  return strcmp(id, "test.ext/1") == 0 ? "here" : NULL;
}

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  instance *self;
  if (strcmp(id, PLUGIN_ID) != 0) return refuse(error, BH_E_NOT_FOUND, "no such plugin");
  self = calloc(1, sizeof *self);
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  self->host = host;
  self->table.now.size = sizeof(bh_plugin);
  self->table.now.self = self;
  self->table.now.configure = configure;
  self->table.now.start = start;
  self->table.now.probe = probe;
  self->table.now.drain = drain;
  self->table.now.stop = stop;
  self->table.now.destroy = destroy;
  self->table.now.get_ext = get_ext;
  if (BEHAVIOUR == BIGGER) {
    self->table.now.size = sizeof self->table;
    memset(self->table.later, 0x5a, sizeof self->table.later);
  }
  if (BEHAVIOUR == SHORTER) {
    self->table.now.size = offsetof(bh_plugin, get_ext);
    memset(&self->table.now.get_ext, 0x5a, sizeof self->table.now.get_ext);
  }
  *out = &self->table.now;
  return BH_OK;
}

static bh_status init(const bh_host *host, bh_error *error) {
  const char *text = "init";
  bh_str message = {text, 4};
  host->log(host->ctx, BH_LOG_INFO, message);
  if (BEHAVIOUR == FAILS_IN_INIT) return refuse(error, BH_E_UNAVAILABLE, "the moon is full");
  while (BEHAVIOUR == HANGS_IN_INIT) sleep(1);
  if (BEHAVIOUR == CRASHES_IN_INIT) abort();
  return BH_OK;
}

static void deinit(void) {}

static struct {
  bh_descriptor now;
  void *later[4];
} the_descriptor;
static const char *const provides[] = {"bh.tools/1", NULL};
static const char *const other_provides[] = {"bh.tools/1", "bh.policy/1", NULL};

static const bh_descriptor *descriptor(uint32_t i) {
  bh_descriptor *d = &the_descriptor.now;
  bh_str poison = {(const char *)(uintptr_t)16, 1u << 30};
  bh_str name = {"For tests", 9};
  static const char schema_text[] =
      "{\"type\":\"object\",\"additionalProperties\":false,"
      "\"properties\":{\"refuse\":{\"type\":\"boolean\"}}}";
  bh_str schema = {schema_text, sizeof schema_text - 1};
  if (i != 0) return NULL;
  d->size = BEHAVIOUR == BIGGER    ? sizeof the_descriptor
            : BEHAVIOUR == SHORTER ? offsetof(bh_descriptor, name)
                                   : sizeof *d;
  d->id = BEHAVIOUR == OTHER_ID ? "somebody-else" : PLUGIN_ID;
  d->provides = BEHAVIOUR == OTHER_PROVIDES ? other_provides : provides;
  d->name = BEHAVIOUR == SHORTER ? poison : name;
  d->config_schema = schema;
  if (BEHAVIOUR == SHORTER) d->version = d->vendor = d->config_schema = poison;
  return d;
}

static struct {
  bh_entry now;
  void *later[4];
} the_entry;

static const bh_entry *entry(void) {
  bh_entry *e = &the_entry.now;
  e->size = BEHAVIOUR == BIGGER ? sizeof the_entry : sizeof *e;
  e->abi_major = BEHAVIOUR == WRONG_MAJOR ? 9 : BH_ABI_MAJOR;
  e->abi_minor_built = BEHAVIOUR == BIGGER ? BH_ABI_MINOR + 1 : BH_ABI_MINOR;
  e->abi_minor_needed = BEHAVIOUR == NEEDS_NEWER ? BH_ABI_MINOR + 1 : 0;
  e->init = init;
  e->deinit = deinit;
  e->count = 1;
  e->abi_rc = BEHAVIOUR == OTHER_CANDIDATE ? BH_ABI_RC + 1 : BH_ABI_RC;
  e->descriptor = descriptor;
  e->create = BEHAVIOUR == NO_CREATE ? NULL : create;
  return e;
}

EXPORT const bh_entry *bh_plugin_entry_v1(void);
EXPORT const bh_entry *bh_plugin_entry_v1(void) {
  return entry();
}

#if BEHAVIOUR == TWO_ENTRIES
EXPORT const void *bh_plugin_entry_v7(void);
EXPORT const void *bh_plugin_entry_v7(void) {
  return NULL;
}
#endif

#if BEHAVIOUR == HANGS_IN_CONSTRUCTOR
__attribute__((constructor)) static void hang(void) {
  for (;;) sleep(1);
}
#endif
