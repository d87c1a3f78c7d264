/* A transport plugin in plain C. Clients of the gateway's user connect to a Unix socket, and send
 * and receive one JSON-RPC message per line. Each connection is one session.
 *
 * All functions that handle messages run on the gateway's reactor thread, one call at a time. The
 * gateway may call send() and session_ended() inside deliver(), so a connection that is closed is
 * freed only at the end of the event loop iteration. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for accept4() */
#endif
#include <bulkhead/abi/ext/draft/listen.h>
#include <bulkhead/abi/ext/transport.h>
#include <bulkhead/abi/plugin.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PLUGIN_ID "hello-transport-c"
#define TEXT(literal) {literal, sizeof literal - 1}
#define LISTEN_RULE \
  "must be the absolute path of a Unix socket, at most 107 of the characters A-Z a-z 0-9 _ . / -"
enum { READ_BYTES = 64 << 10, ACCEPT_PAUSE_MS = 1000, MAX_PATH = 107 };

/* The JSON Schema for the configuration. The gateway reads it from this section of the file, and
 * rejects an invalid configuration before it loads the plugin. */
static const char schema_json[] __attribute__((section(BH_SCHEMA_SECTION), used)) =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"listen\"],"
    "\"properties\":{\"listen\":{\"type\":\"string\",\"pattern\":\"^/[A-Za-z0-9_./-]{1,106}$\","
    "\"description\":\"" LISTEN_RULE "\"}}}";

/* Bytes that grow. */
typedef struct bytes {
  char *p;
  size_t n, size;
} bytes;

struct instance;
typedef struct connection {
  struct connection *next;
  struct instance *plugin;
  int fd; /* -1: closed; sweep() frees the connection */
  bh_watch watch;
  bh_timer stalled; /* runs while the client does not read; 0: none */
  bh_session session;
  uint64_t open; /* requests whose response has not been sent */
  int input_ended;
  bytes in, out; /* the incomplete line that was received; the bytes that wait to be sent */
} connection;

typedef struct instance {
  bh_plugin plugin;
  const bh_host *host;
  const bh_host_executor *executor;
  const bh_host_fd *fds;
  const bh_host_transport *up;
  const bh_host_listen *sockets;
  char path[MAX_PATH + 1], endpoint[MAX_PATH + 6];
  int32_t listener; /* -1: closed */
  bh_watch watch;
  bh_timer pause; /* runs while no client is accepted; 0: none */
  int sweeping;   /* sweep() is deferred */
  connection *connections;
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

static void warn(const instance *self, const char *text) {
  self->host->log(self->host->ctx, BH_LOG_WARN, str(text));
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

/* ---- connections ---- */

static void sweep(void *self_) {
  instance *self = self_;
  connection **at = &self->connections;
  self->sweeping = 0;
  while (*at != NULL) {
    connection *it = *at;
    if (it->fd >= 0) {
      at = &it->next;
      continue;
    }
    *at = it->next;
    free(it->in.p);
    free(it->out.p);
    free(it);
  }
}

/* Closes the connection and its session. sweep() frees the connection later. */
static void close_connection(connection *it) {
  instance *self = it->plugin;
  void *ctx = self->host->ctx;
  const bh_session session = it->session;
  if (it->fd < 0) return;
  if (it->stalled != 0) self->executor->timer_cancel(ctx, it->stalled);
  if (it->watch != 0) self->fds->unwatch(ctx, it->watch);
  close(it->fd);
  it->fd = -1;
  it->session = 0;
  if (session != 0) self->up->session_close(ctx, session, BH_SESSION_GONE);
  if (self->sweeping) return;
  self->sweeping = 1;
  self->executor->defer(ctx, sweep, self);
}

static void on_stalled(void *connection_) {
  connection *it = connection_;
  it->stalled = 0;
  close_connection(it);
}

/* Sends as much as possible. Closes the connection after the last response if the client has ended
 * its input, and if the client reads nothing for write_stall_ms. */
static void flush(connection *it) {
  instance *self = it->plugin;
  void *ctx = self->host->ctx;
  const ssize_t n = it->out.n == 0 ? 0 : send(it->fd, it->out.p, it->out.n, MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    close_connection(it);
    return;
  }
  if (n > 0) {
    drop_first(&it->out, (size_t)n);
    if (it->stalled != 0) self->executor->timer_cancel(ctx, it->stalled);
    it->stalled = 0;
  }
  if (it->out.n == 0 && it->input_ended && it->open == 0) {
    close_connection(it);
    return;
  }
  if (it->out.n > 0 && it->stalled == 0) {
    it->stalled =
        self->executor->timer_start(ctx, self->up->limits->write_stall_ms, on_stalled, it);
  }
  self->fds->modify(ctx, it->watch,
                    (it->input_ended ? 0u : BH_FD_READ) | (it->out.n == 0 ? 0u : BH_FD_WRITE));
}

static void deliver(connection *it, bh_str line) {
  instance *self = it->plugin;
  const bh_incoming message = {.size = sizeof message, .session = it->session, .message = line};
  bh_delivery delivery = {.size = sizeof delivery};
  bh_status status;
  it->open++; /* send_message() counts the responses, which may be sent inside deliver() */
  status = self->up->deliver(self->host->ctx, &message, &delivery);
  if (status == BH_OK && delivery.kind == BH_DELIVERED_NOTHING && it->open > 0) it->open--;
  if (status != BH_OK) close_connection(it);
}

static void receive(connection *it) {
  instance *self = it->plugin;
  const size_t before = it->in.n;
  size_t begin = 0, at;
  ssize_t n;
  if (!reserve(&it->in, READ_BYTES)) {
    close_connection(it);
    return;
  }
  n = recv(it->fd, it->in.p + before, READ_BYTES, 0);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) close_connection(it);
    return;
  }
  if (n == 0) { /* requests in flight are still answered; see flush() */
    it->input_ended = 1;
    self->up->session_close(self->host->ctx, it->session, BH_SESSION_INPUT_ENDED);
    return;
  }
  it->in.n += (size_t)n;
  for (at = before; at < it->in.n && it->fd >= 0; at++) {
    size_t first = begin, end = at;
    if (it->in.p[at] != '\n') continue;
    begin = at + 1;
    while (first < end && is_space(it->in.p[first])) first++;
    while (first < end && is_space(it->in.p[end - 1])) end--;
    if (first < end) deliver(it, (bh_str){it->in.p + first, end - first});
  }
  drop_first(&it->in, begin);
  if (it->fd >= 0 && it->in.n > self->up->limits->message_bytes) {
    warn(self, "a client sent a message larger than limits.message_bytes");
    close_connection(it);
  }
}

