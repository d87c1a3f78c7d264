#include "route/client_messages.hpp"

#include <string>

#include "mcp/for_each.hpp"
#include "route/drop_members.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_batch = 256;

// If a plugin does not allow requests without records, and the request cannot be recorded, sends an
// error response and returns false.
bool can_record(const ClientMessages::Needs &needs, const Incoming &request) {
  if (!needs.recorder.active()) return true;
  if (!needs.recorder.must_refuse(needs.calls.size()) && !needs.answers.held_full()) return true;
  ++needs.counters.refused_unrecorded;
  needs.answers.unrecorded_error(
      request.reply, request.id(), code::internal_error,
      "the gateway cannot record calls at the moment, and its profile rejects calls that cannot "
      "be recorded (on_failure = \"block\")");
  return false;
}

// Records a message that is not a valid request, and sends an error response.
void refuse(const ClientMessages::Needs &needs, const ReplyTo &reply, const Message &message,
            std::string_view text, std::uint32_t http_status = 0) {
  ++needs.counters.refused_messages;
  Incoming request{reply, message, needs.reactor.now_ns()};
  if (!can_record(needs, request)) return;
  needs.answers.error(request, code::invalid_request, text, http_status);
}

}  // namespace

bool ClientMessages::handle(Session &s, const ReplyTo &reply, std::string_view message,
                            bh_delivery *out, const WireHeaders *headers) {
  mcp::Scan scan;
  if (!take_apart(reply, message, &scan, out)) return true;
  ClientEdge &edge = edge_of(s, {message, &scan}, headers);
  const bool begins = scan.kind == mcp::Kind::request && edge.begins_session(scan);
  if (begins && s.sessionless == Session::Sessionless::in_delivery) {
    s.sessionless = Session::Sessionless::begins_session;
    return false;
  }
  std::string room;
  needs_.counters.dropped_members += drop_members(needs_.profile, &message, &scan, &room);
  if (scan.kind == mcp::Kind::batch) return batch(s, edge, reply, message);
  if (scan.kind == mcp::Kind::request) needs_.journal.request(reply, {message, &scan});
  needs_.journal.commit(s.handle);
  switch (scan.kind) {
    case mcp::Kind::request: {
      Incoming incoming{reply, {message, &scan}, needs_.reactor.now_ns(), false, headers};
      handle_request(s, edge, incoming);
      const Session *still = begins ? needs_.sessions.find(reply.session) : nullptr;
      if (still != nullptr && still->initialized) out->flags |= BH_DELIVERED_INITIALIZE;
      return true;
    }
    case mcp::Kind::notification:
      notification(s, edge, {message, &scan});
      return false;
    default:
      if (s.is_sessionless()) return refuse_response(reply, out);
      needs_.asks.answered(s, {message, &scan});
      return false;
  }
}

// Scans the message. If it is invalid or too large, sends an error response and returns false.
bool ClientMessages::take_apart(const ReplyTo &reply, std::string_view message, mcp::Scan *scan,
                                bh_delivery *out) {
  mcp::ScanError error;
  const std::size_t most = needs_.profile.limits.message_bytes;
  const bool fits = message.size() <= most;
  if (fits && mcp::scan(message, scan, &error)) return true;
  out->flags |= BH_DELIVERED_REFUSED;
  if (!fits) {
    ++needs_.counters.refused_messages;
    needs_.answers.unrecorded_error(
        reply, {}, code::invalid_request,
        "the message is larger than " + std::to_string(most) + " bytes (limits.message_bytes)",
        413);
    return false;
  }
  const std::string text =
      std::string(error.what) + " (at byte " + std::to_string(error.offset) + ")";
  if (error.code != code::invalid_request) {  // not JSON
    ++needs_.counters.refused_messages;
    needs_.answers.unrecorded_error(reply, error.id.in(message), error.code, text, 400);
    return false;
  }
  scan->id = error.id;  // the record has the same id as the response
  scan->params = {};    // not recorded, because no policy has evaluated the message
  needs_.journal.request(reply, {message, scan});
  refuse(needs_, reply, {message, scan}, text, 400);
  return false;
}

