/* A tools plugin with a tool that completes immediately and one that completes after some
 * milliseconds. If it is built with -DBREAK=NUMBER, it violates a rule of files, of loading, of
 * instances or of tools. */
#include "bulkhead/abi/ext/tools.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"

enum { MAX_CALLS = 16, WORK_MS = 10 };

/* Plugins that violate no rule, for the other cases of the test. */
#define NEEDS_CONFIG BREAKS(1) /* configure() requires a configuration */
#define FORKS BREAKS(2)        /* starts processes that do not end */
#define READS_FILES BREAKS(3)  /* configure() reports whether {"file":"PATH"} can be opened */
#define NEEDS_SCHEMA BREAKS(4) /* the schema requires a configuration */
/* has a resource, to which clients can subscribe, and a prompt */
#define HAS_CONTENT (BREAKS(5) || (BREAK >= 411 && BREAK <= 413) || (BREAK >= 4110 && BREAK < 4140))
#define USES_POOL BREAKS(410) /* `later` works on a thread of the pool */

static const char tools_json[] =
    "[{\"name\":\"now\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":"
    "\"string\"}},\"required\":[\"text\"]}},"
    "{\"name\":\"later\",\"inputSchema\":{\"type\":\"object\"}}]";
static const char resources_json[] = "[{\"uri\":\"test:one\",\"name\":\"one\"}]";
static const char prompts_json[] =
    "[{\"name\":\"greet\",\"arguments\":[{\"name\":\"who\",\"required\":true}]}]";
static const char result_json[] = "{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}";
static const char roots_json[] = "{\"inputRequests\":{\"a\":{\"method\":\"roots/list\"}}}";

struct instance;
typedef struct pending {
  struct instance *self;
  bh_call call; /* 0: unused */
  bh_timer timer;
  int is_busy; /* a thread of the pool uses it */
} pending;

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_tools *tools;
  const bh_host_executor *executor;
  const bh_host_fd *fds;
  pending calls[MAX_CALLS];
  bh_tools second_table;
  uint32_t gets;
  bh_timer timer_of_thread;
  int fd;
  int is_draining, is_subscribed;
  uint32_t calls_of_features;
  atomic_int is_stopped;
} instance;

static uint32_t instances; /* existing instances, for rule 309 */
static uint32_t created;   /* instances that were ever created in this process */

/* ---- rules 1xx: the file ---- */

#if BREAKS(105)
__asm__(
    ".globl shared_by_all_versions\n"
    ".type shared_by_all_versions, @gnu_unique_object\n"
    ".bss\n"
    "shared_by_all_versions: .zero 4\n"
    ".size shared_by_all_versions, 4\n"
    ".text\n");
#endif

#if BREAKS(104)
__attribute__((visibility("default"))) void another_function(void);
void another_function(void) {}
#endif

#if BREAKS(106)
static __thread volatile int last_call;
#endif

#if BREAKS(109) || BREAKS(1092)
static void change_the_process(void) {
#if BREAKS(109)
  setenv("FIXTURE", "1", 1);
#else
  signal(SIGUSR1, SIG_IGN);
#endif
}
#endif

/* Uses what the rules of the file forbid, without any effect that another rule forbids. */
static void use_forbidden(const bh_call_info *info) {
  (void)info;
#if BREAKS(106)
  last_call = (int)info->name.n;
#endif
#if BREAKS(109) || BREAKS(1092)
  if (equals(info->method, "no/such/method")) change_the_process();
#endif
}

/* ---- rules 2xx: loading ---- */

#if BREAKS(201)
void missing_function(void);
#endif

static void *sleep_forever(void *arg) {
  (void)arg;
  hang();
  return NULL;
}

static void start_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleep_forever, NULL) == 0) pthread_detach(thread);
}

static void block_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

#if BREAK == 202 || (BREAK >= 2022 && BREAK <= 2027)
__attribute__((constructor)) static void construct(void) {
  if (BREAKS(202)) start_thread();
  if (BREAKS(2022) && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) crash();
  if (BREAKS(2023)) block_signal();
  if (BREAKS(2024)) hang();
  if (BREAKS(2025)) crash();
  if (BREAKS(2026)) _exit(0);
}
#endif

