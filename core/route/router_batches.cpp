// JSON-RPC batches. A client's are handled in order and answered as one array; a server's are just
// several messages. Neither nests: an array inside an array is no message.
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_batch = 256;
constexpr std::size_t max_repeated_id = 1024;  // in an error that stands for an answer

}  // namespace

// ---- of clients ------------------------------------------------------------------------------

// They exist in 2025-03-26 only.
bool Router::handle_batch(Session &s, const ReplyTo &reply, std::string_view message) {
  if (!s.initialized || s.revision != batch_revision) {
    ++counters_.refused_messages;
    answer_error(reply, {}, code::invalid_request,
                 "JSON-RPC batches exist in MCP 2025-03-26 only; send one message at a time", 400);
    return true;
  }
  struct Elements {
    Router &router;
    ReplyTo reply;
    std::uint32_t count = 0;
    std::uint32_t answers = 0;
  };
  const std::uint64_t handle = batches_.insert({reply, 1, "["});
  Elements elements{*this, {reply.session, reply.stream, handle}};
  mcp::for_each_element(message, &elements, [](void *arg, std::string_view element) {
    auto &e = *static_cast<Elements *>(arg);
    Session *session = e.router.session(e.reply.session);
    Batch *batch = e.router.batches_.get(e.reply.batch);
    if (session == nullptr || batch == nullptr) return false;
    ++batch->open;
    if (++e.count > max_batch) {
      e.router.answer_error(e.reply, {}, code::invalid_request,
                            "a batch holds at most " + std::to_string(max_batch) + " messages");
      ++e.answers;
      return false;
    }
    bh_delivery delivery{};
    if (element.starts_with('[')) {
      ++e.router.counters_.refused_messages;
      e.router.answer_error(e.reply, {}, code::invalid_request, "a batch cannot hold a batch");
    } else if (!e.router.handle_message(*session, e.reply, element, &delivery)) {
      e.router.batch_done(e.reply.batch);
      return true;
    }
    ++e.answers;
    if (Batch *still = e.router.batches_.get(e.reply.batch)) still->expects_answer = true;
    return true;
  });
  batch_done(handle);
  return elements.answers != 0;
}

void Router::answer_in_batch(std::uint64_t handle, const bh_str *parts, std::uint32_t count) {
  Batch *batch = batches_.get(handle);
  if (batch == nullptr) return;
  if (count != 0 && !batch->silent) append_answer(*batch, parts, count);
  batch_done(handle);
}

// What waits here waits for its client, like what a transport keeps for one that reads slowly, and
// has the same bound: beyond it an error stands for the answer.
void Router::append_answer(Batch &batch, const bh_str *parts, std::uint32_t count) {
  Session *s = session(batch.reply.session);
  if (s == nullptr) return;
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text.append(bh::view(parts[i]));
  if (s->batched_bytes + text.size() > limits().write_queue_bytes) {
    mcp::Scan scan;
    mcp::ScanError error;
    const bool read = mcp::scan(text, &scan, &error) && scan.id.size() <= max_repeated_id;
    const std::string id = read ? std::string(scan.id.in(text)) : std::string();
    std::string instead =
        error_text(id, code::timeout,
                   "too many bytes of answers wait in batches of this session "
                   "(limits.write_queue_bytes = " +
                       std::to_string(limits().write_queue_bytes) + "); the answer was dropped",
                   {});
    if (instead.size() < text.size()) text = std::move(instead);
  }
  if (batch.body.size() > 1) batch.body += ',';
  batch.body += text;
  batch.bytes += text.size();
  s->batched_bytes += text.size();
}

void Router::batch_done(std::uint64_t handle) {
  Batch *batch = batches_.get(handle);
  if (batch == nullptr || --batch->open != 0) return;
  const std::string body = std::move(batch->body) + "]";
  const ReplyTo reply = batch->reply;
  const bool expects_answer = batch->expects_answer;
  if (Session *s = session(reply.session)) s->batched_bytes -= batch->bytes;
  batches_.erase(handle);
  if (body.size() > 2) return answer_text(reply, body);
  if (expects_answer) end_without_answer(reply);  // all of its requests were cancelled
}

// ---- of servers ------------------------------------------------------------------------------

// In any revision: to take them costs nothing, and servers were written against each of them.
void Router::upstream_batch(bh_lane handle, std::uint64_t hint, std::string_view message) {
  struct Elements {
    Router &router;
    bh_lane lane;
    std::uint64_t hint;
    std::uint32_t count = 0;
    std::uint32_t bad = 0;
    std::string first_bad = {};

    void refuse(std::string_view element, const mcp::ScanError &error) {
      std::string text = router.refuse_upstream(lane, hint, element, error);
      if (bad++ == 0) first_bad = std::move(text);
    }
  } elements{*this, handle, hint};
  mcp::for_each_element(message, &elements, [](void *arg, std::string_view element) {
    auto &e = *static_cast<Elements *>(arg);
    WireLane *lane = e.router.wire(e.lane);
    if (lane == nullptr) return false;
    mcp::Scan scan;
    mcp::ScanError error;
    if (++e.count > max_batch) {
      error.what = "a batch of more than 256 messages; the rest of it was dropped";
      e.refuse({}, error);
      return false;
    }
    if (element.starts_with('[')) {
      error.what = "a batch inside a batch";
      e.refuse({}, error);
    } else if (mcp::scan(element, &scan, &error)) {
      e.router.take_upstream(*lane, e.hint, element, scan);
    } else {
      e.refuse(element, error);
    }
    return true;
  });
  if (elements.bad == 0) return;
  // One line, however many there are.
  const std::string more =
      elements.bad == 1 ? "" : " (and " + std::to_string(elements.bad - 1) + " more in its batch)";
  log(BH_LOG_WARN, elements.first_bad + more);
}

}  // namespace bulkhead
