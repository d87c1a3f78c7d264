/* A connector plugin in plain C. It connects to MCP servers over TCP, and sends and receives one
 * JSON message per line. A server's address is its `url`, for example tcp-lines://127.0.0.1:9000.
 *
 * A lane is the conversation with one server. All functions run on the gateway's reactor thread,
 * one call at a time. The gateway may call lane_send() and lane_close() inside message() and
 * lane_down(), so a lane is never freed inside a function of the lane. */
#include <bulkhead/abi/ext/connector.h>
#include <bulkhead/abi/plugin.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLUGIN_ID "hello-connector-c"
#define SCHEME "tcp-lines://"
#define TEXT(literal) {literal, sizeof literal - 1}
enum { READ_BYTES = 64 << 10, MAX_URL = 255 };

static const char schema_json[] __attribute__((section(BH_SCHEMA_SECTION), used)) =
    "{\"type\":\"object\"}";

/* Bytes that grow. */
typedef struct bytes {
  char *p;
  size_t n, size;
} bytes;

struct instance;
typedef struct lane {
  struct lane *next;
  struct instance *plugin;
  bh_lane handle;
  int fd; /* -1: closed */
  bh_watch watch;
  bh_timer timer; /* the connect timeout; 0: none */
  int connected, closing;
  bytes in, out; /* the incomplete line that was received; the bytes that wait to be sent */
} lane;

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_executor *executor;
  const bh_host_fd *fds;
  const bh_host_connector *up;
  lane *lanes;
} instance;

/* Sets the caller's error buffer, if there is one. The text is truncated if it does not fit. */
static bh_status refuse(bh_error *error, bh_status code, const char *text) {
  if (error != NULL && BH_HAS(bh_error, error, text)) {
    const size_t n = strlen(text);
    error->code = code;
    error->retry_after_ms = 0;
    error->n = (uint32_t)(n < sizeof error->text ? n : sizeof error->text);
    memcpy(error->text, text, error->n);
  }
  return code;
}

/* Makes room for `more` bytes. Returns 0 if there is no memory. */
static int reserve(bytes *b, size_t more) {
  size_t size = b->size == 0 ? 4096 : b->size;
  char *p;
  while (size - b->n < more) size *= 2;
  if (size == b->size) return 1;
  p = realloc(b->p, size);
  if (p == NULL) return 0;
  b->p = p;
  b->size = size;
  return 1;
}

static void drop_first(bytes *b, size_t n) {
  b->n -= n;
  if (b->n > 0) memmove(b->p, b->p + n, b->n);
}

static int is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies a member of a JSON object to `out`. Returns 0 if it is not a string, does not fit, or has
 * escapes, which an address does not need. */
static int text_member(bh_str json, const char *name, char *out, size_t size) {
  const char *p = json.p, *const end = json.p + json.n;
  int depth = 0;
  while (p < end) {
    const char c = *p++, *begin = p;
    size_t n;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    if (c != '"') continue;
    while (p < end && *p != '"') p += *p == '\\' && end - p > 1 ? 2 : 1;
    if (p == end) return 0;
    n = (size_t)(p++ - begin);
    while (p < end && is_space(*p)) p++;
    if (depth != 1 || p == end || *p != ':' || n != strlen(name)) continue;
    if (memcmp(begin, name, n) != 0) continue;
    for (p++; p < end && is_space(*p); p++) {
    }
    if (p == end || *p++ != '"') return 0;
    for (begin = p; p < end && *p != '"' && *p != '\\'; p++) {
    }
    n = (size_t)(p - begin);
    if (p == end || *p != '"' || n >= size) return 0;
    memcpy(out, begin, n);
    out[n] = '\0';
    return 1;
  }
  return 0;
}

/* ---- lanes ---- */

static void release(lane *it) {
  instance *self = it->plugin;
  void *ctx = self->host->ctx;
  if (it->timer != 0) self->executor->timer_cancel(ctx, it->timer);
  if (it->watch != 0) self->fds->unwatch(ctx, it->watch);
  if (it->fd >= 0) close(it->fd);
  it->timer = 0;
  it->watch = 0;
  it->fd = -1;
}

static void free_lane(lane *it) {
  lane **at = &it->plugin->lanes;
  while (*at != it) at = &(*at)->next;
  *at = it->next;
  free(it->in.p);
  free(it->out.p);
  free(it);
}

/* Releases the lane's resources. The gateway then calls lane_close(). `why` is an errno value, or
 * 0. */