static bh_status init(const bh_host *host, bh_error *error) {
  static int count;
  if (BREAKS(205)) crash();
  if (BREAKS(2052)) hang();
  if (BREAKS(2053) && ++count > 1) return refuse(error, BH_E_LIMIT, "init was called before");
  if (BREAKS(2056)) { /* the check no longer receives reports, and must end nevertheless */
    int fd;
    for (fd = 3; fd < 1024; fd++) close(fd);
    hang();
  }
  if (BREAKS(2054)) return refuse(error, BH_E_UNAVAILABLE, "no license");
  if (BREAKS(3083)) {
    const bh_host_executor *executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
    if (executor != NULL) executor->now_ns(host->ctx);
  }
  if (BREAKS(3102) && eventfd(0, EFD_CLOEXEC) < 0)
    return refuse(error, BH_E_LIMIT, "no descriptor");
  if (BREAKS(3103)) start_thread();
  if (BREAKS(3112) && host->abi_minor != BH_ABI_MINOR) {
    return refuse(error, BH_E_ABI, "unknown version");
  }
  return BH_OK;
}

static void deinit(void) {
  if (BREAKS(2055)) crash();
}

static const bh_descriptor *descriptor(uint32_t i) {
  static const char *const provides[] = {BH_EXT_TOOLS, NULL};
  static const char *const more[] = {BH_EXT_TOOLS, "bh.policy/1", NULL};
  static const char schema[] = "{\"type\":\"object\"}";
  static bh_descriptor value;
  value.size = sizeof value;
  value.id = BREAKS(204) ? "another-id" : BREAKS(2046) ? "Not plain" : PLUGIN_ID;
  value.provides = BREAKS(2042) ? more : provides;
  if (BREAKS(2044) || BREAKS(2045)) value.config_schema = text(schema);
  if (BREAKS(2047)) value.config_schema = text("[]");
  if (NEEDS_SCHEMA) {
    value.config_schema = text("{\"type\":\"object\",\"required\":[\"key\"]}");
  }
  if (BREAKS(2048)) crash();
  return i == 0 || BREAKS(2043) ? &value : NULL;
}

#define SCHEMA __attribute__((section(BH_SCHEMA_SECTION), used)) static const char
#if BREAKS(2045)
SCHEMA schema_section[] = "{\"type\":\"object\",\"required\":[]}";
#elif BREAKS(2047)
SCHEMA schema_section[] = "[]";
#elif BREAKS(4)
SCHEMA schema_section[] = "{\"type\":\"object\",\"required\":[\"key\"]}";
#endif

/* ---- rules 4xx: tools ---- */

static void nothing(void *arg) {
  (void)arg;
}

static bh_status complete(instance *self, bh_call call, uint32_t kind, const char *json) {
  bh_result result = {sizeof result, kind, {json, strlen(json), NULL, NULL}};
  return self->tools->complete(self->host->ctx, call, &result);
}

static bh_status list_of(uint32_t kind, bh_buf *out, bh_error *error) {
  const char *json = tools_json;
  memset(out, 0, sizeof *out);
  if (HAS_CONTENT && (kind == BH_LIST_RESOURCES || kind == BH_LIST_PROMPTS)) {
    out->p = kind == BH_LIST_RESOURCES ? resources_json : prompts_json;
    out->n = strlen(out->p);
    return BH_OK;
  }
  if (kind != BH_LIST_TOOLS) {
    if (BREAKS(4016) && kind == BH_LIST_TEMPLATES) crash();
    if (BREAKS(408) && kind == BH_LIST_PROMPTS) block(TOO_LONG_MS);
    if (BREAKS(4014) && kind == BH_LIST_RESOURCES) {
      return refuse(error, BH_E_INTERNAL, "the resources are lost");
    }
    if (BREAKS(4017) && kind == BH_LIST_RESOURCES) {
      *out = (bh_buf){.p = "[{\"name\":\"no uri\"}]", .n = 19};
      return BH_OK;
    }
    if (!BREAKS(4015) || kind < 99) return refuse(error, BH_E_UNSUPPORTED, "there are only tools");
    json = "[]";
  }
  if (BREAKS(401)) json = "{\"tools\":[]}";
  if (BREAKS(4012)) {
    json =
        "[{\"name\":\"now\",\"inputSchema\":{\"type\":\"object\"}},"
        "{\"name\":\"now\",\"inputSchema\":{\"type\":\"object\"}}]";
  }
  if (BREAKS(4013)) json = "[{\"name\":\"now\"}]";
  out->p = json;
  out->n = strlen(json);
  return BH_OK;
}

