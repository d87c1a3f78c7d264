/* A connector whose server answers nothing. It accepts only the definition {"target":"test"}.
 * Violates a rule of connectors if it is built with -DBREAK=NUMBER. */
#include "bulkhead/abi/ext/connector.h"

#include "fixture.h"

enum { MAX_LANES = 16 };

typedef struct lane {
  bh_lane id; /* 0: unused */
  uint64_t sent, sent_bytes;
  bh_timer timer; /* when the server is asked again */
} lane;

typedef struct instance {
  struct base base;
  lane lanes[MAX_LANES];
  int is_draining;
} instance;

static void nothing(void *arg) {
  (void)arg;
}

static bh_status check_definition(bh_str json, bh_error *error) {
  if (equals(json, "{\"target\":\"test\"}")) return BH_OK;
  if (BREAKS(703) && equals(json, "null")) crash();
  if (BREAKS(7032) && equals(json, "[]")) return BH_E_INVALID;
  if (BREAKS(7033) && json.n > 1 << 20) hang();
  if (BREAKS(7034) && equals(json, "{}")) return refuse(error, BH_E_INVALID, "\xff");
  return refuse(error, BH_E_INVALID, "use the definition {\"target\":\"test\"}");
}

static bh_status lane_open(void *self_, bh_lane id, const bh_lane_info *info, void **out,
                           bh_error *error) {
  instance *self = self_;
  const bh_status status = check_definition(info->definition, error);
  int i;
  if (status < 0) return status;
  if (BREAKS(7014) && id == 2) crash();
  for (i = 0; i < MAX_LANES && self->lanes[i].id != 0; i++) {
  }
  if (i == MAX_LANES) return refuse(error, BH_E_LIMIT, "too many lanes");
  memset(&self->lanes[i], 0, sizeof(lane));
  self->lanes[i].id = id;
  self->lanes[i].timer =
      self->base.executor->timer_start(self->base.host->ctx, 60000, nothing, NULL);
  *out = &self->lanes[i];
  return BH_OK;
}

static bh_status lane_send(void *self_, void *lane_, const bh_lane_message *message,
                           bh_error *error) {
  const instance *self = self_;
  lane *to = lane_;
  uint32_t i;
  if (BREAKS(7022) && to->sent == 1) block(TOO_LONG_MS);
  if (BREAKS(7023) && message->kind == BH_LANE_RESPONSE) crash();
  for (i = 0; i < message->part_count; i++) to->sent_bytes += message->parts[i].n;
  to->sent++;
  if (BREAKS(7024) && to->sent_bytes > 1 << 20) return BH_E_LIMIT;
  if (to->sent_bytes > ((const bh_host_connector *)self->base.kind)->limits->write_queue_bytes) {
    return refuse(error, BH_E_LIMIT, "the queue is full");
  }
  return BH_OK;
}

static void lane_ready(void *self, void *lane_, bh_str revision) {
  (void)self;
  (void)lane_;
  if (BREAKS(7025) && revision.n == 0) crash();
}

static void lane_abandon(void *self, void *lane_, uint64_t exchange) {
  (void)self;
  (void)lane_;
  if (BREAKS(702) && exchange > 1000) crash();
}

static void lane_close(void *self_, void *lane_) {
  instance *self = self_;
  lane *closed = lane_;
  const bh_host_connector *host = self->base.kind;
  void *ctx = self->base.host->ctx;
  const bh_lane id = closed->id;
  const int is_idle = closed->sent == 0;
  closed->id = 0;
  self->base.executor->timer_cancel(ctx, closed->timer);
  if (BREAKS(7042) && self->is_draining) return;
  if (BREAKS(7013)) {
    bh_error error = {.size = sizeof error};
    const bh_lane_failure failure = {.size = sizeof failure, .error = &error};
    refuse(&error, BH_E_IO, "closed");
    host->lane_down(ctx, id, &failure);
  }
  if (BREAKS(7012) && is_idle) return;
  host->lane_closed(ctx, id);
  if (BREAKS(701)) host->lane_closed(ctx, id);
}

static void stop_work(instance *self) {
  int i;
  for (i = 0; i < MAX_LANES && !BREAKS(704); i++) {
    if (self->lanes[i].id == 0) continue;
    self->base.executor->timer_cancel(self->base.host->ctx, self->lanes[i].timer);
  }
}

static void drain_work(instance *self) {
  self->is_draining = 1;
}

static const bh_connector table = {
    sizeof(bh_connector), 0, lane_open, lane_send, lane_ready, lane_abandon, lane_close};

#define EXTENSION BH_EXT_CONNECTOR
#define HOST_EXTENSION BH_EXT_HOST_CONNECTOR
#include "lifecycle.h"
