#include "route/client_answers.hpp"

#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/json_rpc.hpp"
#include "route/result_form.hpp"

namespace bulkhead {

ClientAnswers::ClientAnswers(Sessions &sessions, Recorder &recorder, Reactor &reactor,
                             const Limits &limits, RouterCounters &counters,
                             std::function<void()> on_sent)
    : sessions_(sessions),
      recorder_(recorder),
      reactor_(reactor),
      counters_(counters),
      on_sent_(std::move(on_sent)),
      batches_(sessions, limits),
      held_(recorder, reactor,
            [this](const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                   std::uint32_t http_status,
                   bool withheld) { released(reply, parts, count, http_status, withheld); }) {}

void ClientAnswers::send(const ReplyTo &reply, std::uint32_t kind, const bh_str *parts,
                         std::uint32_t count, std::uint32_t http_status) {
  Session *s = sessions_.find(reply.session);
  if (s == nullptr || (s->answers_only && kind != BH_OUT_ANSWER)) return;
  bh_outgoing message{};
  message.size = sizeof message;
  message.kind = kind;
  message.session = s->at_transport();
  message.stream = reply.stream;
  message.http_status = http_status;
  message.part_count = count;
  message.parts = parts;
  ClientEnd &end = *s->end;
  ++sending_;
  if (s->is_sessionless() && kind == BH_OUT_ANSWER) on_sessionless_answer_(*s);
  end.send(message);
  --sending_;
}

void ClientAnswers::event(const ReplyTo &reply, std::string_view text) {
  const bh_str part = bh::str(text);
  send(reply, BH_OUT_EVENT, &part, 1);
}

void ClientAnswers::answer(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                           std::uint32_t http_status, bool may_have_run) {
  if (ledger_ != nullptr) ledger_->prove();
  if (reply.batch != 0) return put_in_batch(reply.batch, parts, count);
  if (held_.must_hold()) return held_.hold(reply, parts, count, http_status, may_have_run);
  send(reply, BH_OUT_ANSWER, parts, count, http_status);
  on_sent_();
}

void ClientAnswers::result(const ReplyTo &reply, std::string_view id_token, std::string_view result,
                           bool may_have_run) {
  std::string formed;
  if (reply.form != nullptr) result = formed = formed_result(*reply.form, result);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id_token),
                          bh::str(R"(,"result":)"), bh::str(result), bh::str("}")};
  answer(reply, parts, 5, 0, may_have_run);
}

void ClientAnswers::error(const ReplyTo &reply, std::string_view id_token, std::int32_t error_code,
                          std::string_view text, std::uint32_t http_status, std::string_view data,
                          bool may_have_run) {
  if (reply.form != nullptr && http_status == 0) {
    const ResultForm::ErrorForm formed = reply.form->error(error_code);
    error_code = formed.code;
    http_status = formed.http_status;
  }
  const std::string message = error_message(id_token, error_code, text, data);
  const bh_str part = bh::str(message);
  answer(reply, &part, 1, http_status, may_have_run);
}

void ClientAnswers::result(Incoming &request, std::string_view result_text) {
  record(request, BH_OUTCOME_OK, {}, result_text);
  result(request.reply, request.id(), result_text);
}

void ClientAnswers::error(Incoming &request, std::int32_t error_code, std::string_view text,
                          std::uint32_t http_status, std::string_view data) {
  if (recorder_.active() && !request.recorded) {
    record(request, BH_OUTCOME_ERROR, text, error_object(error_code, text, data));
  }
  error(request.reply, request.id(), error_code, text, http_status, data);
}

void ClientAnswers::unrecorded_error(const ReplyTo &reply, std::string_view id_token,
                                     std::int32_t error_code, std::string_view text,
                                     std::uint32_t http_status) {
  if (ledger_ != nullptr) ledger_->prove();
  const std::string message = error_message(id_token, error_code, text);
  const bh_str part = bh::str(message);
  if (reply.batch != 0) return put_in_batch(reply.batch, &part, 1);
  send(reply, BH_OUT_ANSWER, &part, 1, http_status);
  on_sent_();
}

void ClientAnswers::none(const ReplyTo &reply) {
  answer(reply, nullptr, 0, 202);
}

void ClientAnswers::record(Incoming &request, std::uint32_t outcome, std::string_view error,
                           std::string_view response) {
  if (!recorder_.active() || std::exchange(request.recorded, true)) return;
  const bh_session handle = request.reply.session;
  recorder_.record({sessions_.find(handle), handle, request.message.bytes, request.message.scan,
                    request.start_ns},
                   {outcome, reactor_.now_ns(), response.size(), {}, error, response});
}

// ---- batches ---------------------------------------------------------------------------------

void ClientAnswers::put_in_batch(std::uint64_t batch, const bh_str *parts, std::uint32_t count) {
  batches_.put(batch, parts, count);
  batch_message_done(batch);
}

void ClientAnswers::batch_message_done(std::uint64_t batch) {
  const auto complete = batches_.end_one(batch);
  if (!complete) return;
  // The body is empty if all requests of the batch were cancelled. The transport's slot must then
  // be released without a response.
  if (complete->body.empty() && complete->expects_answer) return none(complete->reply);
  if (complete->body.empty()) return;
  const bh_str part = bh::str(complete->body);
  answer(complete->reply, &part, 1);
}

// ---- held responses --------------------------------------------------------------------------

void ClientAnswers::released(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                             std::uint32_t http_status, bool withheld) {
  if (withheld) ++counters_.answers_withheld;
  send(reply, BH_OUT_ANSWER, parts, count, http_status);
  if (held_.empty()) on_sent_();
}

void ClientAnswers::records_committed() {
  held_.release_committed();
}

}  // namespace bulkhead