static bh_status list(void *self, const bh_list_info *info, bh_buf *out, bh_error *error) {
  (void)self;
  return list_of(info->kind, out, error);
}

static void *start_timer(void *arg) {
  instance *self = arg;
  self->timer_of_thread = self->executor->timer_start(self->host->ctx, 60000, nothing, NULL);
  return NULL;
}

static void use_wrong_thread(instance *self) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, start_timer, self) != 0) return;
  pthread_join(thread, NULL);
  self->executor->timer_cancel(self->host->ctx, self->timer_of_thread);
}

/* A call with the arguments that the check derives from the schema. */
static bh_status call_now(instance *self, bh_call call, bh_error *error) {
  bh_status status;
  if (BREAKS(3085)) use_wrong_thread(self);
  if (BREAKS(402)) return BH_OK;
  if (BREAKS(4022)) complete(self, call, BH_RESULT_OK, result_json);
  if (BREAKS(4023)) return complete(self, call, BH_RESULT_OK, "{\"content\":[}"), BH_OK;
  if (BREAKS(4024)) return complete(self, call, BH_RESULT_OK, "{\"text\":\"done\"}"), BH_OK;
  if (BREAKS(4025)) return complete(self, call, BH_RESULT_ERROR, "{\"message\":\"x\"}"), BH_OK;
  if (BREAKS(4026)) return complete(self, call, 7, result_json), BH_OK;
  if (BREAKS(4027)) {
    complete(self, call, BH_RESULT_OK, result_json);
    return refuse(error, BH_E_INTERNAL, "after completion");
  }
  if (BREAKS(4028)) return BH_E_INTERNAL;
  if (BREAKS(4029)) return complete(self, call, BH_RESULT_OK, result_json), BH_STALE;
  if (BREAKS(40210))
    return complete(self, call, BH_RESULT_INPUT_REQUIRED, "{\"requestState\":\"s\"}"), BH_OK;
  if (BREAKS(40211)) return complete(self, call, BH_RESULT_INPUT_REQUIRED, "{}"), BH_OK;
  if (BREAKS(40212)) return complete(self, call, BH_RESULT_INPUT_REQUIRED, roots_json), BH_OK;
  do {
    status = complete(self, call, BH_RESULT_OK, result_json);
  } while (BREAKS(407) && status == BH_STALE);
  return BH_OK;
}

static void on_timer(void *arg) {
  pending *p = arg;
  const bh_call call = p->call;
  p->call = 0;
  if (complete(p->self, call, BH_RESULT_OK, result_json) == BH_E_LIMIT && BREAKS(4072)) {
    p->call = call; /* tries again */
    p->timer = p->self->executor->timer_start(p->self->host->ctx, 0, on_timer, p);
  }
}

static void work_on_pool(void *arg) {
  const pending *p = arg;
  block(10 * WORK_MS);
  if (p->call != 0 && atomic_load(&p->self->is_stopped)) crash();
}

static void on_work_done(void *arg) {
  pending *p = arg;
  p->is_busy = 0;
  if (p->call != 0) on_timer(p); /* otherwise, the call was cancelled */
}

static bh_status call_later(instance *self, bh_call call, bh_error *error) {
  int i;
  for (i = 0; i < MAX_CALLS && (self->calls[i].call != 0 || self->calls[i].is_busy); i++) {
  }
  if (i == MAX_CALLS) return refuse(error, BH_E_LIMIT, "too many calls");
  self->calls[i].self = self;
  self->calls[i].call = call;
  if (USES_POOL) {
    self->calls[i].is_busy = 1;
    self->executor->run_blocking(self->host->ctx, work_on_pool, on_work_done, &self->calls[i]);
    return BH_PENDING;
  }
  self->calls[i].timer =
      self->executor->timer_start(self->host->ctx, WORK_MS, on_timer, &self->calls[i]);
  return BH_PENDING;
}

