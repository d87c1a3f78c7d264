// Implements `call`, which calls one tool.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>

#include "bulkhead/cpp/json.hpp"
#include "catalog/names.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/suggestion.hpp"
#include "common/text.hpp"
#include "gateway/local_session.hpp"
#include "gateway/run_host.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"
#include "shared/joined_wire.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

std::string read_stdin(std::size_t max_bytes) {
  std::string out;
  std::array<char, 16'384> buffer;
  while (out.size() <= max_bytes) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return out;
}

// Appends a content item. Text is appended unchanged; for other content, a description is appended.
void add_content(std::string *out, std::string_view item) {
  const std::string type = member_text(item, "type");
  if (type == "text") {
    *out += member_text(item, "text");
  } else if (type == "resource") {
    const std::string_view resource = mcp::member(item, "resource");
    const std::string text = member_text(resource, "text");
    *out += text.empty() ? "[resource " + member_text(resource, "uri") + "]" : text;
  } else if (type == "resource_link") {
    *out += "[resource " + member_text(item, "uri") + "]";
  } else {
    *out += "[" + type + " " + member_text(item, "mimeType") + ", " +
            std::to_string(member_text(item, "data").size() / 4 * 3) + " bytes; --json prints it]";
  }
  if (!out->ends_with('\n')) *out += '\n';
}

std::string as_text(std::string_view result) {
  std::string out;
  const std::string_view content = mcp::member(result, "content");
  if (!content.empty() && content.front() == '[') {
    mcp::for_each_item(content, [&](std::string_view item) { add_content(&out, item); });
  }
  const std::string_view structured = mcp::member(result, "structuredContent");
  if (out.empty() && !structured.empty()) out = std::string(structured) + "\n";
  return stdout_is_terminal() ? printable(out, true) : out;
}

// If names have prefixes, the tool's name shows which server it belongs to. All other servers are
// then removed from the profile, so that they are not started.
void keep_the_one_named(Profile &profile, std::string_view tool) {
  if (!profile.naming.prefix) return;
  const auto alias = profile.naming.aliases.find(tool);
  if (alias != profile.naming.aliases.end()) tool = alias->second;
  const std::size_t at = tool.find(profile.naming.separator);
  if (at == std::string_view::npos) return;
  const std::string server(tool.substr(0, at));
  const auto names = ShortRun::server_names(profile);
  if (std::find(names.begin(), names.end(), server) != names.end()) {
    ShortRun::keep_only(profile, server);
  }
}

// If the tool is unknown, suggests similar names.
void suggest_tools(LocalSession &session, const LocalSession::Failure &failure,
                   const std::string &name) {
  const std::string_view code = mcp::member(failure.error_json, "code");
  if (code != "-32602" && code != "-32601") return;
  const auto tools = session.list("tools/list", "tools");
  if (!tools) return;
  std::vector<std::string> names;
  for (const std::string &tool : *tools) names.push_back(member_text(tool, "name"));
  // The tool exists, so the error has another cause.
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string similar = suggestion(name, names);
  complain(similar.empty() ? "`bulkhead tools` lists the tools" : similar);
}

// If the tool is unknown and no configuration was found, the user probably expects the tools of
// another configuration.
void hint_at_config(const LocalSession::Failure &failure, const LoadedProfile &loaded) {
  const std::string_view code = mcp::member(failure.error_json, "code");
  if (!loaded.file.empty() || (code != "-32601" && code != "-32602")) return;
  complain(
      "no configuration was found, so only the builtin servers are available; use --config FILE");
}

// Prints a hint if the result mentions a read-only file system, because the sandbox may have
// prevented the write.
void hint_at_sandbox(std::string_view result) {
  const bool read_only =
      result.find("EROFS") != result.npos || result.find("ead-only file system") != result.npos;
  if (!read_only) return;
  complain(
      "the server's sandbox may have prevented the write; to allow writes by a stdio server, set "
      "sandbox_paths = { write = [...] } for it (docs/profile.md)");
}

// If the call waits for approval in the gateway with this service socket, prints how it can be
// approved.
void hint_at_approval(const std::string &socket, const Arguments &arguments, const Names &names) {
  const auto pending = ask_gateway(socket, "GET", "/confirm/pending", status_wait_ms);
  if (!pending || !pending->error.empty() || !mcp::valid_json(pending->answer)) return;
  const std::string_view calls = mcp::member(pending->answer, "pending");
  if (!calls.starts_with('[')) return;
  std::string id;
  mcp::for_each_item(calls, [&](std::string_view one) {
    if (member_text(one, "claimed_name") != LocalSession::client_name) return;
    const auto listed = names.compose(member_text(one, "server"), member_text(one, "name"));
    if (listed == names.aliased(arguments.name)) id = member_text(one, "id");
  });
  if (id.empty()) return;
  complain("the call waits for approval: run `bulkhead approvals allow " + printable(id) +
           "` or `deny` in another terminal; `bulkhead approvals` shows the call");
}

int call(LocalSession &session, const Arguments &arguments, const LoadedProfile &loaded,
         std::string_view tool_arguments, std::uint64_t timeout_ms,
         const std::function<void()> &slow = nullptr) {
  if (auto opened = session.open(); !opened) return complain(opened.error().text);
  std::string params = R"({"name":)";
  bh::json::append_quoted(&params, arguments.name);
  params.append(R"(,"arguments":)").append(tool_arguments).append("}");
  const auto answer = session.request("tools/call", params, timeout_ms, slow);
  if (!answer) {
    if (arguments.json && !answer.error().error_json.empty()) {
      write_stdout("{\"error\":" + answer.error().error_json + "}\n");
    }
    complain(answer.error().text);
    suggest_tools(session, answer.error(), arguments.name);
    hint_at_config(answer.error(), loaded);
    return exit_failed;
  }
  const bool is_error = mcp::member(*answer, "isError") == "true";
  const bool written = write_stdout(arguments.json ? *answer + "\n" : as_text(*answer));
  if (is_error) hint_at_sandbox(*answer);
  return written && !is_error ? exit_ok : exit_failed;
}

}  // namespace

int run_call(const Arguments &arguments) {
  auto loaded = load_checked(arguments, Transports::none);
  if (!loaded) return report_config_errors(loaded.error());
  const Limits limits = loaded->profile.limits;
  std::string text = arguments.call_arguments.empty() ? "{}" : arguments.call_arguments;
  if (text == "-") text = read_stdin(limits.message_bytes);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  if (!text.starts_with('{') || !mcp::valid_json(text)) {
    return complain("the arguments must be one JSON object, such as '{\"path\":\"README.md\"}'",
                    exit_usage);
  }
  constexpr std::uint64_t margin_ms = 5'000;  // the timeout of the gateway expires first
  const std::uint64_t timeout_ms =
      limits.timeout_ceiling_ms + limits.approval_timeout_ms + margin_ms;
  if (auto gateway = gateway_to_use(arguments, loaded->profile)) {
    const std::string socket = gateway->socket;
    const Names names(loaded->profile.naming);
    LocalSession session(std::make_unique<JoinedWire>(*std::move(gateway), limits.message_bytes));
    return call(session, arguments, *loaded, text, timeout_ms,
                [&] { hint_at_approval(socket, arguments, names); });
  }
  keep_the_one_named(loaded->profile, arguments.name);
  ShortRun run(arguments);
  if (auto started = run.start(std::move(loaded->profile)); !started) {
    return complain(started.error().text);
  }
  run.wait_settled();
  LocalSession session(run.host());
  return call(session, arguments, *loaded, text, timeout_ms);
}

}  // namespace bulkhead::program
