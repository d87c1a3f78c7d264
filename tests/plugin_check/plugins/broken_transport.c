/* A transport that listens on a pipe, to which no client writes, or on a socket of the host.
 * Violates a rule of transports if it is built with -DBREAK=NUMBER. */
#include "bulkhead/abi/ext/draft/listen.h"
#include "bulkhead/abi/ext/transport.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/un.h>
#include <unistd.h>

#include "fixture.h"

/* The variants with a socket. 1 violates no rule. */
#define LISTENS_ON_PORT (BREAKS(1) || BREAKS(8025))
#define LISTENS_ON_PATH BREAKS(8026)

typedef struct instance {
  struct base base;
  int is_listening;
  int pipe_fds[2];
  bh_watch watch;
} instance;

static void on_ready(void *self, int32_t fd, uint32_t events) {
  (void)self;
  (void)fd;
  (void)events;
}

static void *sleep_forever(void *arg) {
  (void)arg;
  hang();
  return NULL;
}

static bh_status open_socket(instance *self, bh_error *error) {
  const struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(4711)};
  const struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "/run/test.sock"};
  const bh_host *host = self->base.host;
  const bh_host_listen *sockets = host->get_ext(host->ctx, BH_EXT_HOST_LISTEN);
  int32_t fd = -1;
  bh_status status;
  if (sockets == NULL) return refuse(error, BH_E_UNSUPPORTED, "the host lacks an extension");
  status = LISTENS_ON_PORT
               ? sockets->open(host->ctx, &port, sizeof port, text("port 4711"), &fd, error)
               : sockets->open(host->ctx, &path, sizeof path, text("the path"), &fd, error);
  self->pipe_fds[0] = fd;
  self->pipe_fds[1] = -1;
  return status;
}

static bh_status open_pipe(instance *self, bh_error *error) {
  if (pipe2(self->pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0) return BH_OK;
  return refuse(error, BH_E_IO, "cannot create a pipe");
}

static bh_status listen_(void *self_, bh_error *error) {
  instance *self = self_;
  pthread_t thread;
  bh_status status;
  if (BREAKS(8012)) return BH_E_IO;
  if (BREAKS(8016) && pthread_create(&thread, NULL, sleep_forever, NULL) == 0) {
    pthread_detach(thread);
  }
  status = LISTENS_ON_PORT || LISTENS_ON_PATH ? open_socket(self, error) : open_pipe(self, error);
  if (status < 0) return status;
  self->is_listening = 1;
  return self->base.fds->watch(self->base.host->ctx, self->pipe_fds[0], BH_FD_READ, on_ready, self,
                               &self->watch);
}

static void stop_accepting(void *self_) {
  instance *self = self_;
  if (!self->is_listening || BREAKS(801)) return;
  self->is_listening = 0;
  self->base.fds->unwatch(self->base.host->ctx, self->watch);
  close(self->pipe_fds[0]);
  if (self->pipe_fds[1] >= 0) close(self->pipe_fds[1]);
}

static bh_status send_(void *self, const bh_outgoing *message) {
  (void)self;
  if (BREAKS(802) || BREAKS(8025) || BREAKS(8026)) return BH_OK;
  if (BREAKS(8022) && message->session == 0) crash();
  if (BREAKS(8023) && message->kind == BH_OUT_EVENT) return BH_PENDING;
  return BH_STALE; /* no client has connected */
}

static void session_ended(void *self, bh_session session, bh_str reason) {
  (void)self;
  (void)reason;
  if (BREAKS(8024) && session == ~(bh_session)0) crash();
}

static bh_str endpoint(void *self) {
  (void)self;
  if (BREAKS(8014)) crash();
  return text(BREAKS(8013) ? "pipe:\xff" : "pipe");
}

static void stop_work(instance *self) {
  stop_accepting(self);
}

static void drain_work(instance *self) {
  (void)self;
}

static const bh_transport table = {sizeof(bh_transport), 0,       listen_, stop_accepting, send_,
                                   session_ended,        endpoint};

#define EXTENSION BH_EXT_TRANSPORT
#define HOST_EXTENSION BH_EXT_HOST_TRANSPORT
#include "lifecycle.h"