static void down(lane *it, bh_status code, const char *text, int why) {
  instance *self = it->plugin;
  bh_error error = {.size = sizeof error};
  const bh_lane_failure failure = {.size = sizeof failure, .error = &error};
  char full[256];
  if (it->fd < 0) return;
  release(it);
  snprintf(full, sizeof full, "%s%s%s", text, why == 0 ? "" : ": ", why == 0 ? "" : strerror(why));
  refuse(&error, code, full);
  self->up->lane_down(self->host->ctx, it->handle, &failure);
}

static void on_connect_timeout(void *lane_) {
  lane *it = lane_;
  it->timer = 0;
  down(it, BH_E_UNAVAILABLE, "connecting timed out", 0);
}

/* Sends as much as possible. A broken connection is also readable, so receive() reports it. */
static void flush(lane *it) {
  instance *self = it->plugin;
  ssize_t n;
  if (it->out.n == 0) return;
  n = send(it->fd, it->out.p, it->out.n, MSG_NOSIGNAL);
  if (n > 0) drop_first(&it->out, (size_t)n);
  self->fds->modify(self->host->ctx, it->watch,
                    it->out.n == 0 ? BH_FD_READ : BH_FD_READ | BH_FD_WRITE);
}

static void receive(lane *it) {
  instance *self = it->plugin;
  const size_t before = it->in.n;
  size_t begin = 0, at;
  ssize_t n;
  int why;
  if (!reserve(&it->in, READ_BYTES)) {
    down(it, BH_E_LIMIT, "no memory", 0);
    return;
  }
  n = recv(it->fd, it->in.p + before, READ_BYTES, 0);
  why = errno;
  if (n < 0 && (why == EAGAIN || why == EINTR)) return;
  if (n < 0) {
    down(it, BH_E_IO, "the connection is lost", why);
    return;
  }
  if (n == 0) {
    down(it, BH_E_IO, "the server closed the connection", 0);
    return;
  }
  it->in.n += (size_t)n;
  for (at = before; at < it->in.n && it->fd >= 0; at++) {
    size_t first = begin, end = at;
    if (it->in.p[at] != '\n') continue;
    begin = at + 1;
    while (first < end && is_space(it->in.p[first])) first++;
    while (first < end && is_space(it->in.p[end - 1])) end--;
    if (first == end) continue;
    self->up->message(self->host->ctx, it->handle, 0, (bh_str){it->in.p + first, end - first});
  }
  drop_first(&it->in, begin);
  if (it->in.n > self->up->limits->message_bytes) {
    down(it, BH_E_PROTOCOL, "a message of the server is larger than limits.message_bytes", 0);
  }
}

static void on_event(void *lane_, int32_t fd, uint32_t events) {
  lane *it = lane_;
  instance *self = it->plugin;
  (void)events;
  if (!it->connected) {
    int why = 0;
    socklen_t size = sizeof why;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    if (why != 0) {
      down(it, BH_E_UNAVAILABLE, "cannot connect", why);
      return;
    }
    it->connected = 1;
    self->executor->timer_cancel(self->host->ctx, it->timer);
    it->timer = 0;
    self->fds->modify(self->host->ctx, it->watch, BH_FD_READ);
  }
  flush(it);
  receive(it);
}

/* Begins to connect to tcp-lines://ADDRESS:PORT. Name resolution would block the reactor thread, so
 * only numeric addresses are accepted. */
static bh_status connect_to(lane *it, char *url, bh_error *error) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char *host = url + strlen(SCHEME), *port = strrchr(url, ':');
  char text[256];
  int why;
  if (strncmp(url, SCHEME, strlen(SCHEME)) != 0 || port < host) host = NULL;
  if (host != NULL) {
    *port++ = '\0';
    if (host[0] == '[' && port - host > 2 && port[-2] == ']') { /* [::1] */
      port[-2] = '\0';
      host++;
    }
  }
  if (host == NULL || *host == '\0' || *port == '\0' ||
      getaddrinfo(host, port, &hints, &found) != 0) {
    return refuse(error, BH_E_INVALID,
                  "url: must be a numeric address with a port: tcp-lines://127.0.0.1:9000");
  }
  it->fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  why = errno;
  if (it->fd >= 0) {
    why =
        connect(it->fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS ? 0 : errno;
  }
  freeaddrinfo(found);
  if (it->fd >= 0 && why == 0) return BH_OK;
  snprintf(text, sizeof text, "cannot connect: %s", strerror(why));
  return refuse(error, BH_E_UNAVAILABLE, text);
}

/* ---- bh.connector/1 ---- */

