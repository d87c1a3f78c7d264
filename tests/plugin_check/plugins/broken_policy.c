/* A policy that allows each call. Violates a rule of policies if it is built with -DBREAK=NUMBER.
 */
#include "bulkhead/abi/ext/policy.h"

#include "fixture.h"

typedef struct instance {
  struct base base;
  uint32_t calls_of_needs, extra_needs;
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
  (void)error;
  out->verdict = BH_VERDICT_ALLOW;
  if (equals(result, "{}")) { /* only in the trial of rule 504 */
    if (BREAKS(504)) out->verdict = BH_VERDICT_ASK;
    if (BREAKS(5042)) out->verdict = 77;
    if (BREAKS(5043)) {
      out->verdict = BH_VERDICT_REWRITE;
      out->arguments = text("no JSON");
    }
  }
  if (!equals(result, "{\"content\":[]}")) return BH_OK; /* only in the trial of rule 505 */
  if (BREAKS(5053)) return BH_PENDING;
  if (BREAKS(505)) report_allowed(self, request->exchange);
  if (BREAKS(505) || BREAKS(5052)) report_allowed(self, request->exchange);
  return BREAKS(505) ? BH_PENDING : BH_OK;
}

static bh_status filter(void *self_, const bh_policy_request *request) {
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

static void stop_work(instance *self) {
  (void)self;
}

/* needs() of the variant 5012 changes, which reconfigure() must not cause. */
static const bh_policy table = {
    sizeof(bh_policy), 0, needs, decide, observe, filter, BREAKS(5012) ? NULL : reconfigure};

#define EXTENSION BH_EXT_POLICY
#define HOST_EXTENSION BH_EXT_HOST_POLICY
#include "lifecycle.h"
