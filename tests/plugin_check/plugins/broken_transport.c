/* A transport that listens on a pipe, to which no client writes. Violates a rule of transports if
 * it is built with -DBREAK=NUMBER. */
#include "bulkhead/abi/ext/transport.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "fixture.h"

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

static bh_status listen_(void *self_, bh_error *error) {
  instance *self = self_;
  pthread_t thread;
  if (BREAKS(8012)) return BH_E_IO;
  if (BREAKS(8016) && pthread_create(&thread, NULL, sleep_forever, NULL) == 0) {
    pthread_detach(thread);
  }
  if (pipe2(self->pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0) {
    return refuse(error, BH_E_IO, "cannot create a pipe");
  }
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
  close(self->pipe_fds[1]);
}

static bh_status send_(void *self, const bh_outgoing *message) {
  (void)self;
  if (BREAKS(802)) return BH_OK;
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

static const bh_transport table = {sizeof(bh_transport), 0,       listen_, stop_accepting, send_,
                                   session_ended,        endpoint};

#define EXTENSION BH_EXT_TRANSPORT
#define HOST_EXTENSION BH_EXT_HOST_TRANSPORT
#include "lifecycle.h"
