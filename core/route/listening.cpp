#include "route/listening.hpp"

#include <algorithm>
#include <utility>

#include "base/jitter.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"

namespace bulkhead {

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
  first_ = true;
}

void Listening::subscribe(std::uint64_t asked) {
  // Send a new request even if its filter is the same. The server may now accept a resource that it
  // has not accepted before. A new watch may also be for a resource that was in the last filter
  // because of a former watch.
  if (asked == 0 || asked == current_) asked_.reset();
  watches_changed();
}

void Listening::watches_changed() {
  if (started_ && timer_ == 0) open_after(opening_ != 0 ? replace_ms : collect_ms);
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
  if (wanted == asked_ && (current_ | opening_) != 0) return;
  asked_ = wanted;
  if (const std::uint64_t former = std::exchange(opening_, 0)) {
    wire_.end_listen(former);
    if (!started_ || opening_ != 0) return;  // the connection was lost during the call
  }
  if (wanted.empty()) {
    if (const std::uint64_t last = std::exchange(current_, 0)) wire_.end_listen(last);
    return wire_.accepted(0, {});  // answers the requests of subscriptions that were undone
  }
  if (wire_.send_listen(wanted, &opening_)) return;
  asked_.reset();
  interrupted(false);
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
  if (timer_ != 0) open_after(collect_ms);  // resources have changed since the request was sent
  const auto value_of = [accepted](std::string_view member) {
    return accepted.starts_with('{') ? mcp::member(accepted, member) : std::string_view{};
  };
  reported_ = {value_of("toolsListChanged") == "true", value_of("resourcesListChanged") == "true",
               value_of("promptsListChanged") == "true"};
  if (former != 0) wire_.end_listen(former);
  const bool missed = std::exchange(missed_, false), first = std::exchange(first_, false);
  if (missed || first) wire_.changes_missed(missed);
  wire_.accepted(id, value_of("resourceSubscriptions"));
}

void Listening::ended(std::uint64_t exchange, bool lasting, std::string_view reason) {
  if (exchange == 0 || (exchange != current_ && exchange != opening_)) return;
  const bool acknowledged = exchange == current_;
  (acknowledged ? current_ : opening_) = 0;
  if (!acknowledged) asked_.reset();
  interrupted(lasting);
  if (!acknowledged) wire_.rejected(exchange, reason);
}

// Opens the next request later, unless the server does not support the method (`lasting`), the
// connection has ended, or another request is already waiting for its acknowledgement.
void Listening::interrupted(bool lasting) {
  missed_ |= current_ == 0;
  if (lasting || !started_ || opening_ != 0) return;
  open_after(jitter(std::min(retry_ms << std::min(failures_++, 16u), retry_max_ms)));
}

}  // namespace bulkhead
