#include "builtin-files/subscription_lane.hpp"

#include <bulkhead/cpp/plugin.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "builtin-files/resources.hpp"

namespace builtin_files {
namespace {

constexpr const char *no_memory = R"({"code":-32603,"message":"out of memory"})";
constexpr const char *stopping = R"({"code":-32000,"message":"the plugin is stopping"})";

}  // namespace

void SubscriptionLane::start(const bh_host_tools *host_tools,
                             const std::vector<Workspace> *workspaces) noexcept {
  tools_ = host_tools;
  workspaces_ = workspaces;
}

void SubscriptionLane::stop() noexcept {
  if (stopped_.exchange(true)) return;
  host_.timer_cancel(timer_);
  for (const Item &item : batch_) fail(item.call, stopping);  // the running job uses batch_
  for (const Item &item : waiting_) fail(item.call, stopping);
  waiting_.clear();
}

bool SubscriptionLane::add(bh_call call, Kind kind, std::string uri) {
  const std::size_t bytes = uri.size();
  if (stopped_ || waiting_.size() + batch_.size() >= max_calls) return false;
  if (bytes > max_uri_bytes - uri_bytes_) return false;
  waiting_.push_back({call, kind, std::move(uri)});
  uri_bytes_ += bytes;
  next();
  return true;
}

void SubscriptionLane::follow(bh::Callback done) noexcept {
  followed_ = done;
  next();
}

// Starts a job if none is running and there is work to do.
void SubscriptionLane::next() noexcept {
  if (running_ || timer_ != 0 || stopped_) return;
  if (waiting_.empty() && followed_.fn == nullptr) return;
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), max_batch));
  batch_.splice(batch_.end(), waiting_, waiting_.begin(), std::next(waiting_.begin(), count));
  following_ = followed_.fn != nullptr;
  running_ = true;
  const auto work = bh::blocking_work<&SubscriptionLane::run, &SubscriptionLane::ran>(this);
  if (host_.run_blocking(work) == BH_OK) return;
  running_ = following_ = false;
  waiting_.splice(waiting_.begin(), batch_);
  timer_ = host_.timer_start(retry_ms, bh::callback(this, [](SubscriptionLane &self) {
                               self.timer_ = 0;
                               self.next();
                             }));
}

void SubscriptionLane::run() noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(batch_ms);
  if (following_) {
    bh::guarded(nullptr, [&] {
      watcher_->follow();
      return BH_OK;
    });
  }
  for (Item &item : batch_) {
    if (stopped_) return;
    bh::guarded(nullptr, [&] {
      perform(&item);
      return BH_OK;
    });
    item.done = true;
    if (Clock::now() >= end) return;
  }
}

// Executes one call. Runs on a pool thread. If this function throws, the item has no result, and
// ran() reports the failure.
void SubscriptionLane::perform(Item *item) {
  if (item->kind == Kind::subscribe) {
    item->result = subscribe(*workspaces_, item->uri, watcher_, &item->failed);
  } else {
    watcher_->remove(item->uri);
    item->result = "{}";
  }
}

// Runs on the reactor thread after the job has finished.
void SubscriptionLane::ran() noexcept {
  running_ = false;
  if (stopped_) return;
  const auto rest =
      std::find_if(batch_.begin(), batch_.end(), [](const Item &item) { return !item.done; });
  waiting_.splice(waiting_.begin(), batch_, rest, batch_.end());
  std::list<Item> finished;
  finished.splice(finished.end(), batch_);
  for (Item &item : finished) {
    uri_bytes_ -= item.uri.size();
    complete(&item);
  }
  if (std::exchange(following_, false)) {
    const bh::Callback done = std::exchange(followed_, {});
    done.fn(done.arg);
  }
  next();
}

void SubscriptionLane::complete(Item *item) noexcept {
  if (item->result.empty()) return fail(item->call, no_memory);
  bh_result result{};
  result.size = sizeof result;
  result.kind = item->failed ? BH_RESULT_ERROR : BH_RESULT_OK;
  bh::guarded(nullptr, [&] {
    result.json = bh::buf(std::move(item->result));
    return BH_OK;
  });
  tools_->complete(host_.ctx(), item->call, &result);
}

void SubscriptionLane::fail(bh_call call, const char *error) noexcept {
  bh_result result{};
  result.size = sizeof result;
  result.kind = BH_RESULT_ERROR;
  bh::guarded(nullptr, [&] {
    result.json = bh::buf(std::string(error));
    return BH_OK;
  });
  tools_->complete(host_.ctx(), call, &result);
}

}  // namespace builtin_files
