// JSON-RPC batches. A client's are handled in order and answered as one array; a server's are just
// several messages. Neither nests: an array inside an array is no message.
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_batch = 256;

}  // namespace

// ---- of clients ------------------------------------------------------------------------------

// They exist in 2025-03-26 only.
bool Router::handle_batch(Session &s, const ReplyTo &reply, std::string_view message) {
  if (!s.initialized || s.revision != batch_revision) {
    ++counters_.refused_messages;
    answers_.error(reply, {}, code::invalid_request,
                   "JSON-RPC batches exist in MCP 2025-03-26 only; send one message at a time",
                   400);
    return true;
  }
  struct Elements {
    Router &router;
    ReplyTo reply;
    std::uint32_t count = 0;
    std::uint32_t answers = 0;
  };
  const std::uint64_t batch = answers_.batches().open(reply);
  Elements elements{*this, {reply.session, reply.stream, batch}};
  mcp::for_each_element(message, &elements, [](void *arg, std::string_view element) {
    auto &e = *static_cast<Elements *>(arg);
    ClientAnswers &answers = e.router.answers_;
    Session *session = e.router.session(e.reply.session);
    if (session == nullptr || !answers.batches().add(e.reply.batch)) return false;
    if (++e.count > max_batch) {
      answers.error(e.reply, {}, code::invalid_request,
                    "a batch holds at most " + std::to_string(max_batch) + " messages");
      ++e.answers;
      return false;
    }
    bh_delivery delivery{};
    if (element.starts_with('[')) {
      ++e.router.counters_.refused_messages;
      answers.error(e.reply, {}, code::invalid_request, "a batch cannot hold a batch");
    } else if (!e.router.handle_message(*session, e.reply, element, &delivery)) {
      answers.batch_message_done(e.reply.batch);
      return true;
    }
    ++e.answers;
    answers.batches().expect_answer(e.reply.batch);
    return true;
  });
  answers_.batch_message_done(batch);
  return elements.answers != 0;
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
