#include "plugin/host_functions.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "bulkhead/abi/ext/draft/listen.h"
#include "bulkhead/cpp/basics.hpp"
#include "host_tables/reactor_tables.hpp"
#include "plugin/secrets.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

std::string_view view(bh_str s) noexcept {
  return s.p == nullptr ? std::string_view() : std::string_view(s.p, s.n);
}

bool is_metric_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

}  // namespace

bh_host HostFunctions::host_of(Instance &instance) {
  bh_host host{};
  host.size = sizeof host;
  host.abi_minor = BH_ABI_MINOR;
  host.ctx = &instance;
  host.name = {instance.context_->name.data(), instance.context_->name.size()};
  host.version = {instance.context_->version.data(), instance.context_->version.size()};
  host.get_ext = get_ext;
  host.log = log;
  host.log_enabled = log_enabled;
  return host;
}

const void *HostFunctions::get_ext(void *ctx, const char *id) noexcept {
  using Tables = host_tables::ReactorTables<Instance>;
  static constexpr bh_host_secrets secrets{sizeof(bh_host_secrets), 0, secret_get, secret_put};
  static constexpr bh_host_metrics metrics{sizeof(bh_host_metrics), 0, counter, add};
  static constexpr bh_host_listen listening{sizeof(bh_host_listen), 0, listen, will_dial, dial,
                                            listen_for_all};
  static constexpr bh_host_store store{sizeof(bh_host_store), 0, folder};
  static constexpr std::pair<std::string_view, const void *> tables[] = {
      {BH_EXT_HOST_EXECUTOR, &Tables::executor},
      {BH_EXT_HOST_FD, &Tables::fd},
      {BH_EXT_HOST_STORE, &store},
      {BH_EXT_HOST_LISTEN, &listening},
      {BH_EXT_HOST_SECRETS, &secrets},
      {BH_EXT_HOST_METRICS, &metrics}};
  if (id == nullptr) return nullptr;
  for (const auto &[name, table] : tables) {
    if (name == id) return table;
  }
  static constexpr bh_host_sign signing{sizeof(bh_host_sign), 0, sign};
  static constexpr bh_host_mask masking{sizeof(bh_host_mask), 0, mask};
  Instance &instance = Instance::of(ctx);
  try {
    if (std::string_view(id) == BH_EXT_HOST_MASK) {
      const HostContext &context = *instance.context_;
      return context.prints && context.prints(instance) != nullptr ? &masking : nullptr;
    }
    if (std::string_view(id) == BH_EXT_HOST_SPAWN) return spawn_table(instance);
    if (std::string_view(id) == BH_EXT_HOST_SIGN) {
      const HostContext &context = *instance.context_;
      return context.signs && context.signs(instance) ? &signing : nullptr;
    }
    return instance.context_->extra_ext ? instance.context_->extra_ext(instance, id) : nullptr;
  } catch (const std::exception &) {
    return nullptr;
  }
}

void HostFunctions::log(void *ctx, std::int32_t level, bh_str message) noexcept {
  Instance &instance = Instance::of(ctx);
  level = std::clamp<std::int32_t>(level, BH_LOG_DEBUG, BH_LOG_PLUGIN_MISBEHAVES);
  if (log_enabled(ctx, level) != 0) instance.log(level, view(message));
}

std::int32_t HostFunctions::log_enabled(void *ctx, std::int32_t level) noexcept {
  const HostContext &context = *Instance::of(ctx).context_;
  return context.log && level >= context.log_level ? 1 : 0;
}

// Returns `wrong`. If it is true, logs that the plugin called the function incorrectly.
bool HostFunctions::misused(const Instance &instance, bool wrong, const char *function) noexcept {
  return wrong && instance.report_misuse(function) != BH_OK;
}