static void on_event(void *connection_, int32_t fd, uint32_t events) {
  connection *it = connection_;
  (void)fd;
  if ((events & BH_FD_READ) != 0) receive(it);
  if (it->fd >= 0 && (events & (BH_FD_READ | BH_FD_ERROR)) == BH_FD_ERROR) close_connection(it);
  if (it->fd >= 0) flush(it);
}

static void resume_accepting(void *self_) {
  instance *self = self_;
  self->pause = 0;
  self->fds->modify(self->host->ctx, self->watch, BH_FD_READ);
}

static void on_client(void *self_, int32_t listener, uint32_t events) {
  instance *self = self_;
  void *ctx = self->host->ctx;
  bh_peer peer = {.size = sizeof peer, .transport = str("unix")};
  bh_error error = {.size = sizeof error};
  connection *it;
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  (void)events;
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    /* Without a free descriptor, the socket would be reported as readable in every iteration. */
    warn(self, "accepting no clients for a second: no descriptor or memory is available");
    self->fds->modify(ctx, self->watch, 0);
    self->pause = self->executor->timer_start(ctx, ACCEPT_PAUSE_MS, resume_accepting, self);
    return;
  }
  it = calloc(1, sizeof *it);
  if (it == NULL) {
    close(fd);
    return;
  }
  it->next = self->connections;
  self->connections = it;
  it->plugin = self;
  it->fd = fd;
  if (self->up->session_open(ctx, &peer, &it->session, &error) != BH_OK) {
    warn(self, "a client was rejected: the gateway accepts no session at the moment");
    it->session = 0;
    close_connection(it);
  } else if (self->fds->watch(ctx, fd, BH_FD_READ, on_event, it, &it->watch) != BH_OK) {
    close_connection(it);
  }
}

/* ---- bh.transport/1 ---- */

static void stop_accepting(void *self_) {
  instance *self = self_;
  void *ctx = self->host->ctx;
  if (self->pause != 0) self->executor->timer_cancel(ctx, self->pause);
  if (self->watch != 0) self->fds->unwatch(ctx, self->watch);
  if (self->listener >= 0) close(self->listener);
  self->pause = 0;
  self->watch = 0;
  self->listener = -1;
}

/* The gateway creates the socket, with mode 0600, and removes its file. */
static bh_status listen_(void *self_, bh_error *error) {
  instance *self = self_;
  void *ctx = self->host->ctx;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  bh_status status;
  memcpy(address.sun_path, self->path, strlen(self->path) + 1);
  status = self->sockets->open(ctx, &address, sizeof address, str(self->endpoint), &self->listener,
                               error);
  if (status != BH_OK) return status;
  status = self->fds->watch(ctx, self->listener, BH_FD_READ, on_client, self, &self->watch);
  if (status == BH_OK) return BH_OK;
  stop_accepting(self);
  return refuse(error, status, "the gateway cannot watch the socket");
}

static connection *find(const instance *self, bh_session session) {
  connection *it = self->connections;
  while (it != NULL && (it->fd < 0 || it->session != session)) it = it->next;
  return it;
}

