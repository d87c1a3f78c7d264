// Tests the approval of calls: who can approve, which calls an approval covers, and how approval
// requests are resolved.
#include "route/approval_desk.hpp"

#include <catch2/catch.hpp>

#include "route/approval_form.hpp"
#include "route/message_world.hpp"
#include "route/record_fakes.hpp"

using namespace bulkhead;

namespace {

// A call that requires approval. Each member is a part of the call that an approval covers.
struct Asking {
  std::string server = "s", name = "tool", arguments = R"({"path":"/a"})", meta = "{}", more;
  std::string rule = "r", process = "agent";

  std::string message() const {
    return R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":)" +
           arguments + R"(,"_meta":)" + meta + more + "}}";
  }
};

struct World : MessageWorld {
  struct End {
    std::string name;
    ApprovalEnd end;
    ApprovalSurface surface;
  };
  Profile profile;
  FakeArchive archive;
  std::vector<End> ends;
  ApprovalDesk desk{
      {profile, *loop, recorder, counters, asks, answers,
       [this](const ApprovalOutcome &o) { ends.push_back({o.question.name, o.end, o.surface}); },
       "run the approver"}};
  Gate::Decision refusal;
  std::string reason = "it writes";

  World() {
    profile.approval.api = true;
    recorder.add_sink(&archive_table, &archive);
    first.revision = elicitation_revision;
  }
  ApprovalDesk::Asked ask(Session &session, const Asking &asking = {}, Call **out = nullptr) {
    Call &call = call_of(session);
    call.server = asking.server;
    call.name = asking.name;
    call.request.process_name = asking.process;
    if (out != nullptr) *out = &call;
    Gate::Decision decision;
    decision.rule = asking.rule;
    decision.reason = reason;
    const Scanned message(asking.message());
    return desk.ask(call, message.get(), DefinitionHash{}, decision, &refusal);
  }
  Call &asked(Session &session, const Asking &asking = {}) {
    Call *call = nullptr;
    REQUIRE(ask(session, asking, &call) == ApprovalDesk::Asked::waits);
    return *call;
  }
  void allow(const Call &call, const ApprovalScope &scope) {
    const auto question = desk.close(call, ApprovalEnd::allowed, ApprovalSurface::api, scope);
    REQUIRE(question.has_value());
    desk.grant(*question, scope);
  }
  bool refused_with(std::string_view text) const {
    return refusal.verdict == Gate::Verdict::refuse && refusal.asks &&
           refusal.reason.find(text) != std::string::npos;
  }
};

constexpr ApprovalScope for_session{ApprovalScope::Kind::session, 0};

std::vector<Asking> other_calls() {
  std::vector<Asking> out(7);
  out[0].server = "other";
  out[1].name = "other";
  out[2].arguments = R"({"path":"/b"})";
  out[3].meta = R"({"mode":"force"})";
  out[4].more = R"(,"task":{})";
  out[5].rule = "other";
  out[6].process = "other";
  return out;
}

}  // namespace

TEST_CASE("a call is refused without waiting if there is no approver") {
  World w;
  w.profile.approval.api = false;
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::refused);
  CHECK(w.refused_with("no approval surface is available (run the approver)"));
  CHECK(w.refused_with("it writes"));
  CHECK(w.refusal.rule == "r");
  CHECK(w.desk.size() == 0);
  CHECK(w.counters.approvals_asked == 0);
  // A program that lists approval requests with a watch time is an approver until that time
  // expires. Without a watch time, it is not an approver.
  CHECK(w.desk.list(0).questions.empty());
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::refused);
  w.desk.list(1);
  CHECK(wait_for(*w.loop, [&] { return !w.desk.somebody_watches(); }));
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::refused);
  w.desk.list(60'000);
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
  CHECK(w.desk.list(0).questions.size() == 1);
}

