// Tests the queue of approval requests, the scopes of approvals, and what an approver sees.
#include "route/approvals.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "route/approval_form.hpp"
#include "route/shown_json.hpp"

using namespace bulkhead;

namespace {

constexpr std::uint64_t second = 1'000'000'000;

Approvals::Waiting waiting(std::uint64_t call, std::uint64_t session = 1,
                           std::uint64_t bytes = 10) {
  Approvals::Waiting out;
  out.call = call;
  out.bytes = bytes;
  out.question.session = session;
  out.question.digest = "d";
  out.question.rule = "r";
  return out;
}

Limits small() {
  Limits limits;
  limits.approvals_waiting = 3;
  limits.approvals_per_session = 2;
  limits.approvals_bytes = 100;
  return limits;
}

mcp::Scan scanned(std::string_view text) {
  mcp::Scan scan;
  mcp::ScanError error;
  REQUIRE(mcp::scan(text, &scan, &error));
  return scan;
}

FormAnswer form(const std::string &result) {
  const std::string text = R"({"jsonrpc":"2.0","id":1,"result":)" + result + "}";
  return read_approval_form(text, scanned(text));
}

}  // namespace

TEST_CASE("pending approval requests have three limits, and each refusal names the limit") {
  const Limits limits = small();
  Approvals a;
  const auto first = std::make_shared<ClientLoad>(), other = std::make_shared<ClientLoad>();
  const auto of = [](std::shared_ptr<ClientLoad> load, Approvals::Waiting one) {
    one.load = std::move(load);
    return one;
  };
  CHECK(a.refusal(limits, *first, 10).empty());
  // The limit is per client, even if each request has its own session.
  a.add(of(first, waiting(1, 1)));
  a.add(of(first, waiting(2, 2)));
  CHECK(a.refusal(limits, *first, 10).find("approvals_per_session = 2") != std::string::npos);
  CHECK(a.refusal(limits, *other, 80).empty());
  CHECK(a.refusal(limits, *other, 81).find("approvals_bytes = 100") != std::string::npos);
  a.add(of(other, waiting(3, 2)));
  CHECK(a.refusal(limits, *other, 1).find("approvals_waiting = 3") != std::string::npos);
  CHECK(first->approvals == 2);

  REQUIRE(a.take(1).has_value());
  CHECK_FALSE(a.take(1).has_value());
  CHECK(a.refusal(limits, *first, 10).empty());
  CHECK(first->approvals == 1);
  CHECK(a.size() == 2);
}

TEST_CASE("ids of approval requests are long and unique, and each id finds only its own request") {
  Approvals a;
  std::set<std::string> ids;
  for (std::uint64_t i = 1; i <= 200; ++i) ids.insert(a.add(waiting(i))->id);
  CHECK(ids.size() == 200);
  for (const std::string &id : ids) CHECK(id.size() == 32);
  const std::string one = *ids.begin();
  REQUIRE(a.find(one) != nullptr);
  const std::uint64_t call = a.find(one)->call;
  CHECK(a.find(one.substr(0, 31)) == nullptr);
  CHECK(a.find("") == nullptr);
  a.take(call);
  CHECK(a.find(one) == nullptr);
}

TEST_CASE("the list contains the oldest approval requests first, up to a size limit") {
  Approvals a;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    auto one = waiting(i);
    one.question.name = std::to_string(i);
    one.question.arguments.assign(16'000, 'x');
    a.add(std::move(one));
  }
  const ApprovalList list = a.list(0);
  CHECK(list.waiting == 300);
  CHECK(list.questions.size() < 135);
  REQUIRE(list.questions.size() > 100);
  CHECK(list.questions[0].name == "1");
  CHECK(list.questions[1].name == "2");
}

TEST_CASE("an approval covers every part of the call") {
  const std::string base = approval_digest("tools/call", "s", "t", {R"({"a":1})", {}, {}});
  CHECK(base.size() == 64);
  CHECK(base == approval_digest("tools/call", "s", "t", {R"({"a":1})", {}, {}}));
  for (const std::string &other :
       {approval_digest("prompts/get", "s", "t", {R"({"a":1})", {}, {}}),
        approval_digest("tools/call", "s2", "t", {R"({"a":1})", {}, {}}),
        approval_digest("tools/call", "s", "t2", {R"({"a":1})", {}, {}}),
        approval_digest("tools/call", "s", "t", {R"({"a":2})", {}, {}}),
        approval_digest("tools/call", "s", "t", {R"({"a": 1})", {}, {}}),
        approval_digest("tools/call", "st", "", {R"({"a":1})", {}, {}}),
        approval_digest("tools/call", "s", "t", {R"({"a":1})", "{}", {}}),
        approval_digest("tools/call", "s", "t", {R"({"a":1})", {}, "{}"}),
        approval_digest("tools/call", "s", "t1:{", {R"("a":1})", {}, {}})}) {
    CHECK(other != base);
  }
}

