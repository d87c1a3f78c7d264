#include "connector-stdio/connector_stdio.hpp"

#include <bulkhead/cpp/clock.hpp>

#include <csignal>
#include <utility>

namespace connector_stdio {
namespace {

Lane &lane_of(void *p) {
  return *static_cast<Lane *>(p);
}

}  // namespace

ConnectorStdio::ConnectorStdio(const bh_host *raw)
    : Shared(host_,
             static_cast<const bh_host_connector *>(raw->get_ext(raw->ctx, BH_EXT_HOST_CONNECTOR))),
      host_(raw),
      metrics_(host_.ext<bh_host_metrics>(BH_EXT_HOST_METRICS)) {}

bh_status ConnectorStdio::configure(bh_str, bh_error *error) {
  // The constructor cannot query this extension, because the host does not know the role of the
  // instance before configure().
  children = host_.ext<bh_host_spawn>(BH_EXT_HOST_SPAWN);
  if (up == nullptr || up->limits == nullptr || !host_.has_reactor()) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    "connector-stdio requires a host with " BH_EXT_HOST_CONNECTOR
                    ", " BH_EXT_HOST_EXECUTOR " and " BH_EXT_HOST_FD);
  }
  if (children != nullptr) return BH_OK;
  return bh::fail(error, BH_E_UNSUPPORTED,
                  "the host does not provide " BH_EXT_HOST_SPAWN
                  " to connector-stdio: only the connector for stdio servers receives it");
}

bh_status ConnectorStdio::start(bh_error *) {
  if (metrics_ != nullptr) noise_ = metrics_->counter(host_.ctx(), bh::str("ignored_lines"));
  return BH_OK;
}

void ConnectorStdio::stop() noexcept {
  for (const auto &lane : lanes_) lane->kill(SIGKILL);
  const std::uint64_t deadline = bh::monotonic_ns() + stop_wait_ms * 1'000'000;
  for (const auto &lane : lanes_) {
    if (!lane->reap(deadline))
      host_.log(BH_LOG_ERROR, "a child process did not exit after SIGKILL");
  }
  to_flush_.clear();
  to_finish_.clear();
  while (!lanes_.empty()) {
    const std::unique_ptr<Lane> lane = take(*lanes_.back());
    if (lane->closing()) up->lane_closed(host_.ctx(), lane->handle());
  }
  stderr_files_.clear();
}

bh_status ConnectorStdio::lane_open(bh_lane handle, const bh_lane_info &lane_info, void **out,
                                    bh_error *error) {
  // Does not affect children, which start with an empty signal mask.
  if (!std::exchange(pipe_signal_blocked_, true)) stdio_lines::block_pipe_signal();
  auto lane = std::make_unique<Lane>(*this, handle);
  lanes_.reserve(lanes_.size() + 1);  // the push_back below must not throw
  const bh_status status = lane->open(lane_info, error);
  if (status != BH_OK) return status;
  lane->index = lanes_.size();
  *out = lane.get();
  lanes_.push_back(std::move(lane));
  return BH_OK;
}

bh_status ConnectorStdio::lane_send(void *lane, const bh_lane_message &message, bh_error *error) {
  return lane_of(lane).send(message, error);
}

void ConnectorStdio::lane_close(void *lane) {
  lane_of(lane).close();
}

std::unique_ptr<Lane> ConnectorStdio::take(Lane &lane) {
  const std::size_t at = lane.index;
  std::swap(lanes_[at], lanes_.back());
  lanes_[at]->index = at;
  std::unique_ptr<Lane> taken = std::move(lanes_.back());
  lanes_.pop_back();
  return taken;
}

void ConnectorStdio::flush_later(Lane &lane) {
  if (std::exchange(lane.flush_queued, true)) return;
  to_flush_.push_back(&lane);
  defer_turn_end();
}

void ConnectorStdio::finished(Lane &lane) {
  to_finish_.push_back(&lane);
  defer_turn_end();
}

void ConnectorStdio::defer_turn_end() {
  if (std::exchange(deferred_, true)) return;
  host_.defer(bh::callback<&ConnectorStdio::at_turn_end>(this));
}

void ConnectorStdio::at_turn_end() {
  deferred_ = false;
  flushing_.swap(to_flush_);  // swapping the vectors reuses their memory
  for (Lane *lane : flushing_) {
    lane->flush_queued = false;
    lane->flush();
  }
  flushing_.clear();
  // A finished lane accepts no messages, so to_flush_ contains no pointer to a lane that is
  // destroyed below.
  const std::vector<Lane *> finish = std::exchange(to_finish_, {});
  for (Lane *lane : finish) {
    const bh_lane handle = lane->handle();
    take(*lane).reset();
    up->lane_closed(host_.ctx(), handle);
  }
}

std::shared_ptr<RotatedFile> ConnectorStdio::stderr_file(const std::string &path,
                                                         std::uint64_t bound) {
  std::erase_if(stderr_files_, [](const auto &entry) { return entry.second.expired(); });
  std::weak_ptr<RotatedFile> &known = stderr_files_[path];
  if (auto file = known.lock()) return file;
  auto file = std::make_shared<RotatedFile>(path, bound);
  known = file;
  return file;
}

void ConnectorStdio::count_noise() {
  if (noise_ != 0) metrics_->add(host_.ctx(), noise_, 1);
}

}  // namespace connector_stdio
