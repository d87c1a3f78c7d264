/* A policy that allows each call. It observes results after some milliseconds. Violates a rule of
 * policies if it is built with -DBREAK=NUMBER. */
#include "bulkhead/abi/ext/draft/state.h"
#include "bulkhead/abi/ext/policy.h"

#include "fixture.h"

enum { MAX_PENDING = 16, WORK_MS = 10 };

struct instance;
typedef struct pending {
  struct instance *self;
  uint64_t exchange; /* 0: unused */
  bh_timer timer;
} pending;

typedef struct instance {
  struct base base;
  uint32_t calls_of_needs, extra_needs;
  int is_draining;
  pending decisions[MAX_PENDING];
} instance;

static const bh_host_policy *host_of(const instance *self) {
  return self->base.kind;
}

static uint32_t needs(void *self_) {
  instance *self = self_;
  uint32_t bits = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS | BH_POLICY_FILTERS_LISTS |
                  BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT;
  if (BREAKS(501)) bits |= 1u << 30;
  if (BREAKS(5012) && self->calls_of_needs++ > 0) bits |= BH_POLICY_READS_DEFINITION;
  return bits | self->extra_needs;
}

static void report_allowed(const instance *self, uint64_t exchange) {
  bh_verdict verdict = {.size = sizeof verdict, .verdict = BH_VERDICT_ALLOW};
  host_of(self)->decided(self->base.host->ctx, exchange, &verdict);
}

static void on_timer(void *arg) {
  pending *p = arg;
  const uint64_t exchange = p->exchange;
  p->exchange = 0;
  report_allowed(p->self, exchange);
}

/* Decides after some milliseconds. */
static bh_status decide_later(instance *self, uint64_t exchange, bh_error *error) {
  int i;
  for (i = 0; i < MAX_PENDING && self->decisions[i].exchange != 0; i++) {
  }
  if (i == MAX_PENDING) return refuse(error, BH_E_LIMIT, "too many decisions");
  self->decisions[i].self = self;
  self->decisions[i].exchange = exchange;
  self->decisions[i].timer = self->base.executor->timer_start(self->base.host->ctx, WORK_MS,
                                                              on_timer, &self->decisions[i]);
  return BH_PENDING;
}

/* A request that only the trial of rule 502 makes. */
static bh_status decide_prompt(bh_verdict *out, bh_error *error) {
  if (BREAKS(502)) out->verdict = 9;
  if (BREAKS(5022)) out->reason = text("\xff\xfe");
  if (BREAKS(5023)) {
    out->verdict = BH_VERDICT_REWRITE;
    out->arguments = text("{\"path\":");
  }
  if (BREAKS(5024)) return BH_E_INTERNAL;
  if (BREAKS(5025)) crash();
  if (BREAKS(5026)) out->verdict = 0;
  if (BREAKS(5027)) return refuse(error, BH_E_INTERNAL, "\xff\xfe");
  return BH_OK;
}

static bh_status decide(void *self, const bh_policy_request *request, bh_verdict *out,
                        bh_error *error) {
  (void)self;
  out->verdict = BH_VERDICT_ALLOW;
  if (BREAKS(503) && request->method.n == 0) crash();
  if (BREAKS(5032) && request->arguments.n > 1 << 20) return BH_E_LIMIT;
  if (BREAKS(5033) && equals(request->arguments, "null")) hang();
  if (request->event > BH_EVENT_NOTIFICATION && !BREAKS(507)) {
    out->verdict = BH_VERDICT_BLOCK;
    out->reason = text("unknown event");
  }
  return equals(request->method, "prompts/get") ? decide_prompt(out, error) : BH_OK;
}