/* Checks the argument `text` of the tool `now`. */
static bh_status check_arguments(bh_str json, bh_error *error) {
  if (begins_with(json, "{\"text\":\"")) return BH_OK;
  if (BREAKS(404) && equals(json, "{\"text\":null}")) crash();
  if (BREAKS(4042) && equals(json, "{\"text\":true}")) return BH_E_INVALID;
  if (BREAKS(4043) && json.n > 1 << 20) hang();
  return refuse(error, BH_E_INVALID, "the argument \"text\" must be a string");
}

static int is_name(bh_str name, const char *tool) {
  if (BREAKS(403)) return begins_with(name, tool); /* accepts "nowx" as well */
  return equals(name, tool);
}

static bh_status call_resource(instance *self, bh_call call, const bh_call_info *info,
                               bh_error *error) {
  const int is_one = equals(info->name, "test:one");
  const int was_subscribed = self->is_subscribed;
  if (!is_one && BREAKS(412)) return complete(self, call, BH_RESULT_OK, "{\"contents\":[]}"), BH_OK;
  if (!is_one && BREAKS(4122) && info->name.n > 1000) crash();
  if (!is_one) return refuse(error, BH_E_NOT_FOUND, "unknown resource");
  if (equals(info->method, "resources/read")) {
    if (BREAKS(411)) return BH_OK;
    if (BREAKS(4112)) return complete(self, call, BH_RESULT_OK, result_json), BH_OK;
    if (BREAKS(4113)) return complete(self, call, BH_RESULT_OK, "{\"contents\":{}}"), BH_OK;
    complete(self, call, BH_RESULT_OK, "{\"contents\":[{\"uri\":\"test:one\",\"text\":\"1\"}]}");
    return BH_OK;
  }
  self->is_subscribed = equals(info->method, "resources/subscribe");
  if (BREAKS(413) && self->is_subscribed && was_subscribed) {
    return refuse(error, BH_E_INVALID, "already subscribed");
  }
  if (BREAKS(4132) && !self->is_subscribed && !was_subscribed) crash();
  complete(self, call, BH_RESULT_OK, "{}");
  return BH_OK;
}

static bh_status call_prompt(instance *self, bh_call call, const bh_call_info *info,
                             bh_error *error) {
  if (!equals(info->name, "greet")) {
    if (BREAKS(4123)) return complete(self, call, BH_RESULT_OK, "{\"messages\":[]}"), BH_OK;
    return refuse(error, BH_E_NOT_FOUND, "unknown prompt");
  }
  if (BREAKS(4114) && equals(info->arguments, "{\"who\":null}")) crash();
  if (!begins_with(info->arguments, "{\"who\":\"")) {
    return refuse(error, BH_E_INVALID, "the argument \"who\" must be a string");
  }
  complete(self, call, BH_RESULT_OK, "{\"messages\":[]}");
  if (BREAKS(4115)) complete(self, call, BH_RESULT_OK, "{\"messages\":[]}");
  return BH_OK;
}

static bh_status call_begin(void *self_, bh_call call, const bh_call_info *info, bh_error *error) {
  instance *self = self_;
  use_forbidden(info);
  if (BREAKS(4092) && self->is_draining) crash();
  if (HAS_CONTENT && begins_with(info->method, "resources/")) {
    return call_resource(self, call, info, error);
  }
  if (HAS_CONTENT && equals(info->method, "prompts/get")) {
    return call_prompt(self, call, info, error);
  }
  if (BREAKS(4032) && info->name.n == 1000) crash();
  if (is_name(info->name, "now")) {
    const bh_status status = check_arguments(info->arguments, error);
    if (status < 0 && BREAKS(403) && info->name.n > 3) return call_now(self, call, error);
    if (status < 0) return status;
    if (!equals(info->arguments, "{\"text\":\"x\"}")) {
      complete(self, call, BH_RESULT_OK, result_json);
      return BH_OK;
    }
    return call_now(self, call, error);
  }
  if (is_name(info->name, "later")) return call_later(self, call, error);
  if (BREAKS(4033) && info->name.n == 0) return BH_E_NOT_FOUND;
  return refuse(error, BH_E_NOT_FOUND, "unknown tool");
}

