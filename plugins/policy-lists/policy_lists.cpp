// Evaluates calls against lists of servers and tools. An alternative to policy-rules for profiles
// that need no conditions.
#include <bulkhead/abi/ext/draft/explain.h>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include "explain.hpp"
#include "lists.hpp"

namespace {

using bulkhead::lists::Decision;
using bulkhead::lists::Lists;
using bulkhead::lists::Permission;

class PolicyLists {
 public:
  static constexpr bh::Info info{.id = "policy-lists",
                                 .name = "Lists of servers and tools",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_POLICY, BH_EXT_EXPLAIN}};

  explicit PolicyLists(const bh_host *) {}

  bh_status configure(bh_str json, bh_error *error) {
    auto lists = Lists::load(bh::view(json));
    if (!lists.has_value()) return bh::fail(error, BH_E_INVALID, lists.error());
    lists_ = std::move(*lists);
    return BH_OK;
  }
  bh_status reconfigure(bh_str json, bh_error *error) { return configure(json, error); }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    if (bh::is(id, BH_EXT_EXPLAIN)) return &explain_table;
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<PolicyLists>() : nullptr;
  }

  std::uint32_t needs() const noexcept {
    return lists_.empty() ? 0 : BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS;
  }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *) {
    decision_ = judge(request);
    const bool block = decision_.permission == Permission::block;
    out->verdict = block ? BH_VERDICT_BLOCK : BH_VERDICT_ALLOW;
    out->rule = bh::str(decision_.rule);
    if (BH_HAS(bh_verdict, out, flags))
      out->flags = decision_.permission == Permission::warn ? BH_VERDICT_WARNED : 0;
    return BH_OK;
  }
  bh_status filter(const bh_policy_request &request, bh_error *) {
    return judge(request).permission == Permission::block ? BH_E_DENIED : BH_OK;
  }

 private:
  static bh_status explain(void *self, bh_str call, bh_buf *out, bh_error *error) {
    return bh::guarded(error, [&] {
      auto text = bulkhead::lists::explain(bh::self<PolicyLists>(self).lists_, bh::view(call));
      if (!text.has_value()) return bh::fail(error, BH_E_INVALID, text.error());
      *out = bh::buf(std::move(*text));
      return bh_status{BH_OK};
    });
  }
  static constexpr bh_explain explain_table{sizeof(bh_explain), 0, explain};

  Decision judge(const bh_policy_request &request) const {
    const bool tool = bh::view(request.method) == "tools/call";
    return lists_.decide(bh::view(request.server), tool ? bh::view(request.name) : "");
  }

  Lists lists_;
  Decision decision_;  // the host borrows its rule until the next call
};

}  // namespace

BH_PLUGIN(PolicyLists)
