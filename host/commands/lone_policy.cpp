#include "commands/lone_policy.hpp"

#include "bulkhead/abi/ext/draft/explain.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/cpp/basics.hpp"
#include "plugin_base/load_options.hpp"

namespace bulkhead::program {
namespace {

// No calls wait for a policy in this command, so these functions do nothing.
constexpr bh_host_policy inert_policy{
    sizeof(bh_host_policy), 0,
    [](void *, std::uint64_t, const bh_verdict *) -> bh_status { return BH_STALE; }, [](void *) {},
    [](void *, std::uint64_t, std::uint32_t) -> bh_status { return BH_STALE; }};

}  // namespace

std::vector<std::string> LonePolicy::load(const PluginUse &use, const Profile &profile) {
  id_ = use.id;
  name_ = use.plugin;
  auto reactor = Reactor::create();
  if (!reactor) return {reactor.error().text};
  reactor_ = std::move(*reactor);
  context_.reactor = reactor_.get();
  context_.name = "bulkhead";
  context_.version = BULKHEAD_VERSION;
  // If a policy finds several errors, it logs all of them but returns only the first, so the errors
  // are taken from the log.
  context_.log = [this](std::int32_t level, std::string_view, std::string_view text) {
    if (level >= BH_LOG_WARN) (level >= BH_LOG_ERROR ? mistakes_ : warnings_).emplace_back(text);
  };
  context_.extra_ext = [](Instance &, std::string_view id) -> const void * {
    return id == BH_EXT_HOST_POLICY ? &inert_policy : nullptr;
  };
  LoadOptions options = load_options(profile);
  options.sha256 = use.sha256;
  auto library = Library::load(use.plugin, nullptr, options);
  if (!library) return {library.error().text};
  auto instance = Instance::create(use.id, std::move(*library), context_);
  if (!instance) return {instance.error().text};
  instance_ = std::move(*instance);
  const auto configured = instance_->configure(use.config_json);
  if (!configured) {
    return mistakes_.size() > 1 ? mistakes_ : std::vector<std::string>{configured.error().text};
  }
  if (instance_->ext(BH_EXT_POLICY, &bh_policy::filter) == nullptr) {
    return {"plugin \"" + name_ + "\" is not a policy plugin"};
  }
  return {};
}

bool LonePolicy::explains() const {
  return instance_->ext(BH_EXT_EXPLAIN, &bh_explain::explain) != nullptr;
}

std::uint32_t LonePolicy::needs() const {
  return instance_->ext<bh_policy>(BH_EXT_POLICY)->needs(instance_->self());
}

Result<std::string> LonePolicy::explain(std::string_view call) const {
  const auto *table = instance_->ext(BH_EXT_EXPLAIN, &bh_explain::explain);
  if (table == nullptr) {
    return fail(BH_E_UNSUPPORTED,
                "the policy plugin \"" + name_ + "\" does not support explanations (bh.explain/1)");
  }
  bh_buf out{};
  bh_error error = bh::make_error();
  const bh_status status = table->explain(instance_->self(), bh::str(call), &out, &error);
  if (status != BH_OK) return fail(status, std::string(bh::text(error)));
  const bh::Buf text(out);
  return std::string(text.view());
}

}  // namespace bulkhead::program