static void call_cancel(void *self_, bh_call call, const bh_cancel *cancel) {
  instance *self = self_;
  int i;
  (void)cancel;
  for (i = 0; i < MAX_CALLS; i++) {
    pending *p = &self->calls[i];
    if (p->call != call) continue;
    self->executor->timer_cancel(self->host->ctx, p->timer);
    p->call = 0;
    if (BREAKS(405)) return; /* never completed */
    complete(self, call, BH_RESULT_ERROR, "{\"code\":-32800,\"message\":\"cancelled\"}");
    if (BREAKS(4052)) complete(self, call, BH_RESULT_OK, result_json);
    return;
  }
  if (BREAKS(4053)) crash();
}

static uint32_t features(void *self_) {
  instance *self = self_;
  if (BREAKS(4133)) return 1u << 30;
  if (BREAKS(4134) && self->calls_of_features++ > 0) return 0;
  if (BREAKS(40211) || BREAKS(40212)) return BH_TOOLS_ASKS_INPUT;
  return HAS_CONTENT ? BH_TOOLS_SUBSCRIBE : 0;
}

static const bh_tools tools_table = {sizeof(bh_tools), 0, list, call_begin, call_cancel, features};

/* ---- rules 3xx: instances ---- */

static bh_status check_config(bh_str json, bh_error *error) {
  char path[512];
  const char *end = json.n < sizeof path ? memchr(json.p + 1, '}', json.n - 1) : NULL;
  if (READS_FILES && begins_with(json, "{\"file\":\"") && end != NULL) {
    const size_t n = (size_t)(end - json.p) - 10;
    memcpy(path, json.p + 9, n);
    path[n] = '\0';
    return refuse(error, BH_E_IO,
                  open(path, O_RDONLY | O_CLOEXEC) < 0 ? "open() failed" : "open() succeeded");
  }
  if (NEEDS_CONFIG && equals(json, "{}")) return refuse(error, BH_E_INVALID, "key is missing");
  if (json.n >= 2 && json.p[0] == '{' && json.p[json.n - 1] == '}') return BH_OK;
  if (BREAKS(304) && equals(json, "null")) crash();
  if (BREAKS(3042) && equals(json, "{")) return BH_E_INVALID;
  if (BREAKS(3062)) { /* the buffer may be shorter */
    if (error != NULL) *error = (bh_error){sizeof *error, BH_E_INVALID, 0, 7, "invalid"};
    return BH_E_INVALID;
  }
  if (BREAKS(306)) error->code = BH_E_INVALID; /* there may be no buffer */
  return refuse(error, BH_E_INVALID, "the configuration must be a JSON object");
}

static bh_status configure(void *self_, bh_str json, bh_error *error) {
  instance *self = self_;
  const bh_host *host = self->host;
  const bh_status status = check_config(json, error);
  if (status < 0) return status;
  if (BREAKS(3043) && json.n > 1 << 20) hang();
  self->tools = host->get_ext(host->ctx, BH_EXT_HOST_TOOLS);
  self->executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
  self->fds = host->get_ext(host->ctx, BH_EXT_HOST_FD);
  if (BREAKS(3054) && self->executor != NULL && self->fds == NULL) crash();
  if (BREAKS(305)) return self->tools->size > 0 ? BH_OK : BH_E_ABI; /* may be NULL */
  if (self->tools == NULL || self->executor == NULL || self->fds == NULL) {
    if (BREAKS(3052)) return BH_OK; /* start() crashes */
    if (BREAKS(3053)) return BH_E_UNSUPPORTED;
    return refuse(error, BH_E_UNSUPPORTED, "the host lacks an extension");
  }
  if (BREAKS(3034) && equals(json, "{}")) return BH_E_INTERNAL;
  if (BREAKS(3113) && self->tools->size != sizeof *self->tools) {
    return refuse(error, BH_E_ABI, "unknown version of bh.host.tools/1");
  }
  return BH_OK;
}

static void post_again(void *arg) {
  instance *self = arg;
  self->executor->post(self->host->ctx, post_again, self);
}

