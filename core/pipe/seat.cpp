#include "pipe/seat.hpp"

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead::pipe {

struct Seat::Functions {
  static Seat &seat(void *ctx) noexcept { return *static_cast<Seat *>(ctx); }

  static const void *get_ext(void *ctx, const char *id) noexcept {
    static constexpr bh_host_executor executor{
        sizeof(bh_host_executor), 0, now_ns, post, defer, timer_start, timer_cancel, run_blocking};
    static constexpr bh_host_fd fd{sizeof(bh_host_fd), 0, watch, modify, unwatch};
    if (id == nullptr) return nullptr;
    const std::string_view wanted(id);
    if (wanted == BH_EXT_HOST_EXECUTOR) return &executor;
    if (wanted == BH_EXT_HOST_FD) return &fd;
    for (const auto &[name, table] : seat(ctx).tables_) {
      if (name == wanted) return table;
    }
    return nullptr;
  }
  static void log(void *ctx, std::int32_t level, bh_str text) noexcept {
    if (log_enabled(ctx, level) != 0) seat(ctx).log_(level, bh::view(text));
  }
  static std::int32_t log_enabled(void *, std::int32_t level) noexcept {
    return level >= BH_LOG_INFO ? 1 : 0;
  }

  static std::uint64_t now_ns(void *ctx) noexcept { return seat(ctx).reactor_.now_ns(); }
  static bh_status post(void *ctx, void (*fn)(void *), void *arg) noexcept {
    return seat(ctx).reactor_.post(ctx, fn, arg);
  }
  static void defer(void *ctx, void (*fn)(void *), void *arg) noexcept {
    seat(ctx).reactor_.defer(ctx, fn, arg);
  }
  static bh_timer timer_start(void *ctx, std::uint64_t delay_ms, void (*fn)(void *),
                              void *arg) noexcept {
    return seat(ctx).reactor_.timer_start(ctx, delay_ms, fn, arg);
  }
  static bh_status timer_cancel(void *ctx, bh_timer timer) noexcept {
    return seat(ctx).reactor_.timer_cancel(timer);
  }
  static bh_status run_blocking(void *ctx, void (*work)(void *), void (*done)(void *),
                                void *arg) noexcept {
    return seat(ctx).reactor_.run_blocking(ctx, work, done, arg);
  }

  static bh_status watch(void *ctx, std::int32_t fd, std::uint32_t events,
                         void (*fn)(void *, std::int32_t, std::uint32_t), void *arg,
                         bh_watch *out) noexcept {
    return seat(ctx).reactor_.watch(ctx, fd, events, fn, arg, out);
  }
  static bh_status modify(void *ctx, bh_watch watch, std::uint32_t events) noexcept {
    return seat(ctx).reactor_.modify(watch, events);
  }
  static bh_status unwatch(void *ctx, bh_watch watch) noexcept {
    return seat(ctx).reactor_.unwatch(watch);
  }
};

Seat::Seat(Reactor &reactor, Log log, Tables tables, void *owner)
    : reactor_(reactor), log_(std::move(log)), tables_(std::move(tables)), owner_(owner) {
  host_.size = sizeof host_;
  host_.abi_minor = BH_ABI_MINOR;
  host_.ctx = this;
  host_.name = bh::str("bulkhead-relay");
  host_.version = bh::str(BULKHEAD_VERSION);
  host_.get_ext = Functions::get_ext;
  host_.log = Functions::log;
  host_.log_enabled = Functions::log_enabled;
}

Seat::~Seat() {
  if (plugin_ == nullptr) return;
  stop();
  plugin_->destroy(plugin_->self);
}

Result<void> Seat::start(const bh_entry &entry, std::string_view config_json) {
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

void Seat::stop() {
  if (std::exchange(started_, false)) plugin_->stop(plugin_->self);
  reactor_.forget(this);
}

}  // namespace bulkhead::pipe
