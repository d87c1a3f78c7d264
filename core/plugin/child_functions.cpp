// Implements bh.host.spawn/1: lets instances that may start child processes use the host's Spawner.
#include "plugin/host_functions.hpp"

#include <exception>

#include "bulkhead/cpp/basics.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

Spawner *HostFunctions::spawner_of(Instance &instance) {
  return instance.context_->children ? instance.context_->children(instance) : nullptr;
}

const bh_host_spawn *HostFunctions::spawn_table(Instance &instance) {
  static constexpr bh_host_spawn table{sizeof(bh_host_spawn), 0, child_spawn, child_kill,
                                       child_reap};
  return spawner_of(instance) == nullptr ? nullptr : &table;
}

bh_status HostFunctions::child_spawn(void *ctx, const bh_spawn *request, bh_child *out,
                                     bh_error *error) noexcept {
  Instance &instance = Instance::of(ctx);
  const bool wrong = request == nullptr || out == nullptr || request->size < sizeof(bh_spawn) ||
                     out->size < sizeof(bh_child) || request->flags != 0;
  if (misused(instance, wrong, "spawn.spawn")) return BH_E_INVALID;
  if (instance.ended_.load(std::memory_order_relaxed)) return BH_STALE;
  try {
    Spawner *spawner = spawner_of(instance);
    if (spawner == nullptr)
      return bh::fail(error, BH_E_DENIED, "this plugin is not allowed to start child processes");
    return spawner->spawn(*request, out, error);
  } catch (const std::exception &) {
    return bh::fail(error, BH_E_INTERNAL, "out of memory for a child process");
  }
}

bh_status HostFunctions::child_kill(void *ctx, bh_child_id child, std::int32_t signal) noexcept {
  try {
    Spawner *spawner = spawner_of(Instance::of(ctx));
    return spawner == nullptr ? BH_E_DENIED : spawner->kill(child, signal);
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_status HostFunctions::child_reap(void *ctx, bh_child_id child, bh_child_end *out) noexcept {
  Instance &instance = Instance::of(ctx);
  const bool wrong = out == nullptr || out->size < sizeof(bh_child_end);
  if (misused(instance, wrong, "spawn.reap")) return BH_E_INVALID;
  try {
    Spawner *spawner = spawner_of(instance);
    return spawner == nullptr ? BH_E_DENIED : spawner->reap(child, out);
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

}  // namespace bulkhead