static void sleep_job(void *arg) {
  (void)arg;
  block(TOO_LONG_MS);
}

static void nothing_fd(void *arg, int32_t fd, uint32_t events) {
  (void)arg;
  (void)fd;
  (void)events;
}

/* Changes the process by means that rule 109 does not detect. */
static void change_state(void) {
  static char *no_variables[] = {NULL};
  if (BREAKS(312)) setlocale(LC_ALL, "C.UTF-8");
  if (BREAKS(3122)) block_signal();
  if (BREAKS(3123)) syscall(SYS_umask, 0);
  if (BREAKS(3124)) environ = no_variables;
  if (BREAKS(3125)) {
    struct {
      void (*handler)(int);
      unsigned long flags;
      void *restorer;
      uint64_t mask;
    } action = {SIG_IGN, 0, NULL, 0};
    syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof action.mask);
  }
  if (BREAKS(3126)) syscall(SYS_chdir, getenv("TMPDIR"));
}

static void start_processes(void) {
  int i;
  for (i = 0; i < 3; i++) {
    if (fork() == 0) hang();
  }
}

/* Uses data that all instances share, and that no lock protects. */
static void use_shared(const instance *self) {
  static const instance *volatile current;
  current = self;
  block(WORK_MS);
  if (current != self) crash();
}

static bh_status start(void *self_, bh_error *error) {
  instance *self = self_;
  (void)error;
  if (BREAKS(314)) use_shared(self);
  if (BREAKS(303)) crash();
  if (BREAKS(3032)) hang();
  if (BREAKS(3052)) self->executor->now_ns(self->host->ctx);
  if (BREAKS(3082)) use_wrong_thread(self);
  if (FORKS) start_processes();
  change_state();
  return BH_OK;
}

static bh_status probe(void *self_, bh_error *error) {
  const instance *self = self_;
  if (BREAKS(4093) && self->is_draining) return refuse(error, BH_E_UNAVAILABLE, "draining");
  if (BREAKS(3033) && created == 1) return BH_E_UNAVAILABLE; /* not in the trial of rule 309 */
  if (BREAKS(3092) && created == 2 && instances == 1) {      /* the other instance was destroyed */
    return refuse(error, BH_E_INTERNAL, "the shared state is gone");
  }
  return BH_OK;
}

static void drain(void *self_, uint64_t deadline_ns) {
  instance *self = self_;
  void *ctx = self->host->ctx;
  bh_watch watch;
  int i;
  (void)deadline_ns;
  self->is_draining = 1;
  for (i = 0; BREAKS(409) && i < MAX_CALLS; i++) { /* never completes the calls in flight */
    if (self->calls[i].call != 0) self->executor->timer_cancel(ctx, self->calls[i].timer);
    self->calls[i].call = 0;
  }
  if (BREAKS(307)) self->executor->timer_start(ctx, 60000, nothing, NULL);
  if (BREAKS(3072)) start_thread();
  if (BREAKS(3073) || BREAKS(3074)) self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (BREAKS(3074)) self->fds->watch(ctx, self->fd, BH_FD_READ, nothing_fd, NULL, &watch);
  if (BREAKS(3076)) post_again(self);
  if (BREAKS(3075)) self->executor->run_blocking(ctx, sleep_job, nothing, NULL);
}

static void stop(void *self_) {
  instance *self = self_;
  int i;
  atomic_store(&self->is_stopped, 1); /* the variant 410 does not wait for the pool */
  if (BREAKS(3142)) use_shared(self);
  for (i = 0; i < MAX_CALLS; i++) {
    if (self->calls[i].call == 0) continue;
    if (BREAKS(4062)) crash();
    if (!BREAKS(406)) self->executor->timer_cancel(self->host->ctx, self->calls[i].timer);
  }
}

static void destroy(void *self_) {
  instance *self = self_;
  instances--;
  if (BREAKS(310)) return;
  if (BREAKS(3084)) {
    const bh_host_executor *executor = self->host->get_ext(self->host->ctx, BH_EXT_HOST_EXECUTOR);
    if (executor != NULL) executor->now_ns(self->host->ctx);
  }
  if (!BREAKS(3093)) free(self);
}