Result<std::string> HostFunctions::find_secret(Instance &instance, std::string_view name) {
  const HostContext &context = *instance.context_;
  if (context.services.get_secret) return context.services.get_secret(instance.id_, name);
  const auto dir = private_folder(context.state_dir, "secrets", instance.id_);
  if (!dir) return std::unexpected(dir.error());
  return read_secret(*dir, name, Instance::max_secret_bytes);
}

Result<void> HostFunctions::keep_secret(Instance &instance, std::string_view name,
                                        std::string_view value) {
  const HostContext &context = *instance.context_;
  if (context.services.put_secret) return context.services.put_secret(instance.id_, name, value);
  const auto dir = private_folder(context.state_dir, "secrets", instance.id_);
  if (!dir) return std::unexpected(dir.error());
  return write_secret(*dir, name, value);
}

bh_status HostFunctions::listen(void *ctx, const void *address, std::uint32_t size,
                                bh_str as_configured, std::int32_t *fd, bh_error *error) noexcept {
  return listen_as(ctx, address, size, as_configured, SocketFile::own_user, fd, error);
}

bh_status HostFunctions::listen_for_all(void *ctx, const void *address, std::uint32_t size,
                                        bh_str as_configured, std::int32_t *fd,
                                        bh_error *error) noexcept {
  return listen_as(ctx, address, size, as_configured, SocketFile::everybody, fd, error);
}

bh_status HostFunctions::listen_as(void *ctx, const void *address, std::uint32_t size,
                                   bh_str as_configured, SocketFile file, std::int32_t *fd,
                                   bh_error *error) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, address == nullptr || fd == nullptr, "listen.open")) return BH_E_INVALID;
  try {
    const HostServices &services = instance.context_->services;
    const std::string_view bytes(static_cast<const char *>(address), size);
    auto opened = services.listen ? services.listen(bytes, view(as_configured), file)
                                  : open_listener(bytes, view(as_configured), file);
    if (!opened) return bh::fail(error, opened.error().code, opened.error().text);
    if (!services.listen) remember_socket_file(bytes, &instance.socket_files_);
    *fd = opened->release();
    return BH_OK;
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_status HostFunctions::will_dial(void *ctx, const void *address, std::uint32_t size,
                                   bh_error *error) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, address == nullptr, "listen.will_dial")) return BH_E_INVALID;
  try {
    const HostServices &services = instance.context_->services;
    const std::string_view bytes(static_cast<const char *>(address), size);
    const auto done =
        services.will_dial ? services.will_dial(bytes) : instance.dial_rules_.announce(bytes);
    return done ? BH_OK : bh::fail(error, done.error().code, done.error().text);
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_status HostFunctions::dial(void *ctx, const void *address, std::uint32_t size, std::int32_t *fd,
                              bh_error *error) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, address == nullptr || fd == nullptr, "listen.dial")) return BH_E_INVALID;
  try {
    const HostServices &services = instance.context_->services;
    const std::string_view bytes(static_cast<const char *>(address), size);
    auto made = services.dial ? services.dial(bytes) : instance.dial_rules_.dial(bytes);
    if (!made) return bh::fail(error, made.error().code, made.error().text);
    *fd = made->release();
    return BH_OK;
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

std::uint64_t HostFunctions::mask(void *ctx, bh_str text, bh_buf *out) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, out == nullptr, "mask.mask")) return 0;
  try {
    const auto prints = instance.context_->prints(instance);
    if (prints == nullptr || prints->empty()) return 0;
    std::uint64_t count = 0;
    std::string masked = prints->mask(view(text), &count);
    if (count != 0) *out = bh::buf(std::move(masked));
    return count;
  } catch (const std::exception &) {
    *out = bh_buf{};  // returns no text, because the text may contain secrets
    return 1;
  }
}