static bh_status lane_open(void *self_, bh_lane handle, const bh_lane_info *info, void **out,
                           bh_error *error) {
  instance *self = self_;
  void *ctx = self->host->ctx;
  char url[MAX_URL + 1];
  bh_status status;
  lane *it = calloc(1, sizeof *it);
  if (it == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  it->next = self->lanes;
  self->lanes = it;
  it->plugin = self;
  it->handle = handle;
  it->fd = -1;
  if (!text_member(info->definition, "url", url, sizeof url)) url[0] = '\0';
  status = connect_to(it, url, error);
  if (status == BH_OK) {
    status = self->fds->watch(ctx, it->fd, BH_FD_READ | BH_FD_WRITE, on_event, it, &it->watch);
    if (status != BH_OK) refuse(error, status, "the gateway cannot watch the socket");
  }
  if (status != BH_OK) {
    release(it);
    free_lane(it);
    return status;
  }
  it->timer = self->executor->timer_start(ctx, info->connect_timeout_ms, on_connect_timeout, it);
  *out = it;
  return BH_OK;
}

/* Until the connection is established, messages are queued. */
static bh_status lane_send(void *self_, void *lane_, const bh_lane_message *message,
                           bh_error *error) {
  const instance *self = self_;
  lane *it = lane_;
  size_t size = 1;
  uint32_t i;
  if (it->fd < 0) return refuse(error, BH_E_UNAVAILABLE, "the connection is closed");
  for (i = 0; i < message->part_count; i++) size += message->parts[i].n;
  if (it->out.n + size > self->up->limits->write_queue_bytes) {
    return refuse(error, BH_E_LIMIT, "the server reads too slowly");
  }
  if (!reserve(&it->out, size)) return refuse(error, BH_E_LIMIT, "no memory");
  for (i = 0; i < message->part_count; i++) {
    const bh_str part = message->parts[i];
    uint64_t at;
    /* In JSON, line breaks occur only between tokens, so a space has the same meaning. */
    for (at = 0; at < part.n; at++) {
      const char c = part.p[at];
      it->out.p[it->out.n++] = c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  it->out.p[it->out.n++] = '\n';
  if (it->connected) flush(it);
  return BH_OK;
}

static void lane_ready(void *self, void *lane_, bh_str revision) {
  (void)self;
  (void)lane_;
  (void)revision; /* only needed for wires with headers */
}

static void lane_abandon(void *self, void *lane_, uint64_t exchange) {
  (void)self;
  (void)lane_;
  (void)exchange; /* the server's response is ignored by the host */
}

static void on_closed(void *lane_) {
  lane *it = lane_;
  const instance *self = it->plugin;
  const bh_lane handle = it->handle;
  free_lane(it);
  self->up->lane_closed(self->host->ctx, handle);
}

static void lane_close(void *self_, void *lane_) {
  const instance *self = self_;
  lane *it = lane_;
  release(it);
  it->closing = 1;
  self->executor->defer(self->host->ctx, on_closed, it);
}

static const bh_connector connector_table = {
    sizeof(bh_connector), 0, lane_open, lane_send, lane_ready, lane_abandon, lane_close};

/* ---- instance lifecycle ---- */

static bh_status configure(void *self_, bh_str config_json, bh_error *error) {
  instance *self = self_;
  const bh_host *host = self->host;
  (void)config_json;
  self->executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
  self->fds = host->get_ext(host->ctx, BH_EXT_HOST_FD);
  self->up = host->get_ext(host->ctx, BH_EXT_HOST_CONNECTOR);
  if (self->executor == NULL || self->fds == NULL || self->up == NULL || self->up->limits == NULL) {
    return refuse(error, BH_E_UNSUPPORTED,
                  "this host does not support connectors or has no reactor");
  }
  return BH_OK;
}

static bh_status start(void *self, bh_error *error) {
  (void)self;
  (void)error;
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

static void stop(void *self_) {
  instance *self = self_;
  while (self->lanes != NULL) {
    lane *it = self->lanes;
    const bh_lane handle = it->handle;
    const int closing = it->closing;
    release(it);
    free_lane(it);
    if (closing) self->up->lane_closed(self->host->ctx, handle);
  }
}

static void destroy(void *self) {
  free(self);
}

static const void *get_ext(void *self, const char *id) {
  (void)self;
  return strcmp(id, BH_EXT_CONNECTOR) == 0 ? &connector_table : NULL;
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
  static const char *const provides[] = {BH_EXT_CONNECTOR, NULL};
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