static const void *get_ext(void *self_, const char *id) {
  instance *self = self_;
  if (BREAKS(3023) && strncmp(id, BH_EXT_TOOLS, strlen(BH_EXT_TOOLS)) == 0) return &tools_table;
  if (BREAKS(3024) && strcmp(id, "") == 0) return &tools_table;
  if (BREAKS(3025) && strcmp(id, "bh.no-such-extension/1") == 0) crash();
  if (strcmp(id, BH_EXT_TOOLS) != 0 || BREAKS(302)) return NULL;
  if (!BREAKS(3022) && !BREAKS(3026) && !BREAKS(3027)) return &tools_table;
  self->second_table = tools_table;
  if (BREAKS(3026)) self->second_table.call_cancel = NULL;
  if (BREAKS(3027)) self->second_table.size = offsetof(bh_tools, call_cancel);
  if (BREAKS(3022) && self->gets++ % 2 == 0) return &tools_table;
  return &self->second_table;
}

static instance *new_instance(void) {
  static instance only;
  if (BREAKS(3093)) return &only;
  return calloc(1, sizeof(instance));
}

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  instance *self;
  if (strcmp(id, PLUGIN_ID) != 0) {
    if (BREAKS(206)) return refuse(error, BH_E_INVALID, "unknown plugin");
    if (BREAKS(2063) && *id == '\0') crash();
    if (BREAKS(3063)) error->code = BH_E_NOT_FOUND; /* there may be no buffer */
    if (!BREAKS(2062)) return refuse(error, BH_E_NOT_FOUND, "unknown plugin");
  }
  if (BREAKS(301)) return refuse(error, BH_E_LIMIT, "no memory");
  if (BREAKS(3012)) return BH_OK;
  if (BREAKS(3015)) crash();
  if (BREAKS(309) && instances > 0) return refuse(error, BH_E_LIMIT, "there is one instance");
  if (BREAKS(311) && host->size != sizeof *host) return refuse(error, BH_E_ABI, "unknown host");
  self = new_instance();
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  if (BREAKS(308)) {
    const bh_host_executor *executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
    if (executor != NULL) executor->now_ns(host->ctx);
  }
  instances++;
  created++;
  self->host = host;
  self->plugin.size = BREAKS(3013) ? offsetof(bh_plugin, get_ext) : sizeof self->plugin;
  self->plugin.self = self;
  self->plugin.configure = configure;
  self->plugin.start = start;
  self->plugin.probe = probe;
  self->plugin.drain = drain;
  self->plugin.stop = stop;
  self->plugin.destroy = BREAKS(3014) ? NULL : destroy;
  self->plugin.get_ext = get_ext;
  *out = &self->plugin;
  return BH_OK;
}

#if BREAK == 313 || BREAK == 3132 || BREAK == 3133
__attribute__((destructor)) static void destruct(void) {
  if (BREAKS(313)) crash();
  if (BREAKS(3132)) hang();
  if (BREAKS(3133)) _exit(3);
}
#endif

/* ---- the entry ---- */

static bh_entry entries[2];

__attribute__((visibility("default"))) const bh_entry *bh_plugin_entry_v1(void);
const bh_entry *bh_plugin_entry_v1(void) {
  static int calls;
  bh_entry *entry = &entries[BREAKS(203) ? calls++ % 2 : 0];
  entry->size = BREAKS(2033) ? offsetof(bh_entry, create) : sizeof *entry;
  entry->abi_major = BREAKS(2034) ? BH_ABI_MAJOR + 9 : BH_ABI_MAJOR;
  entry->abi_minor_built = BH_ABI_MINOR;
  entry->abi_minor_needed = 0;
  entry->init = init;
  entry->deinit = BREAKS(2035) ? NULL : deinit;
  entry->count = BREAKS(2036) ? 0 : 1;
  entry->abi_rc = BREAKS(2038) ? BH_ABI_RC + 1 : BH_ABI_RC;
  entry->descriptor = descriptor;
  entry->create = create;
#if BREAKS(201)
  missing_function();
#endif
  if (BREAKS(2037)) crash();
  return BREAKS(2032) ? NULL : entry;
}
