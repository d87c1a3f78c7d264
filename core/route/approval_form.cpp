#include "route/approval_form.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

// Clients display forms in a dialog, so the arguments are truncated to this many bytes. Longer
// arguments can be reviewed only on the other approval surfaces.
constexpr std::size_t max_arguments = 4096;

constexpr std::string_view schema =
    R"({"type":"object","properties":{)"
    R"("decision":{"type":"string","title":"Decision","description":"allow: the call runs now. )"
    R"(deny: it does not run.","enum":["allow","deny"],"enumNames":["Allow","Deny"]})";
constexpr std::string_view scope =
    R"(,"scope":{"type":"string","title":"For how long","description":"once: this call only. )"
    R"(session: exactly this call, with these arguments, until the session ends.",)"
    R"("enum":["once","session"],"enumNames":["Once","This session"]})";

std::string message_text(const ApprovalQuestion &q, std::uint64_t timeout_ms) {
  std::string out = "A gateway rule requires approval for this call.\n";
  const auto line = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) out.append("\n").append(name).append(": ").append(text);
  };
  line("Server", q.server);
  line(q.method == "tools/call" ? std::string_view("Tool") : std::string_view(q.method), q.name);
  if (q.arguments.size() > max_arguments || q.arguments_cut) {
    line("Arguments (truncated from " + std::to_string(q.arguments_bytes) + " bytes)",
         bh::cut_text(q.arguments, max_arguments));
  } else {
    line("Arguments", q.arguments);
  }
  line("_meta", q.meta);
  line("Other members of params", q.extra);
  line("Rule", q.rule);
  line("Reason", q.reason);
  line("Client process", q.process_name);
  line("Client name (claimed, not verified)",
       q.claimed_name.empty() ? std::string() : bh::json::quoted(q.claimed_name));
  return out + "\n\nIf no answer is given within " + std::to_string(timeout_ms / 1000) +
         " s, the call is denied.";
}

std::string text_member(std::string_view object, std::string_view name) {
  const std::string_view token =
      object.starts_with('{') ? mcp::member(object, name) : std::string_view{};
  std::string scratch;
  return token.starts_with('"') ? std::string(mcp::unquote(token, &scratch)) : std::string();
}

}  // namespace

bool shows_forms(std::uint8_t revision, ClientCaps caps) noexcept {
  if (revision < elicitation_revision || (caps & cap::elicitation) == 0) return false;
  // An empty elicitation object means that forms are supported. An object that names modes supports
  // only those modes.
  return (caps & cap::elicitation_form) != 0 || (caps & cap::elicitation_url) == 0;
}

std::string approval_form(const ApprovalQuestion &question, std::uint64_t timeout_ms,
                          std::uint8_t revision) {
  std::string out = "{";
  if (revision >= elicitation_mode_revision) out += R"("mode":"form",)";
  out += R"("message":)";
  bh::json::append_quoted(&out, message_text(question, timeout_ms));
  out.append(R"(,"requestedSchema":)").append(schema);
  if (question.has_session) out.append(scope);
  return out + R"(},"required":["decision"]}})";
}

FormAnswer read_approval_form(std::string_view message, const mcp::Scan &scan) {
  FormAnswer out;
  if (scan.kind != mcp::Kind::result) {
    out.shown = false;
    return out;
  }
  const std::string_view result = scan.result.in(message);
  if (text_member(result, "action") != "accept") return out;
  const std::string_view content = mcp::member(result, "content");
  out.allow = text_member(content, "decision") == "allow";
  if (text_member(content, "scope") == "session") out.scope.kind = ApprovalScope::Kind::session;
  return out;
}

}  // namespace bulkhead
