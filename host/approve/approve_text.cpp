#include "approve/approve_text.hpp"

#include <time.h>

#include <algorithm>
#include <array>

#include "approve/approve_value.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/description_audit.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;
using bh::json::Raw;

constexpr std::size_t max_tools = 1000;

// Appends a line such as "  args      ...".
void line(std::string *out, std::string_view label, std::string_view text) {
  std::string head = "  " + std::string(label);
  head.resize(13, ' ');
  *out += head + std::string(text) + "\n";
}

// Appends the text with hidden characters as \u escapes. If `quotes` is true, also escapes quotes
// and backslashes, as in a JSON string.
void append_visible(std::string *out, std::string_view text, bool quotes) {
  while (!text.empty()) {
    std::size_t size = 0;
    const char32_t c = bh::first_character(text, &size);
    if (quotes && (c == '"' || c == '\\')) {
      *out += '\\';
      *out += static_cast<char>(c);
    } else if (mcp::hidden_character(c) || c == 0xFFFD) {
      bh::json::append_escaped(out, c);
    } else {
      *out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
}

std::string joined(const std::vector<std::string> &texts) {
  std::string out;
  for (const auto &text : texts) out += (out.empty() ? "" : ", ") + verbatim(text);
  return out;
}

std::string date_of(std::uint64_t seconds) {
  const auto when = static_cast<time_t>(seconds);
  tm parts{};
  std::array<char, 32> text{};
  ::localtime_r(&when, &parts);
  ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return text.data();
}

void describe_headers(std::string *out, const ProjectEntry &entry) {
  std::string_view label = "headers";
  for (const auto &[name, value] : entry.headers) {
    line(out, label,
         verbatim(name) + " = " +
             masked_header(name, value).value_or(verbatim(without_passwords(value))));
    label = "";
  }
}

void describe_env(std::string *out, const ProjectEntry &entry) {
  std::string_view label = "env";
  std::vector<std::string> deciding;
  for (const auto &[name, value] : entry.env) {
    const std::string shown = masked_value(value);
    line(out, label, verbatim(name) + " = " + (shown == value ? verbatim(value) : shown));
    label = "";
    if (decides_what_runs(name)) deciding.push_back(name);
  }
  if (deciding.empty()) return;
  line(out, "WARNING", "these variables can change which code is run: " + joined(deciding) + ";");
  line(out, "", "review their values in the file before you approve.");
}

std::string sandbox_mode(const ProjectEntry &entry) {
  const auto at = std::find_if(entry.others.begin(), entry.others.end(),
                               [](const auto &other) { return other.first == "sandbox"; });
  return at == entry.others.end() ? "\"home-read-only\"" : at->second;
}

void describe_start(std::string *out, const ProjectEntry &entry) {
  line(out, "command", verbatim(without_passwords(entry.command)));
  const auto args = args_without_passwords(entry.args);
  line(out, "args", args.empty() ? "none" : "[" + joined(args) + "]");
  line(out, "folder", verbatim(entry.cwd));
  describe_env(out, entry);
  const auto paths = named_paths(entry);
  if (paths.empty() || sandbox_mode(entry) == "\"off\"") return;
  line(out, "opens", joined(paths));
  line(out, "",
       "with read and write access. For a file, this includes its folder, unless the folder");
  line(out, "", "contains paths that are hidden from servers. Programs are read-only.");
}

void describe_program_warning(std::string *out, const ProjectEntry &entry) {
  const std::string mode = sandbox_mode(entry);
  if (mode == "\"strict\"") {
    line(out, "WARNING", "this program runs in a strict sandbox: it can read system files, and");
    line(out, "", "change and send the files that its definition names.");
  } else if (mode == "\"home-read-only\"") {
    line(out, "WARNING",
         "this program runs in a sandbox that hides credentials, but it can read and send");
    line(out, "", "your other files, and change the files that its definition names.");
  } else {
    line(out, "WARNING",
         "this program is NOT sandboxed: it runs as you and can read, change and send");
    line(out, "", "all files that you can access.");
  }
  line(out, "", "The approval covers this definition, not the behaviour of the program it names,");
  line(out, "", "which can change.");
}

void describe_warning(std::string *out, const ProjectEntry &entry) {
  if (!entry.command.empty()) describe_program_warning(out, entry);
  if (!entry.url.empty()) {
    line(out, "WARNING",
         "the arguments of each call are sent to this address, and results from it are");
    line(out, "", "passed to the model.");
  }
}

void describe_known(std::string *out, const Approval *known) {
  if (known == nullptr || known->tools.empty()) {
    line(out, "tools",
         "unknown: the server has not been started (--tools lists them after approval)");
    return;
  }
  line(out, "tools", "at the last check: " + joined(known->tools));
  for (const auto &finding : known->findings) line(out, "FINDING", verbatim(finding));
}

std::string env_json(const ProjectEntry &entry) {
  std::string out = "{";
  for (const auto &[name, value] : entry.env)
    append_member(&out, name, value.empty() ? "" : masked_value(value));
  return out + "}";
}

std::string headers_json(const ProjectEntry &entry) {
  std::string out = "{";
  for (const auto &[name, value] : entry.headers)
    append_member(&out, name, masked_header(name, value).value_or(without_passwords(value)));
  return out + "}";
}

}  // namespace

std::string verbatim(std::string_view text) {
  std::string out = "\"";
  append_visible(&out, text, true);
  return out + "\"";
}

ApprovalState approval_state(const ProjectEntry &entry, const Approval *known) {
  if (known == nullptr) return ApprovalState::none;
  return known->digest == entry.digest ? ApprovalState::approved : ApprovalState::changed;
}

std::string_view to_string(ApprovalState state) noexcept {
  switch (state) {
    case ApprovalState::none:
      return "not approved";
    case ApprovalState::changed:
      return "changed since it was approved";
    case ApprovalState::approved:
      return "approved";
  }
  return "";
}

std::string describe_entry(const ProjectEntry &entry, const Approval *known) {
  const ApprovalState state = approval_state(entry, known);
  std::string out = verbatim(entry.name) + ": " + std::string(to_string(state));
  if (known != nullptr) out += " (" + date_of(known->approved_at) + ")";
  out += "\n";
  if (!entry.command.empty() || entry.url.empty()) describe_start(&out, entry);
  if (!entry.url.empty()) line(&out, "url", verbatim(without_passwords(entry.url)));
  describe_headers(&out, entry);
  for (const auto &[key, json] : entry.others) {
    std::string text = key.empty() ? "" : verbatim(key) + " = ";
    append_visible(&text, without_passwords(json), false);  // the text is already JSON
    line(&out, "also", text);
  }
  if (!entry.variables.empty()) {
    line(&out, "reads", joined(entry.variables) + " from your environment");
  }
  line(&out, "sha256", entry.digest);
  describe_known(&out, known);
  describe_warning(&out, entry);
  return out;
}

std::string entry_json(const ProjectEntry &entry, const Approval *known) {
  const std::vector<std::string> none;
  std::string others = "{";
  for (const auto &[key, json] : entry.others)
    if (!key.empty()) append_member(&others, key, Raw{without_passwords(json)});
  others += '}';
  std::string out;
  bh::json::Writer(&out)
      .begin_object()
      .member("name", entry.name)
      .member("state", to_string(approval_state(entry, known)))
      .member("sha256", entry.digest)
      .member("line", entry.line)
      .member("command", without_passwords(entry.command))
      .member("args", args_without_passwords(entry.args))
      .member("cwd", entry.cwd)
      .member("env", Raw{env_json(entry)})
      .member("opens", sandbox_mode(entry) != "\"off\"" ? named_paths(entry) : none)
      .member("url", without_passwords(entry.url))
      .member("headers", Raw{headers_json(entry)})
      .member("others", Raw{others})
      .member("variables", entry.variables)
      .member("tools", known != nullptr ? known->tools : none)
      .member("findings", known != nullptr ? known->findings : none)
      .end_object();
  return out;
}

SeenTools look_at_tools(const std::vector<std::string> &tool_definitions) {
  SeenTools out;
  for (const auto &tool : tool_definitions) {
    if (out.names.size() >= max_tools) break;
    const std::string_view token = mcp::member(tool, "name");
    std::string scratch;
    const std::string name(token.starts_with('"') ? mcp::unquote(token, &scratch) : "");
    for (const std::string_view id : mcp::audit_tool(tool)) {
      out.findings.push_back(name + ": " + std::string(id));
    }
    out.names.push_back(name);
  }
  return out;
}

std::string describe_tools(const SeenTools &seen) {
  std::string out;
  line(&out, "tools", seen.names.empty() ? "none" : joined(seen.names));
  for (const auto &finding : seen.findings) line(&out, "FINDING", verbatim(finding));
  if (!seen.findings.empty()) {
    line(&out, "", "The text of these tools may contain instructions to the model or hidden text.");
    line(&out, "", "`bulkhead tools --json` prints it.");
  }
  return out;
}

}  // namespace bulkhead::program
