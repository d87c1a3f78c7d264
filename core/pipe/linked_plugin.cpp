#include "pipe/linked_plugin.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "host_tables/reactor_tables.hpp"

namespace bulkhead::pipe {

struct LinkedPlugin::Functions {
  static const void *get_ext(void *ctx, const char *id) noexcept {
    using Tables = host_tables::ReactorTables<LinkedPlugin>;
    if (id == nullptr) return nullptr;
    const std::string_view wanted(id);
    if (wanted == BH_EXT_HOST_EXECUTOR) return &Tables::executor;
    if (wanted == BH_EXT_HOST_FD) return &Tables::fd;
    return of(ctx).find_table_(of(ctx).tables_, wanted);
  }
  static void log(void *ctx, std::int32_t level, bh_str text) noexcept {
    if (log_enabled(ctx, level) != 0) of(ctx).log_(level, bh::view(text));
  }
  static std::int32_t log_enabled(void *, std::int32_t level) noexcept {
    return level >= BH_LOG_INFO ? 1 : 0;
  }
};

LinkedPlugin::LinkedPlugin(Reactor &reactor, Log log, const void *tables, FindTable find_table,
                           void *owner)
    : reactor_(reactor),
      log_(std::move(log)),
      tables_(tables),
      find_table_(find_table),
      owner_(owner) {
  host_.size = sizeof host_;
  host_.abi_minor = BH_ABI_MINOR;
  host_.ctx = this;
  host_.name = bh::str("bulkhead-relay");
  host_.version = bh::str(BULKHEAD_VERSION);
  host_.get_ext = Functions::get_ext;
  host_.log = Functions::log;
  host_.log_enabled = Functions::log_enabled;
}

LinkedPlugin::~LinkedPlugin() {
  if (plugin_ == nullptr) return;
  stop();
  plugin_->destroy(plugin_->self);
}

Result<void> LinkedPlugin::start(const bh_entry &entry, std::string_view config_json) {
  const bh_descriptor *descriptor = entry.descriptor(0);
  const auto refused = [&](bh_status status, const bh_error &error) {
    return fail(status, std::string(descriptor->id) + ": " + std::string(bh::text(error)));
  };
  bh_error error = bh::make_error();
  if (const bh_status s = entry.create(descriptor->id, &host_, &plugin_, &error); s != BH_OK) {
    return refused(s, error);
  }
  if (const bh_status s = plugin_->configure(plugin_->self, bh::str(config_json), &error);
      s != BH_OK) {
    return refused(s, error);
  }
  if (const bh_status s = plugin_->start(plugin_->self, &error); s != BH_OK) {
    return refused(s, error);
  }
  started_ = true;
  return {};
}

void LinkedPlugin::stop() {
  if (std::exchange(started_, false)) plugin_->stop(plugin_->self);
  reactor_.forget(this);
}

}  // namespace bulkhead::pipe
