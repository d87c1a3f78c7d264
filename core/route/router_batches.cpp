// JSON-RPC batches of clients: handled in order, and answered as one array. They do not nest: an
// array inside an array is no message.
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_batch = 256;

}  // namespace

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

}  // namespace bulkhead
