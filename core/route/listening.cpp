#include "route/listening.hpp"

#include <algorithm>
#include <utility>

#include "base/jitter.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"

namespace bulkhead {
namespace {

std::vector<std::string> strings_of(std::string_view array) {
  std::vector<std::string> out;
  if (!array.starts_with('[')) return out;
  std::string scratch;
  mcp::for_each_item(array, [&](std::string_view item) {
    if (item.starts_with('"')) out.emplace_back(mcp::unquote(item, &scratch));
  });
  return out;
}

}  // namespace

void Listening::start(const ServerCaps &caps) {
  caps_ = caps;
  started_ = true;
  open();
}

void Listening::stop() {
  reactor_.timer_cancel(timer_);
  timer_ = current_ = opening_ = 0;
  failures_ = 0;
  started_ = missed_ = false;
  waiting_.clear();  // the lane fails their calls
}

void Listening::subscribe(std::uint64_t exchange, std::string uri) {
  waiting_.push_back({exchange, std::move(uri), 0});
  watches_changed();
}

void Listening::watches_changed() {
  if (started_) open_after(collect_ms);
}

bool Listening::reports(ItemKind kind) const noexcept {
  if (current_ == 0) return false;
  switch (kind) {
    case ItemKind::tool:
      return reported_.tools;
    case ItemKind::prompt:
      return reported_.prompts;
    default:
      return reported_.resources;
  }
}

// Returns the filter for the listen request, or an empty string if there is nothing to listen for.
std::string Listening::filter() const {
  std::string out;
  const auto add = [&](bool wanted, std::string_view member) {
    if (wanted) out.append(out.empty() ? "{" : ",").append(member);
  };
  add(caps_.tools_changed, R"("toolsListChanged":true)");
  add(caps_.prompts_changed, R"("promptsListChanged":true)");
  add(caps_.resources_changed, R"("resourcesListChanged":true)");
  const std::vector<std::string> uris = wire_.watched();
  add(!uris.empty(), R"("resourceSubscriptions":[)");
  for (const std::string &uri : uris) {
    if (!out.ends_with('[')) out += ',';
    bh::json::append_quoted(&out, uri);
  }
  if (!uris.empty()) out += ']';
  return out.empty() ? out : out + "}";
}

void Listening::open() {
  const std::string wanted = filter();
  if (wanted == asked_ && (current_ | opening_) != 0 && waiting_.empty()) return;
  asked_ = wanted;
  const std::uint64_t former = std::exchange(opening_, 0);
  if (former != 0) wire_.end_listen(former);
  if (wanted.empty()) {
    if (const std::uint64_t last = std::exchange(current_, 0)) wire_.end_listen(last);
    return;
  }
  for (Waiting &waiting : waiting_) waiting.request = 0;
  const std::uint64_t request = wire_.send_listen(wanted);
  if (!started_) return;
  if (request == 0) {
    missed_ = true;
    return open_after(jitter(std::min(retry_ms << std::min(failures_++, 16u), retry_max_ms)));
  }
  opening_ = request;
  for (Waiting &waiting : waiting_) waiting.request = request;
}

void Listening::open_after(std::uint64_t ms) {
  reactor_.timer_cancel(timer_);
  timer_ = reactor_.timer_start(this, ms, bh::callback(this, [](Listening &self) {
                                  self.timer_ = 0;
                                  if (self.started_) self.open();
                                }));
}

void Listening::acknowledged(std::uint64_t id, std::string_view accepted) {
  if (id == 0 || id != opening_) return;
  const std::uint64_t former = std::exchange(current_, std::exchange(opening_, 0));
  failures_ = 0;
  const std::vector<std::string> uris =
      accepted.starts_with('{') ? strings_of(mcp::member(accepted, "resourceSubscriptions"))
                                : std::vector<std::string>{};
  const auto has = [accepted](std::string_view member) {
    return accepted.starts_with('{') && mcp::member(accepted, member) == "true";
  };
  reported_ = {has("toolsListChanged"), has("resourcesListChanged"), has("promptsListChanged")};
  if (former != 0) wire_.end_listen(former);
  if (std::exchange(missed_, false)) wire_.changes_missed();
  settle(id, uris);
}

// Reports the outcome to all client subscribe requests that were waiting for this
// subscriptions/listen request.
void Listening::settle(std::uint64_t request, const std::vector<std::string> &accepted) {
  std::vector<Waiting> done;
  std::erase_if(waiting_, [&](Waiting &waiting) {
    if (waiting.request != request) return false;
    done.push_back(std::move(waiting));
    return true;
  });
  for (const Waiting &waiting : done) {
    const bool has = std::find(accepted.begin(), accepted.end(), waiting.uri) != accepted.end();
    wire_.subscribed(waiting.exchange, has);
  }
}

void Listening::ended(std::uint64_t exchange, bool lasting) {
  const bool open = exchange == current_ || exchange == opening_;
  if (exchange == 0 || !open) return;
  (exchange == current_ ? current_ : opening_) = 0;
  missed_ = true;
  if (!lasting && started_ && current_ == 0 && opening_ == 0) {
    open_after(jitter(std::min(retry_ms << std::min(failures_++, 16u), retry_max_ms)));
  }
  settle(exchange, {});
}

}  // namespace bulkhead