// Without a session, no server-initiated request exists to which the response could belong.
bool ClientMessages::refuse_response(const ReplyTo &reply, bh_delivery *out) {
  ++needs_.counters.refused_messages;
  out->flags |= BH_DELIVERED_REFUSED;
  needs_.answers.unrecorded_error(
      reply, {}, code::invalid_request,
      "a response can be sent only in a session; Mcp-Session-Id is missing", 400);
  return true;
}

ClientEdge &ClientMessages::edge_of(const Session &s, const Message &message,
                                    const WireHeaders *headers) const {
  for (ClientEdge *edge : edges_) {
    if (edge->speaks(s, message, headers)) return *edge;
  }
  return *edges_.back();
}

void ClientMessages::handle_request(Session &s, ClientEdge &edge, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (!can_record(needs_, request)) return;
  if (scan.bad_progress_token) {
    ++needs_.counters.refused_messages;
    return needs_.answers.error(request, code::invalid_params, bad_progress_token);
  }
  if (scan.unknown_params != 0 && needs_.profile.unknown_params == UnknownParams::refuse) {
    ++needs_.counters.refused_messages;
    return needs_.answers.error(request, code::invalid_params,
                                std::string(mcp::to_string(scan.method)) +
                                    " does not accept these params: " +
                                    mcp::unknown_param_names(request.message.bytes, scan) +
                                    " (gateway.unknown_params = \"refuse\")");
  }
  edge.request(s, request);
}

void ClientMessages::notification(Session &s, ClientEdge &edge, const Message &message) {
  if (message.scan->bad_progress_token) {
    ++needs_.counters.refused_messages;
    return;
  }
  if (needs_.recorder.active()) {
    const std::uint64_t now = needs_.reactor.now_ns();
    needs_.recorder.record({&s, s.handle, message.bytes, message.scan, now},
                           {BH_OUTCOME_OK, now, 0, {}, {}, {}});
  }
  edge.notification(s, message);
}

// Handles the messages of a batch in order and responds with one array. A nested array is not a
// valid message. Messages that are not handled are not read: they have one record and one error
// response together.
bool ClientMessages::batch(Session &s, const ClientEdge &edge, const ReplyTo &reply,
                           std::string_view message) {
  mcp::Scan unread;
  unread.kind = mcp::Kind::batch;
  if (!edge.takes_batches(s)) {
    refuse(needs_, reply, {message, &unread},
           "JSON-RPC batches are supported only in MCP 2025-03-26; send one message at a time",
           400);
    return true;
  }
  ClientAnswers &answers = needs_.answers;
  const std::uint64_t batch = answers.batches().open(reply);
  const ReplyTo part{reply.session, reply.stream, batch};
  std::uint32_t count = 0, answered = 0;
  mcp::for_each_element(message, [&](std::string_view element) {
    Session *session = needs_.sessions.find(part.session);
    if (session == nullptr || !answers.batches().add(batch)) return false;
    if (++count > max_batch) {
      const auto rest = static_cast<std::size_t>(element.data() - message.data());
      refuse(needs_, part, {message.substr(rest), &unread},
             "a batch can contain at most " + std::to_string(max_batch) + " messages");
      ++answered;
      return false;
    }
    bh_delivery delivery{};
    if (element.starts_with('[')) {
      refuse(needs_, part, {element, &unread}, "a batch cannot contain a batch");
    } else if (!handle(*session, part, element, &delivery)) {
      answers.batch_message_done(batch);
      return true;
    }
    ++answered;
    answers.batches().expect_answer(batch);
    return true;
  });
  answers.batch_message_done(batch);
  return answered != 0;
}

}  // namespace bulkhead