bh_status HostFunctions::sign(void *ctx, bh_str statement, bh_signature *out,
                              bh_error *error) noexcept {
  Instance &instance = Instance::of(ctx);
  const bool wrong = out == nullptr || out->size < sizeof *out || statement.n > max_statement_bytes;
  if (misused(instance, wrong, "sign.sign")) return BH_E_INVALID;
  try {
    const HostContext &context = *instance.context_;
    const auto made = context.services.sign
                          ? context.services.sign(instance.id_, view(statement))
                          : sign_for_audit(context.state_dir, instance.id_, view(statement));
    if (!made) return bh::fail(error, made.error().code, made.error().text);
    if (made->public_key.size() != sizeof out->public_key ||
        made->signature.size() != sizeof out->signature) {
      return bh::fail(error, BH_E_INTERNAL, "the public key or signature has an invalid length");
    }
    out->unix_s = made->unix_s;
    std::memcpy(out->public_key, made->public_key.data(), sizeof out->public_key);
    std::memcpy(out->signature, made->signature.data(), sizeof out->signature);
    return BH_OK;
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_status HostFunctions::secret_get(void *ctx, bh_str name, char *buf, std::uint64_t cap,
                                    std::uint64_t *n) noexcept {
  Instance &instance = Instance::of(ctx);
  const bool wrong = !is_plain_name(view(name)) || n == nullptr || (buf == nullptr && cap > 0);
  if (misused(instance, wrong, "secrets.get")) return BH_E_INVALID;
  try {
    *n = 0;
    const auto value = find_secret(instance, view(name));
    if (!value) {
      if (value.error().code != BH_E_NOT_FOUND) {
        instance.log(BH_LOG_ERROR, "cannot read a secret: " + value.error().text);
      }
      return value.error().code;
    }
    *n = value->size();
    if (value->size() > cap) return BH_E_LIMIT;
    value->copy(buf, value->size());
    return BH_OK;
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_status HostFunctions::secret_put(void *ctx, bh_str name, bh_str value) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, !is_plain_name(view(name)), "secrets.put")) return BH_E_INVALID;
  if (value.n > Instance::max_secret_bytes) return BH_E_LIMIT;
  try {
    const auto done = keep_secret(instance, view(name), view(value));
    if (done) return BH_OK;
    instance.log(BH_LOG_ERROR, "cannot store a secret: " + done.error().text);
    return done.error().code;
  } catch (const std::exception &) {
    return BH_E_INTERNAL;
  }
}

bh_metric HostFunctions::counter(void *ctx, bh_str name) noexcept {
  Instance &instance = Instance::of(ctx);
  if (misused(instance, !is_metric_name(view(name)), "metrics.counter")) return 0;
  auto &counters = instance.counters_;
  const auto it = std::find_if(counters.begin(), counters.end(),
                               [&](const auto &c) { return c.first == view(name); });
  if (it != counters.end()) return static_cast<bh_metric>(it - counters.begin()) + 1;
  if (counters.size() == Instance::max_counters) return 0;
  try {
    counters.emplace_back(view(name), 0);
    return static_cast<bh_metric>(counters.size());
  } catch (const std::exception &) {
    return 0;
  }
}

void HostFunctions::add(void *ctx, bh_metric metric, std::uint64_t n) noexcept {
  auto &counters = Instance::of(ctx).counters_;
  if (metric != 0 && metric <= counters.size()) counters[metric - 1].second += n;
}

bh_str HostFunctions::folder(void *ctx) noexcept {
  Instance &instance = Instance::of(ctx);
  try {
    if (instance.folder_.empty()) {
      const HostContext &context = *instance.context_;
      auto made = context.services.folder
                      ? context.services.folder(instance.id_)
                      : private_folder(context.state_dir, "plugins", instance.id_);
      if (made) {
        instance.folder_ = std::move(*made);
      } else {
        instance.log(BH_LOG_ERROR, "storage is unavailable: " + made.error().text);
      }
    }
  } catch (const std::exception &) {
    return {nullptr, 0};
  }
  return {instance.folder_.data(), instance.folder_.size()};
}

}  // namespace bulkhead