static bh_status send_message(void *self_, const bh_outgoing *message) {
  const instance *self = self_;
  connection *it = message->session == 0 ? NULL : find(self, message->session);
  size_t size = 1;
  uint32_t i;
  if (it == NULL) return BH_STALE;
  if (message->kind == BH_OUT_ANSWER && it->open > 0) it->open--;
  for (i = 0; i < message->part_count; i++) size += message->parts[i].n;
  if (it->out.n + size > self->up->limits->write_queue_bytes || !reserve(&it->out, size)) {
    close_connection(it);
    return BH_E_LIMIT;
  }
  for (i = 0; i < message->part_count; i++) {
    const bh_str part = message->parts[i];
    uint64_t at;
    /* In JSON, line breaks occur only between tokens, so a space has the same meaning. */
    for (at = 0; at < part.n; at++) {
      const char c = part.p[at];
      it->out.p[it->out.n++] = c == '\n' || c == '\r' ? ' ' : c;
    }
  }
  /* Without parts, the client has cancelled the request. */
  if (message->part_count > 0) it->out.p[it->out.n++] = '\n';
  flush(it);
  return BH_OK;
}

static void session_ended(void *self, bh_session session, bh_str reason) {
  connection *it = session == 0 ? NULL : find(self, session);
  (void)reason;
  if (it == NULL) return;
  it->session = 0; /* the host has closed it already */
  flush(it);
  close_connection(it);
}

static bh_str endpoint(void *self_) {
  const instance *self = self_;
  return str(self->endpoint);
}

static const bh_transport transport_table = {
    sizeof(bh_transport), 0, listen_, stop_accepting, send_message, session_ended, endpoint};

/* ---- instance lifecycle ---- */

/* A cursor in a JSON text. */
typedef struct cursor {
  const char *p;
  const char *end;
} cursor;

/* Skips white space and then `text`. Returns 0 if the input continues with something else. */
static int skip(cursor *in, const char *text) {
  const size_t n = strlen(text);
  while (in->p < in->end && is_space(*in->p)) in->p++;
  if ((size_t)(in->end - in->p) < n || memcmp(in->p, text, n) != 0) return 0;
  in->p += n;
  return 1;
}

/* Reads {"listen":"/path"}. Returns 0 if the text is anything else. The schema allows no other key,
 * and in the value only characters that need no escapes. */
static int read_config(bh_str json, char path[MAX_PATH + 1]) {
  static const char allowed[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  cursor in = {json.p, json.p + json.n};
  size_t n = 0;
  if (!skip(&in, "{") || !skip(&in, "\"listen\"") || !skip(&in, ":") || !skip(&in, "\"")) return 0;
  while (in.p < in.end && *in.p != '\0' && strchr(allowed, *in.p) != NULL && n < MAX_PATH) {
    path[n++] = *in.p++;
  }
  path[n] = '\0';
  if (n < 2 || path[0] != '/' || in.p == in.end || *in.p++ != '"') return 0;
  return skip(&in, "}") && skip(&in, "") && in.p == in.end;
}

static bh_status configure(void *self_, bh_str config_json, bh_error *error) {
  instance *self = self_;
  const bh_host *host = self->host;
  self->executor = host->get_ext(host->ctx, BH_EXT_HOST_EXECUTOR);
  self->fds = host->get_ext(host->ctx, BH_EXT_HOST_FD);
  self->up = host->get_ext(host->ctx, BH_EXT_HOST_TRANSPORT);
  self->sockets = host->get_ext(host->ctx, BH_EXT_HOST_LISTEN);
  if (self->executor == NULL || self->fds == NULL || self->up == NULL || self->up->limits == NULL ||
      self->sockets == NULL) {
    return refuse(error, BH_E_UNSUPPORTED,
                  "this host does not support transports or listening sockets");
  }
  if (!read_config(config_json, self->path)) {
    return refuse(error, BH_E_INVALID, "listen: " LISTEN_RULE);
  }
  snprintf(self->endpoint, sizeof self->endpoint, "unix:%s", self->path);
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
  connection *it;
  stop_accepting(self);
  self->sweeping = 1; /* nothing is deferred any longer */
  for (it = self->connections; it != NULL; it = it->next) close_connection(it);
  sweep(self);
}

static void destroy(void *self) {
  free(self);
}

static const void *get_ext(void *self, const char *id) {
  (void)self;
  return strcmp(id, BH_EXT_TRANSPORT) == 0 ? &transport_table : NULL;
}

/* ---- exports ---- */

static bh_status create(const char *id, const bh_host *host, const bh_plugin **out,
                        bh_error *error) {
  instance *self;
  if (strcmp(id, PLUGIN_ID) != 0) return refuse(error, BH_E_NOT_FOUND, "unknown plugin");
  self = calloc(1, sizeof *self);
  if (self == NULL) return refuse(error, BH_E_LIMIT, "no memory");
  self->host = host;
  self->listener = -1;
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
  static const char *const provides[] = {BH_EXT_TRANSPORT, NULL};
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