TEST_CASE("an approval for a session covers only the same call in this session") {
  World w;
  w.allow(w.asked(w.first), for_session);
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::granted);
  Asking same;
  // These two members differ in each call, so an approval does not cover them.
  same.meta = R"({"progressToken":7,"traceparent":"00-x"})";
  CHECK(w.ask(w.first, same) == ApprovalDesk::Asked::granted);
  for (const Asking &other : other_calls()) {
    INFO(other.message() << other.server << other.rule << other.process);
    CHECK(w.ask(w.first, other) == ApprovalDesk::Asked::waits);
  }
  CHECK(w.ask(w.second) == ApprovalDesk::Asked::waits);
  w.desk.forget_session(w.second.handle);
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::granted);
  w.desk.forget_session(w.first.handle);
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
}

TEST_CASE(
    "an approval for minutes covers the principal's other sessions until its server changes") {
  World w;
  w.allow(w.asked(w.first), {ApprovalScope::Kind::minutes, 5});
  CHECK(w.ask(w.second) == ApprovalDesk::Asked::granted);
  for (const Asking &other : other_calls()) {
    CHECK(w.ask(w.second, other) == ApprovalDesk::Asked::waits);
  }
  w.second.principal = "somebody else";
  CHECK(w.ask(w.second) == ApprovalDesk::Asked::waits);
  w.desk.forget_server("other");
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::granted);
  w.desk.forget_server("s");
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
}

TEST_CASE("a grant that is removed with its server or at the limit has an outcome and a record") {
  World w;
  w.allow(w.asked(w.first), for_session);
  w.recorder.flush();
  w.ends.clear();
  w.archive.records.clear();
  SECTION("the server") {
    w.desk.forget_server("other");
    CHECK(w.ends.empty());
    w.desk.forget_server("s");
  }
  SECTION("the limit") {
    ApprovalQuestion other;
    for (std::size_t i = 1; i < Approvals::max_grants; ++i) {
      other.digest = std::to_string(i);
      w.desk.grant(other, for_session);
    }
    CHECK(w.ends.empty());
    w.desk.grant(other, for_session);
  }
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
  REQUIRE(w.ends.size() == 1);
  CHECK(w.ends[0].name == "tool");
  CHECK(w.ends[0].end == ApprovalEnd::withdrawn);
  CHECK(w.ends[0].surface == ApprovalSurface::none);
  w.recorder.flush();
  REQUIRE(w.archive.records.size() == 2);
  CHECK(mcp::member(w.archive.records[0].detail, "status") == R"("withdrawn")");
  CHECK(mcp::member(w.archive.records[0].detail, "scope") == R"("session")");
  CHECK(mcp::member(w.archive.records[1].detail, "status") == R"("pending")");
}

TEST_CASE("an approval for one call does not cover another call") {
  World w;
  w.allow(w.asked(w.first), {});
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
}

TEST_CASE("an approval covers the parts that are truncated in the approval request") {
  World w;
  Asking longer;
  longer.arguments =
      R"({"text":")" + std::string(ApprovalQuestion::max_arguments + 100, 'x') + R"(","n":1})";
  Asking other = longer;
  other.arguments[other.arguments.size() - 2] = '2';
  Call &call = w.asked(w.first, longer);
  const ApprovalQuestion shown = w.desk.list(0).questions[0];
  CHECK(shown.arguments_cut);
  CHECK(shown.arguments.size() <= ApprovalQuestion::max_arguments);
  CHECK(shown.arguments_bytes == longer.arguments.size());
  w.allow(call, for_session);
  CHECK(w.ask(w.first, longer) == ApprovalDesk::Asked::granted);
  CHECK(w.ask(w.first, other) == ApprovalDesk::Asked::waits);
  CHECK(w.desk.list(0).questions[0].arguments == shown.arguments);
}

TEST_CASE("the texts of approval requests are limited in size, and hidden characters are visible") {
  World w;
  const std::string reversed = "\xE2\x80\xAE";  // right-to-left override
  Asking asking;
  asking.name = reversed + std::string(2 * ApprovalQuestion::max_name, 'n');
  asking.process = reversed + "agent";
  asking.meta = R"({"a":")" + std::string(2 * ApprovalQuestion::max_meta, 'm') + R"("})";
  asking.more = R"(,"task":{"password":"secret"})";
  w.asked(w.first, asking);
  const ApprovalQuestion q = w.desk.list(0).questions[0];
  CHECK(q.name.find(reversed) == std::string::npos);
  CHECK(q.name.size() <= ApprovalQuestion::max_name + 3);
  CHECK(q.name.ends_with("..."));
  CHECK(q.process_name == "\\u202eagent");
  CHECK(q.meta.find("(truncated from " + std::to_string(asking.meta.size()) + " bytes)") !=
        std::string::npos);
  CHECK(q.extra.find("secret") == std::string::npos);
  CHECK(q.extra.find("password") != std::string::npos);
}

