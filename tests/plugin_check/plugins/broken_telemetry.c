/* A telemetry plugin that counts records and, after some milliseconds, reports them as committed.
 * Violates a rule of telemetry plugins if it is built with -DBREAK=NUMBER. */
#include "bulkhead/abi/ext/telemetry.h"

#include "fixture.h"

enum { WORK_MS = 10 };

typedef struct instance {
  struct base base;
  uint64_t stored; /* the number of the last record */
  uint32_t calls_of_needs;
  bh_timer timer; /* 0: not running */
  int is_draining;
} instance;

static uint32_t needs(void *self_) {
  instance *self = self_;
  uint32_t bits = BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS;
  if (BREAKS(601)) bits |= 1u << 20;
  if (BREAKS(6012) && self->calls_of_needs++ > 0) bits |= BH_TELEMETRY_TEXTS;
  if (BREAKS(6044)) bits = BH_TELEMETRY_EVENTS;
  return bits;
}

static void commit(const instance *self) {
  const bh_host_telemetry *host = self->base.kind;
  uint64_t below = self->stored + 1;
  if (BREAKS(6043)) return;
  if (BREAKS(604)) below += 1000;
  host->committed(self->base.host->ctx, below);
  if (BREAKS(6042)) host->committed(self->base.host->ctx, below - 1);
}

static void on_timer(void *self_) {
  instance *self = self_;
  self->timer = 0;
  commit(self);
}

static void check_record(const bh_record *record) {
  if (BREAKS(603) && record->kind > BH_RECORD_PLUGIN) crash();
  if (BREAKS(6032) && record->kind == BH_RECORD_POLICY && equals(record->detail, "{")) crash();
  if (BREAKS(6033) && BH_HAS(bh_record, record, request) &&
      record->request.n == BH_RECORD_TEXT_BYTES) {
    hang();
  }
}

static uint32_t batch(void *self_, const bh_record *const *records, uint32_t n) {
  instance *self = self_;
  uint32_t i;
  if (BREAKS(6022) && n == 7) block(TOO_LONG_MS);
  if (BREAKS(6023) && n == 512) crash();
  for (i = 0; i < n; i++) {
    check_record(records[i]);
    if (records[i]->number > self->stored) self->stored = records[i]->number;
  }
  if (BREAKS(6053) && self->is_draining) crash();
  if (n > 0 && self->timer == 0 && !(BREAKS(605) && self->is_draining)) {
    self->timer = self->base.executor->timer_start(self->base.host->ctx, WORK_MS, on_timer, self);
  }
  return BREAKS(602) ? n + 1 : n;
}

static void stop_work(instance *self) {
  if (self->timer == 0 || BREAKS(6052)) return;
  self->base.executor->timer_cancel(self->base.host->ctx, self->timer);
  commit(self);
}

static void drain_work(instance *self) {
  self->is_draining = 1;
  if (BREAKS(605) && self->timer != 0) { /* the records are never committed */
    self->base.executor->timer_cancel(self->base.host->ctx, self->timer);
    self->timer = 0;
  }
}

static const bh_telemetry table = {sizeof(bh_telemetry), 0, batch, needs};

#define EXTENSION BH_EXT_TELEMETRY
#define HOST_EXTENSION BH_EXT_HOST_TELEMETRY
#include "lifecycle.h"
