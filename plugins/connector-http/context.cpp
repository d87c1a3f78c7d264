#include "context.hpp"

#include <algorithm>

#include "lane.hpp"

namespace connector_http {
namespace {

constexpr std::uint64_t sweep_ms = 5'000;
constexpr std::size_t spare_posts = 256;  // if there are more, all are freed when idle

Http1Limits http1_limits(const Settings &s) {
  Http1Limits limits;
  limits.header_bytes = s.header_bytes;
  limits.write_queue_bytes = s.write_queue_bytes;
  return limits;
}

}  // namespace

Context::Context(const bh_host *raw, const bh_host_connector *up_table, const Settings &s)
    : host(raw), up(up_table), settings(s), http1(host, http1_limits(s)) {
  user_agent.append(bh::view(raw->name)).append("/").append(bh::view(raw->version));
  random_ = host.now_ns() * 0x9E3779B97F4A7C15ull | 1;
}

Context::~Context() {
  stop();
}

void Context::log(std::int32_t level, std::string_view server, std::string_view text) const {
  if (host.log_enabled(level)) host.log(level, std::string(server) + ": " + std::string(text));
}

std::uint64_t Context::jittered(std::uint64_t ms) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return ms - ms / 4 + random_ % (ms / 2 + 1);
}

Post *Context::take_post() {
  if (free_posts_.empty()) {
    posts_.push_back(std::make_unique<Post>(*this));
    free_posts_.reserve(posts_.size());
    return posts_.back().get();
  }
  Post *post = free_posts_.back();
  free_posts_.pop_back();
  return post;
}

void Context::put_post(Post *post) noexcept {
  free_posts_.push_back(post);
}

void Context::arm_sweep() {
  if (sweep_timer_ != 0) return;
  sweep_timer_ = host.timer_start(sweep_ms, bh::callback<&Context::sweep>(this));
}

// Cancels overdue POSTs. Runs only while requests are in flight.
void Context::sweep() {
  sweep_timer_ = 0;
  bool any = false;
  const std::uint64_t now = host.now_ns();
  for (std::size_t i = 0; i < lanes.size(); ++i) any = lanes[i]->sweep(now) || any;
  if (any) return arm_sweep();
  // No requests are in flight, so unused memory is released.
  spare.drop();
  if (posts_.size() > spare_posts && free_posts_.size() == posts_.size()) {
    free_posts_.clear();
    posts_.clear();
  }
}

void Context::lane_finished(Lane *lane) {
  if (std::find(finished_.begin(), finished_.end(), lane) != finished_.end()) return;
  finished_.push_back(lane);
  if (deletion_pending_) return;
  deletion_pending_ = true;
  host.defer(bh::callback<&Context::delete_retired>(this));
}

void Context::delete_retired() {
  deletion_pending_ = false;
  const std::vector<Lane *> finished = std::exchange(finished_, {});
  for (Lane *lane : finished) {
    const bh_lane handle = lane->handle();
    std::erase_if(lanes, [lane](const auto &l) { return l.get() == lane; });
    up->lane_closed(host.ctx(), handle);
  }
}

void Context::stop() noexcept {
  host.timer_cancel(sweep_timer_);
  for (auto &lane : lanes) lane->halt();
  finished_.clear();
  lanes.clear();
  http1.stop();
}

}  // namespace connector_http