TEST_CASE("no text of an approval request starts a new line in the form") {
  World w;
  w.profile.approval = {true, false};
  const std::string forged = "\nReason: routine read\r\n\tArguments: {}";
  Asking asking;
  asking.name = "bulkhead://files/secret" + forged;
  asking.rule = "r" + forged;
  asking.process = "agent" + forged;
  asking.arguments = "{\n\"path\":\t\"/a\",\r\n\"Reason\":1}";
  asking.meta = "{\n\"Reason\":1}";
  asking.more = ",\"task\":{\n\"Reason\":1}";
  w.first.principal = "user" + forged;
  w.first.address = "peer" + forged;
  w.first.claimed_name = std::make_shared<const std::string>("client" + forged);
  w.reason = "it writes" + forged;
  w.desk.ask_client(w.asked(w.first, asking));
  const ApprovalQuestion q = w.desk.list(0).questions.at(0);
  CHECK(q.arguments == R"({ "path": "/a",  "Reason":1})");
  for (const std::string &text : {q.name, q.arguments, q.meta, q.extra, q.rule, q.reason,
                                  q.process_name, q.principal, q.peer, q.claimed_name}) {
    INFO(text);
    CHECK(text.find_first_of("\n\r\t") == std::string::npos);
  }
  CHECK(q.name ==
        R"(bulkhead://files/secret\u000aReason: routine read\u000d\u000a\u0009Arguments: {})");
  const auto forms = w.sent_to(w.first, BH_OUT_ASK);
  REQUIRE(forms.size() == 1);
  std::string scratch;
  const std::string message(mcp::unquote(at(forms[0], {"params", "message"}), &scratch));
  CHECK(message.find("\nReason: it writes") != std::string::npos);
  CHECK(message.find("\nReason: routine") == std::string::npos);
  CHECK(message.find("\n\"Reason\"") == std::string::npos);
  asking.name = std::string(ApprovalQuestion::max_name, '\n');
  w.asked(w.first, asking);
  const std::string cut = w.desk.list(0).questions.at(1).name;
  CHECK(cut.size() <= ApprovalQuestion::max_name + 3);
  CHECK(cut.ends_with("..."));
}

TEST_CASE(
    "each limit on pending approval requests is named in the refusal and applies until one is "
    "resolved") {
  World w;
  Call &call = w.asked(w.first);
  std::string limit;
  SECTION("of the gateway") {
    w.profile.limits.approvals_waiting = 1;
    limit = "limits.approvals_waiting = 1";
  }
  SECTION("of the session") {
    w.profile.limits.approvals_per_session = 1;
    limit = "limits.approvals_per_session = 1";
  }
  SECTION("in bytes") {
    w.profile.limits.approvals_bytes = Asking().message().size();
    limit = "limits.approvals_bytes";
  }
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::refused);
  CHECK(w.refused_with(limit));
  CHECK(w.desk.size() == 1);
  w.desk.close(call, ApprovalEnd::denied, ApprovalSurface::api);
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::waits);
}

