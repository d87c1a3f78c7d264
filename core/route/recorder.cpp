#include "route/recorder.hpp"

#include <algorithm>
#include <chrono>

#include "bulkhead/cpp/basics.hpp"
#include "route/session.hpp"

namespace bulkhead {

namespace {

std::uint64_t unix_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

// Nobody makes a record in every microsecond, so numbers go on growing in the next process.
Recorder::Recorder(Reactor &reactor) : reactor_(reactor), first_(unix_ns() / 1000) {}

Recorder::~Recorder() {
  reactor_.timer_cancel(timer_);
}

void Recorder::record(const Exchange &e, std::uint32_t outcome, std::uint64_t now_ns,
                      std::uint64_t bytes_out, std::string_view rule, std::string_view error) {
  if (waiting_.size() >= max_waiting) {
    ++dropped_;
    return;
  }
  Entry &entry = waiting_.emplace_back();
  entry.facts.size = sizeof entry.facts;
  entry.facts.outcome = outcome;
  entry.facts.exchange = e.id;
  entry.facts.session = e.reply.session;
  entry.facts.duration_ns = now_ns - e.start_ns;
  entry.facts.start_unix_ns = unix_ns() - entry.facts.duration_ns;
  entry.facts.number = first_ + waiting_.size() - 1;
  entry.facts.bytes_in = e.bytes_in;
  entry.facts.bytes_out = bytes_out;
  if (e.session != nullptr) {
    entry.transport = e.session->transport;
    entry.peer = e.session->address;
    entry.principal = e.session->principal;
  }
  entry.process_name = e.process_name;
  entry.method = mcp::to_string(e.method);
  entry.server = e.server;
  entry.name = e.name.substr(0, max_text);
  entry.rule = rule.substr(0, max_text);
  entry.error = error.substr(0, max_text);
  if (timer_ == 0) start_timer();
}

void Recorder::start_timer() {
  timer_ = reactor_.timer_start(
      this, flush_ms,
      [](void *arg) {
        auto &self = *static_cast<Recorder *>(arg);
        self.timer_ = 0;
        self.flush();
        if (!self.waiting_.empty()) self.start_timer();
      },
      this);
}

void Recorder::flush() {
  for (Sink &sink : sinks_) offer(sink);
  drop_taken();
}

void Recorder::offer(Sink &sink) {
  const std::uint64_t end = first_ + waiting_.size();
  std::vector<bh_record> facts;
  std::vector<const bh_record *> pointers;
  for (std::uint64_t at = std::max(sink.taken, first_); at < end;) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_size, end - at));
    facts.clear();
    pointers.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
      const Entry &entry = waiting_[at - first_ + i];
      bh_record &r = facts.emplace_back(entry.facts);
      r.transport = bh::str(entry.transport);
      r.peer = bh::str(entry.peer);
      r.principal = bh::str(entry.principal);
      r.process_name = bh::str(entry.process_name);
      r.method = bh::str(entry.method);
      r.server = bh::str(entry.server);
      r.name = bh::str(entry.name);
      r.rule = bh::str(entry.rule);
      r.error = bh::str(entry.error);
    }
    for (const bh_record &r : facts) pointers.push_back(&r);
    const std::uint32_t taken = std::min(n, sink.table->batch(sink.self, pointers.data(), n));
    at += taken;
    sink.taken = at;
    if (taken < n) return;
  }
}

void Recorder::drop_taken() {
  std::uint64_t all = first_ + waiting_.size();
  for (const Sink &sink : sinks_) all = std::min(all, sink.taken);
  while (first_ < all) {
    waiting_.pop_front();
    ++first_;
  }
}

}  // namespace bulkhead
