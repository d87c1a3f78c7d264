// Implements bh_host and the extensions that every host provides in the same way. The other
// extension tables come from HostContext::extra_ext.
#pragma once

#include "bulkhead/abi/ext/draft/mask.h"
#include "bulkhead/abi/ext/draft/sign.h"
#include "bulkhead/abi/ext/draft/spawn.h"
#include "plugin/instance.hpp"

namespace bulkhead {

struct HostFunctions {
  // Returns the bh_host of an instance. The instance must not be moved afterwards.
  static bh_host host_of(Instance &instance);

  // bh_host
  static const void *get_ext(void *ctx, const char *id) noexcept;
  static void log(void *ctx, std::int32_t level, bh_str message) noexcept;
  static std::int32_t log_enabled(void *ctx, std::int32_t level) noexcept;

  // bh.host.listen/1
  static bh_status listen_for_all(void *ctx, const void *address, std::uint32_t size,
                                  bh_str as_configured, std::int32_t *fd, bh_error *error) noexcept;
  static bh_status listen_as(void *ctx, const void *address, std::uint32_t size,
                             bh_str as_configured, SocketFile file, std::int32_t *fd,
                             bh_error *error) noexcept;
  static bh_status listen(void *ctx, const void *address, std::uint32_t size, bh_str as_configured,
                          std::int32_t *fd, bh_error *error) noexcept;
  static bh_status will_dial(void *ctx, const void *address, std::uint32_t size,
                             bh_error *error) noexcept;
  static bh_status dial(void *ctx, const void *address, std::uint32_t size, std::int32_t *fd,
                        bh_error *error) noexcept;
  // bh.host.secrets/1
  static Result<std::string> find_secret(Instance &instance, std::string_view name);
  static Result<void> keep_secret(Instance &instance, std::string_view name,
                                  std::string_view value);
  static bh_status secret_get(void *ctx, bh_str name, char *buf, std::uint64_t cap,
                              std::uint64_t *n) noexcept;
  static bh_status secret_put(void *ctx, bh_str name, bh_str value) noexcept;

  // bh.host.sign/1
  static bh_status sign(void *ctx, bh_str statement, bh_signature *out, bh_error *error) noexcept;

  // bh.host.mask/1
  static std::uint64_t mask(void *ctx, bh_str text, bh_buf *out) noexcept;

  // bh.host.metrics/1
  static bh_metric counter(void *ctx, bh_str name) noexcept;
  static void add(void *ctx, bh_metric metric, std::uint64_t n) noexcept;

  // bh.host.store/1
  static bh_str folder(void *ctx) noexcept;

  // bh.host.spawn/1 (child_functions.cpp). spawn_table() returns null if the instance may not start
  // child processes.
  static const bh_host_spawn *spawn_table(Instance &instance);
  static bh_status child_spawn(void *ctx, const bh_spawn *request, bh_child *out,
                               bh_error *error) noexcept;
  static bh_status child_kill(void *ctx, bh_child_id child, std::int32_t signal) noexcept;
  static bh_status child_reap(void *ctx, bh_child_id child, bh_child_end *out) noexcept;

 private:
  static Spawner *spawner_of(Instance &instance);
  static bool misused(const Instance &instance, bool wrong, const char *function) noexcept;
};

}  // namespace bulkhead