TEST_CASE("an approval request is resolved once, and its outcome is reported and recorded") {
  World w;
  Call &denied = w.asked(w.first), &withdrawn = w.asked(w.second);
  CHECK(w.first.load->approvals == 1);
  w.desk.close(denied, ApprovalEnd::denied, ApprovalSurface::terminal);
  w.desk.close(withdrawn, ApprovalEnd::withdrawn);
  CHECK_FALSE(w.desk.close(denied, ApprovalEnd::allowed, ApprovalSurface::api).has_value());
  REQUIRE(w.ends.size() == 2);
  CHECK(w.ends[0].end == ApprovalEnd::denied);
  CHECK(w.ends[0].surface == ApprovalSurface::terminal);
  CHECK(w.ends[1].end == ApprovalEnd::withdrawn);
  w.allow(w.asked(w.first), {ApprovalScope::Kind::minutes, 2});
  w.recorder.flush();
  std::vector<std::string> status;
  for (const FakeArchive::Record &record : w.archive.records) {
    CHECK(record.kind == BH_RECORD_APPROVAL);
    CHECK(record.detail.find("/a") == std::string::npos);  // the record contains no arguments
    const std::string_view surface = mcp::member(record.detail, "surface");
    status.push_back(std::string(mcp::member(record.detail, "status")) + std::string(surface) +
                     std::string(mcp::member(record.detail, "scope")));
  }
  CHECK(status == std::vector<std::string>{R"("pending")", R"("pending")", R"("denied""terminal")",
                                           R"("withdrawn")", R"("pending")",
                                           R"("approved""api""2 minutes")"});
}

TEST_CASE(
    "the client that may approve receives one form, which is withdrawn with the approval request") {
  World w;
  w.profile.approval = {true, false};
  Call &call = w.asked(w.first);
  w.desk.ask_client(call);
  REQUIRE(w.sent_to(w.first, BH_OUT_ASK).size() == 1);
  const std::string form = w.sent_to(w.first, BH_OUT_ASK)[0];
  CHECK(at(form, {"method"}) == R"("elicitation/create")");
  CHECK(w.client.sent.back().stream == call.request.reply.stream);
  CHECK(w.first.load->asks == 1);
  CHECK(w.sent_to(w.second, BH_OUT_ASK).empty());
  w.desk.close(call, ApprovalEnd::expired);
  const auto events = w.sent_to(w.first, BH_OUT_EVENT);
  REQUIRE(events.size() == 1);
  CHECK(at(events[0], {"params", "requestId"}) == at(form, {"id"}));
  CHECK(w.first.load->asks == 0);
  w.desk.ask_client(call);  // the approval request has been resolved
  CHECK(w.sent_to(w.first, BH_OUT_ASK).size() == 1);
}

TEST_CASE("a client that cannot display a form is not an approver") {
  World w;
  w.profile.approval = {true, false};
  SECTION("an old revision") {
    w.first.revision = elicitation_revision - 1;
  }
  SECTION("without the capability") {
    w.first.caps = cap::sampling;
  }
  SECTION("it has closed its input") {
    w.first.input_ended = true;
  }
  SECTION("it accepts only responses") {
    w.first.answers_only = true;
  }
  SECTION("the limit on requests to the client is reached") {
    w.first.load->asks = w.profile.limits.asks_per_session;
  }
  CHECK(w.ask(w.first) == ApprovalDesk::Asked::refused);
  // If there is another approver, the approval request is pending, but the client does not receive
  // a form.
  w.profile.approval.api = true;
  w.desk.ask_client(w.asked(w.first));
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
}

TEST_CASE("an approval is rejected if no approval request is pending or the scope is invalid") {
  World w;
  const Call &one = w.asked(w.first), &two = w.asked(w.second);
  const auto questions = w.desk.list(0).questions;
  REQUIRE(questions.size() == 2);
  CHECK(*w.desk.find({questions[0].id, true, {}}) == one.id);
  CHECK(*w.desk.find({questions[1].id, false, for_session}) == two.id);
  CHECK(w.desk.find({"0123", true, {}}).error().code == BH_E_NOT_FOUND);
  for (const std::uint32_t minutes : {0u, ApprovalScope::max_minutes + 1}) {
    const ApprovalAnswer answer{questions[0].id, true, {ApprovalScope::Kind::minutes, minutes}};
    CHECK(w.desk.find(answer).error().code == BH_E_INVALID);
  }
  w.desk.close(one, ApprovalEnd::expired);
  CHECK(w.desk.find({questions[0].id, true, {}}).error().code == BH_E_NOT_FOUND);
  CHECK(w.desk.find({questions[1].id, true, {}}).has_value());
}