TEST_CASE("an approval covers the parts of _meta that are the same in each call") {
  CHECK(approved_meta("", true) == "");
  CHECK(approved_meta("{}", false) == "");
  CHECK(approved_meta(R"({"progressToken":1,"traceparent":"a","tracestate":"b","baggage":"c"})",
                      false) == "");
  const std::string own = R"({"progress\u0054oken":1, "force" : "no","progressToken":2,"n":[1]})";
  for (const bool modern : {false, true}) {
    CHECK(approved_meta(own, modern) == R"({"force":"no","n":[1]})");
  }
  // Servers never receive these members of a request of MCP 2026-07-28.
  const std::string client =
      R"("io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol\/logLevel":"x")";
  const std::string rest = R"("io.modelcontextprotocol/other":1)";
  CHECK(approved_meta("{" + client + "," + rest + "}", true) == "{" + rest + "}");
  CHECK(approved_meta("{" + client + "}", false) == "{" + client + "}");
}

TEST_CASE("a grant applies to its digest, rule, and session or client until it expires") {
  Approvals a;
  ApprovalQuestion q = waiting(1).question;
  q.principal = "p";
  q.transport = "http";
  SECTION("for one call: no grant is stored") {
    a.grant(q, {}, 0);
    CHECK_FALSE(a.granted(q, 1));
  }
  SECTION("session") {
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    CHECK(a.granted(q, 3600 * second));
    ApprovalQuestion other = q;
    other.session = 2;
    CHECK_FALSE(a.granted(other, 1));
    other = q;
    other.digest = "e";
    CHECK_FALSE(a.granted(other, 1));
    other = q;
    other.rule = "r2";
    CHECK_FALSE(a.granted(other, 1));
    other = q;
    other.process_name = "another";
    CHECK_FALSE(a.granted(other, 1));
    a.forget_session(1);
    CHECK_FALSE(a.granted(q, 1));
  }
  SECTION("minutes") {
    a.grant(q, {ApprovalScope::Kind::minutes, 2}, 0);
    ApprovalQuestion other = q;
    other.session = 2;
    CHECK(a.granted(other, 119 * second));
    other.principal = "another";
    CHECK_FALSE(a.granted(other, 1));
    a.forget_session(1);
    CHECK(a.granted(q, 119 * second));
    CHECK_FALSE(a.granted(q, 120 * second));
  }
  SECTION("any arguments of a tool") {
    q.tool_digest = "t";
    q.definition = "h";
    const ApprovalScope scope{ApprovalScope::Kind::minutes, 2, true};
    a.grant(q, scope, 0);
    ApprovalQuestion other = q;
    other.digest = "e";
    CHECK(a.granted(other, 119 * second));
    const auto is_granted = [&](std::string ApprovalQuestion::*member) {
      ApprovalQuestion changed = other;
      changed.*member = "another";
      return a.granted(changed, 1);
    };
    for (const auto member : {&ApprovalQuestion::tool_digest, &ApprovalQuestion::definition,
                              &ApprovalQuestion::rule, &ApprovalQuestion::principal,
                              &ApprovalQuestion::transport, &ApprovalQuestion::process_name}) {
      CHECK_FALSE(is_granted(member));
    }
    // A grant for a session does not depend on the claimed name, which is not verified.
    CHECK(is_granted(&ApprovalQuestion::claimed_name));
    // Several clients without a session can have the same number.
    other.has_session = false;
    CHECK(a.granted(other, 1));
    CHECK_FALSE(is_granted(&ApprovalQuestion::claimed_name));
    other.has_session = true;
    other.session = 2;
    CHECK_FALSE(a.granted(other, 1));
    other.session = q.session;
    REQUIRE(a.list(119 * second).grants.size() == 1);
    CHECK(a.list(119 * second).grants[0].scope.tool);
    SECTION("expires after its time") {
      CHECK(a.list(120 * second).grants.empty());
      CHECK_FALSE(a.granted(other, 120 * second));
    }
    SECTION("is removed with its session") {
      a.forget_session(2);
      CHECK(a.granted(other, 1));
      a.forget_session(1);
      CHECK_FALSE(a.granted(other, 1));
    }
    SECTION("is removed when the rules change") {
      CHECK(a.take_tool_grants().size() == 1);
      CHECK_FALSE(a.granted(other, 1));
    }
    SECTION("is removed when the definition changes") {
      CHECK(a.take_outdated(other).empty());
      other.definition = "i";
      CHECK(a.take_outdated(other).size() == 1);
      other.definition = "h";
      CHECK_FALSE(a.granted(other, 1));
    }
    SECTION("differs from an approval of a call without arguments") {
      CHECK(tool_approval_digest("tools/call", "s", "t", "") !=
            approval_digest("tools/call", "s", "t", {}));
    }
    SECTION("requires a tool digest") {
      q.tool_digest.clear();
      Approvals empty;
      empty.grant(q, scope, 0);
      q.digest = "e";
      CHECK_FALSE(empty.granted(q, 1));
    }
  }
  SECTION("a grant is revoked by its id") {
    q.id = "0123";
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    CHECK_FALSE(a.revoke("012").has_value());
    REQUIRE(a.revoke("0123").has_value());
    CHECK_FALSE(a.revoke("0123").has_value());
    CHECK_FALSE(a.granted(q, 1));
  }
  SECTION("the stored approval request is small") {
    q.arguments.assign(16'000, 'x');
    q.meta = q.extra = "{}";
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    const ApprovalQuestion kept = a.list(0).grants.at(0).question;
    CHECK(kept.arguments.size() == ApprovalGrant::max_arguments);
    CHECK(kept.arguments_cut);
    CHECK(kept.meta.empty());
    CHECK(kept.extra.empty());
    CHECK(kept.expires_unix_ms == 0);
  }
  SECTION("a changed server loses its grants") {
    q.server = "a";
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    a.grant(q, {ApprovalScope::Kind::minutes, 2}, 0);
    CHECK(a.take_server("b").empty());
    CHECK(a.granted(q, 1));
    CHECK(a.take_server("a").size() == 2);
    CHECK_FALSE(a.granted(q, 1));
  }
  SECTION("the oldest of too many grants is removed") {
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    ApprovalQuestion other = q;
    for (std::size_t i = 1; i < Approvals::max_grants; ++i) {
      other.digest = std::to_string(i);
      CHECK_FALSE(a.grant(other, {ApprovalScope::Kind::session, 0}, 0).has_value());
    }
    const auto removed = a.grant(other, {ApprovalScope::Kind::session, 0}, 0);
    REQUIRE(removed.has_value());
    CHECK(removed->question.digest == q.digest);
    CHECK_FALSE(a.granted(q, 1));
    CHECK(a.granted(other, 1));
  }
  SECTION("an expired grant makes room first") {
    a.grant(q, {ApprovalScope::Kind::session, 0}, 0);
    ApprovalQuestion other = q;
    other.digest = "other";
    a.grant(other, {ApprovalScope::Kind::minutes, 1}, 0);
    for (std::size_t i = 2; i < Approvals::max_grants; ++i) {
      a.grant(other, {ApprovalScope::Kind::session, 0}, 0);
    }
    CHECK_FALSE(a.grant(other, {ApprovalScope::Kind::session, 0}, 61'000'000'000).has_value());
    CHECK(a.granted(q, 61'000'000'000));
  }
}

TEST_CASE("an approver's watch lasts for the requested time, at most one minute") {
  Approvals a;
  CHECK_FALSE(a.watched(0));
  a.watch(second, 5'000);
  CHECK(a.watched(5 * second));
  a.watch(second, 1'000);  // a shorter watch does not shorten an existing watch
  CHECK(a.watched(5 * second));
  CHECK_FALSE(a.watched(6 * second));
  a.watch(10 * second, 1'000'000'000);
  CHECK_FALSE(a.watched(70 * second));
}

TEST_CASE("invalid scopes are rejected") {
  CHECK(ApprovalScope{}.valid());
  CHECK(ApprovalScope{ApprovalScope::Kind::minutes, 1}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::minutes, 0}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::minutes, 1441}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::session, 1}.valid());
  CHECK(ApprovalScope{ApprovalScope::Kind::session, 0, true}.valid());
  CHECK(ApprovalScope{ApprovalScope::Kind::minutes, 60, true}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::minutes, 61, true}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::minutes, 0, true}.valid());
  CHECK_FALSE(ApprovalScope{ApprovalScope::Kind::once, 0, true}.valid());
  // Scopes are received from other processes, so `kind` may have any value.
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): this is the tested case
  CHECK_FALSE(ApprovalScope{static_cast<ApprovalScope::Kind>(7), 0}.valid());
}

// ---- displayed texts -------------------------------------------------------------------------

TEST_CASE("values that look like credentials are masked in displayed arguments") {
  const auto shown = [](std::string_view json) {
    const ShownJson out = shown_json(json, 4096);
    CHECK_FALSE(out.cut);
    CHECK(mcp::valid_json(out.text));
    return out.text;
  };
  CHECK(shown(R"({"path":"/a b","n":[1,-0.0,true,null],"o":{}})") ==
        R"({"path":"/a b","n":[1,-0.0,true,null],"o":{}})");
  CHECK(shown(R"({"api_key":"x","a":"y"})") == R"({"api_key":"***","a":"y"})");
  CHECK(shown(R"({"Auth":{"user":"u","p":["q"]},"a":[{"token":["t"]}]})") ==
        R"({"Auth":"***","a":[{"token":"***"}]})");
  CHECK(shown(R"({"max_tokens":5,"keys":true})") == R"({"max_tokens":5,"keys":true})");
  CHECK(shown(R"({"pass\u0077ord":"x"})") == R"({"password":"***"})");
  CHECK(shown(R"(["ghp_0123456789abcdef","a"])") == R"(["***","a"])");
  CHECK(shown(R"({"cmd":"curl -H 'Authorization: Bearer abcdef123456' https://u:p@h/x?q=1"})") ==
        R"({"cmd":"curl -H 'Authorization: Bearer ***' https://***@h/x?q=1"})");
  CHECK(shown(R"({"cmd":"x --api-key=abc TOKEN=\"abc\" sk-0123456789"})") ==
        R"({"cmd":"x --api-key=*** TOKEN=\"***\" ***"})");
  CHECK(shown(R"({"t":"Basically, it is basic."})") == R"({"t":"Basically, it is basic."})");
  CHECK(shown(R"("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY----- x")") ==
        R"("*** x")");
}

TEST_CASE("credentials are masked even if they are escaped") {
  const auto shown = [](std::string_view json) {
    const ShownJson out = shown_json(json, 4096);
    CHECK_FALSE(out.cut);
    CHECK(mcp::valid_json(out.text));
    return out.text;
  };
  CHECK(shown(R"({"pass%77ord":"x","a":"token%3Dabc"})") ==
        R"({"pass%77ord":"***","a":"token=***"})");
  CHECK(shown(R"({"u":"https:%2F%2Fu%3Ap%40h%2Fx y"})") == R"({"u":"https://***@h/x y"})");
  CHECK(shown(R"({"u":"a%20b 100% %41"})") == R"({"u":"a%20b 100% %41"})");
  CHECK(shown(R"({"t":"{\"p\\u0061ssword\":\"x\",\"n\":1}"})") ==
        R"({"t":"{\"password\":\"***\",\"n\":1}"})");
  CHECK(shown(R"({"t":" [\"{\\\"secret\\\":[1]}\"]"})") ==
        R"({"t":" [\"{\\\"secret\\\":\\\"***\\\"}\"]"})");
  CHECK(shown(R"({"t":"{\"a\":\"x\\\/y\"}"})") == R"({"t":"{\"a\":\"x\\/y\"}"})");
  CHECK(shown(R"({"t":"{not json"})") == R"({"t":"{not json"})");
  // A string that contains JSON and is longer than the limit.
  const std::string inside = R"({"t":"[\")" + std::string(200, 'x') + R"(\"]","evil":1})";
  CHECK(shown_json(inside, 100).cut);
  CHECK(shown_json(inside, 100).text.size() == 100);
  std::string deep = "{\"password\":\"x\"}";
  for (int i = 0; i < 12; ++i) {
    std::string quoted = bh::json::quoted(deep);
    deep = "[" + quoted + "]";
    if (deep.size() < 4096) CHECK(mcp::valid_json(shown_json(deep, 4096).text));
  }
}

TEST_CASE("invisible characters are displayed as escapes") {
  CHECK(shown_json("{\"a\":\"x\xE2\x80\xAEy\"}", 100).text == R"({"a":"x\u202ey"})");
  CHECK(shown_json(R"({"a":"x\u202ey\u0007"})", 100).text == R"({"a":"x\u202ey\u0007"})");
  CHECK(visible_text("a\x1b[2J", 100) == "a\\u001b[2J");
  CHECK(visible_text("a\xFF", 100) == "a\xEF\xBF\xBD");
  CHECK(visible_text("ab\xE2\x82\xAC", 4) == "ab");
}

TEST_CASE("text that is too long is truncated and marked") {
  const std::string text = "{\"a\":\"" + std::string(100, 'x') + "\",\"evil\":1}";
  const ShownJson part = shown_json(text, 50);
  CHECK(part.cut);
  CHECK(part.text.size() == 50);
  CHECK(shown_json(text, text.size()).text == text);
  CHECK_FALSE(shown_json(text, text.size()).cut);
  CHECK(shown_json(text, text.size() - 1).cut);
  const ShownJson huge = shown_json("\"" + std::string(1u << 20, 'y') + "\"", 100);
  CHECK(huge.cut);
  CHECK(huge.text.size() == 100);
}

// ---- the form --------------------------------------------------------------------------------

TEST_CASE("whether a client can display forms depends on its revision and capabilities") {
  CHECK_FALSE(shows_forms(1, cap::elicitation));
  CHECK_FALSE(shows_forms(3, cap::sampling));
  CHECK(shows_forms(2, cap::elicitation));
  CHECK(shows_forms(3, cap::elicitation));
  CHECK(shows_forms(3, cap::elicitation | cap::elicitation_form | cap::elicitation_url));
  CHECK_FALSE(shows_forms(3, cap::elicitation | cap::elicitation_url));
}

TEST_CASE("the form describes the call in the format of the client's revision") {
  ApprovalQuestion q;
  q.server = "files";
  q.method = "tools/call";
  q.name = "delete";
  q.arguments = R"({"path":"/x"})";
  q.meta = R"({"force":1})";
  q.extra = R"({"task":{"ttl":5}})";
  q.rule = "r7";
  q.reason = "because \"so\"";
  q.claimed_name = "Claude \"Code\"";
  const std::string old = approval_form(q, 120'000, 2), fresh = approval_form(q, 120'000, 3);
  for (const std::string &text : {old, fresh}) {
    CHECK(mcp::valid_json(text));
    std::string scratch;
    const std::string said(mcp::unquote(mcp::member(text, "message"), &scratch));
    for (const char *part :
         {"Server: files", "Tool: delete", R"(Arguments: {"path":"/x"})", R"(_meta: {"force":1})",
          R"(Other members of params: {"task":{"ttl":5}})", "Rule: r7", "Reason: because \"so\"",
          R"(Client name (claimed, not verified): "Claude \"Code\"")", "within 120 s"}) {
      INFO(part);
      CHECK(said.find(part) != std::string::npos);
    }
  }
  CHECK(mcp::member(mcp::member(mcp::member(old, "requestedSchema"), "properties"), "scope") != "");
  q.has_session = false;
  const std::string once = approval_form(q, 120'000, 3);
  REQUIRE(mcp::valid_json(once));
  const std::string_view fields = mcp::member(mcp::member(once, "requestedSchema"), "properties");
  CHECK(mcp::member(fields, "scope") == "");
  CHECK(mcp::member(fields, "decision") != "");
  CHECK(old.find("\"mode\"") == std::string::npos);
  CHECK(fresh.find(R"("mode":"form")") != std::string::npos);
}

TEST_CASE("only an explicit \"allow\" allows the call") {
  CHECK(form(R"({"action":"accept","content":{"decision":"allow"}})").allow);
  const FormAnswer session =
      form(R"({"action":"accept","content":{"decision":"allow","scope":"session"}})");
  CHECK(session.allow);
  CHECK(session.scope.kind == ApprovalScope::Kind::session);
  for (const char *no :
       {R"({"action":"decline"})", R"({"action":"cancel"})", R"({"action":"accept"})",
        R"({"action":"accept","content":{"decision":"deny"}})",
        R"({"action":"accept","content":{"decision":true}})",
        R"({"action":"accept","content":["allow"]})",
        R"({"action":"decline","content":{"decision":"allow"}})", "{}", "[]", "7"}) {
    INFO(no);
    CHECK_FALSE(form(no).allow);
    CHECK(form(no).shown);
  }
  const std::string error = R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}})";
  CHECK_FALSE(read_approval_form(error, scanned(error)).shown);
}