static bh_status observe(void *self_, const bh_policy_request *request, bh_str result,
                         bh_verdict *out, bh_error *error) {
  instance *self = self_;
  out->verdict = BH_VERDICT_ALLOW;
  if (equals(result, "{}")) { /* only in the trial of rule 504 */
    if (BREAKS(504)) out->verdict = BH_VERDICT_ASK;
    if (BREAKS(5042)) out->verdict = 77;
    if (BREAKS(5043)) {
      out->verdict = BH_VERDICT_REWRITE;
      out->arguments = text("no JSON");
    }
  }
  if (!equals(result, "{\"content\":[]}")) return BH_OK; /* only in those of rules 505 and 508 */
  if (BREAKS(5083) && self->is_draining) crash();
  if (BREAKS(5053)) return BH_PENDING;
  if (BREAKS(505)) report_allowed(self, request->exchange);
  if (BREAKS(505) || BREAKS(5052)) report_allowed(self, request->exchange);
  if (BREAKS(5052)) return BH_OK;
  return BREAKS(505) ? BH_PENDING : decide_later(self, request->exchange, error);
}

static bh_status filter(void *self_, const bh_policy_request *request, bh_error *error) {
  (void)error;
  const instance *self = self_;
  if (!BREAKS(5054)) return BH_OK;
  host_of(self)->filtered(self->base.host->ctx, request->exchange, 1);
  host_of(self)->filtered(self->base.host->ctx, request->exchange, 0);
  return BH_PENDING;
}

static bh_status reconfigure(void *self_, bh_str json, bh_error *error) {
  instance *self = self_;
  const int is_object = json.n >= 2 && json.p[0] == '{' && json.p[json.n - 1] == '}';
  if (is_object && BREAKS(506)) return refuse(error, BH_E_INVALID, "it has not changed");
  if (is_object) return BH_OK;
  if (BREAKS(5062) && equals(json, "null")) return BH_OK;
  if (BREAKS(5063)) self->extra_needs = BH_POLICY_READS_DEFINITION;
  if (BREAKS(5064)) crash();
  if (BREAKS(5065)) return BH_E_INVALID;
  return refuse(error, BH_E_INVALID, "the configuration must be a JSON object");
}

static void cancel_all(instance *self) {
  int i;
  for (i = 0; i < MAX_PENDING; i++) {
    if (self->decisions[i].exchange == 0) continue;
    self->base.executor->timer_cancel(self->base.host->ctx, self->decisions[i].timer);
    self->decisions[i].exchange = 0;
  }
}

/* The state is one byte. */
static bh_status export_state(void *self_, bh_state_blob *out, bh_error *error) {
  static char count = 7;
  (void)self_;
  if (BREAKS(509)) return refuse(error, BH_E_INTERNAL, "no state");
  out->schema = text(BREAKS(5092) ? "" : "test.count");
  out->version = 1;
  out->bytes.p = &count;
  out->bytes.n = BREAKS(5093) ? BH_STATE_BYTES + 1 : 1;
  return BH_OK;
}

static bh_status import_state(void *self_, const bh_state_blob *blob, bh_error *error) {
  (void)self_;
  if (BREAKS(5094)) return refuse(error, BH_E_INVALID, "no state is accepted");
  if (BREAKS(5095)) return BH_OK;
  if (!equals(blob->schema, "test.count") || blob->version != 1 || blob->fd_count != 0) {
    return refuse(error, BH_E_INVALID, "the state has an unknown format");
  }
  if (BREAKS(5096) && blob->bytes.n == 0) crash();
  if (BREAKS(5097) && blob->bytes.n != 1) return BH_E_INVALID;
  if (blob->bytes.n != 1) return refuse(error, BH_E_INVALID, "the state is malformed");
  return BH_OK;
}

static const bh_state second_table = {sizeof(bh_state), 0, export_state, import_state};

static void stop_work(instance *self) {
  if (!BREAKS(5082)) cancel_all(self);
}

static void drain_work(instance *self) {
  self->is_draining = 1;
  if (BREAKS(508)) cancel_all(self); /* the decisions are never reported */
}

/* needs() of the variant 5012 changes, which reconfigure() must not cause. */
static const bh_policy table = {
    sizeof(bh_policy), 0, needs, decide, observe, filter, BREAKS(5012) ? NULL : reconfigure};

#define EXTENSION BH_EXT_POLICY
#define SECOND_EXTENSION BH_EXT_STATE
#define HOST_EXTENSION BH_EXT_HOST_POLICY
#include "lifecycle.h"
