#include "route/handshake.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view version_text = BULKHEAD_VERSION;

// If stdio servers without a stored list are starting, usually for the first time on this machine,
// returns text that names them. Such a server may have to be downloaded first. Without this text,
// a client that lists tools only once might never see the server's tools.
std::string first_start_text(const View &view) {
  constexpr std::size_t most = 20;
  std::string names;
  std::size_t count = 0;
  for (const Lane *lane : view.lanes) {
    const ServerDef &def = lane->upstream().def();
    const bool first = !def.kept.definition.empty() && def.kept.lists.empty();
    if (!first || def.type != "stdio" || lane->lazy() || lane->listed() || lane->settled())
      continue;
    if (++count > most) continue;
    names.append(names.empty() ? "" : ", ").append(def.name);
  }
  if (count > most) names += " and " + std::to_string(count - most) + " more";
  if (count == 0) return {};
  return "Servers that are starting for the first time and may still be downloading: " + names +
         ". Their tools are listed as soon as they are ready; list the tools again to see them.\n";
}

// Returns first_start_text(), followed by the server instructions that are known so far, each with
// a line feed at its end. Instructions that do not fit are left out.
std::string instructions_of(const View &view) {
  constexpr std::size_t most = 16'384;
  std::string text = first_start_text(view);
  for (const Lane *lane : view.lanes) {
    if (lane->instructions().empty()) continue;
    if (text.size() + lane->instructions().size() > most) continue;
    if (view.lanes.size() > 1) text.append("## ").append(lane->upstream().name()).append("\n");
    text.append(lane->instructions()).append("\n");
  }
  return text;
}

// Composes the `capabilities` object of a result.
class Capabilities {
 public:
  void add(std::string_view name, std::string_view members) {
    text_.append(text_.size() == 1 ? "\"" : ",\"").append(name).append("\":{");
    text_.append(members).append("}");
  }
  void add(std::string_view member) { text_.append(text_.size() == 1 ? "" : ",").append(member); }
  std::string text() && { return std::move(text_ += '}'); }

 private:
  std::string text_ = "{";
};

// The optional features that the gateway offers to a client of one protocol generation.
struct Offered {
  bool list_changed = false, subscribe = false, completions = true;
  std::string_view tasks = {};  // the member that declares tasks
};

constexpr std::string_view session_tasks =
    R"("tasks":{"cancel":{},"requests":{"tools":{"call":{}}}})";
constexpr std::string_view stateless_tasks = R"("extensions":{"io.modelcontextprotocol/tasks":{}})";

std::string capabilities(const Expose &e, const Offered &offered) {
  const std::string_view changed = offered.list_changed ? R"("listChanged":true)" : "";
  Capabilities all;
  if (e.tools) all.add("tools", changed);
  if (e.resources) {
    std::string members = offered.subscribe ? R"("subscribe":true)" : "";
    if (!changed.empty()) members.append(members.empty() ? "" : ",").append(changed);
    all.add("resources", members);
  }
  if (e.prompts) all.add("prompts", changed);
  if (e.logging) all.add("logging", "");
  if (e.completions && offered.completions) all.add("completions", "");
  if (e.tools && !offered.tasks.empty()) all.add(offered.tasks);
  return std::move(all).text();
}

void append_instructions(std::string *result, const View &view) {
  const std::string text = instructions_of(view);
  if (text.empty()) return;
  bh::json::append_member(result, "instructions",
                          std::string_view(text).substr(0, text.size() - 1));
}

}  // namespace

std::string server_info(const Profile &profile) {
  std::string out = R"({"name":)";
  bh::json::append_quoted(&out, profile.server_name);
  return out.append(R"(,"version":")").append(version_text).append("\"}");
}

std::string initialize_result(const Session &s, const Profile &profile) {
  const Expose &e = profile.expose;
  std::string result = R"({"protocolVersion":")";
  result.append(revisions[s.revision]).append(R"(","capabilities":)");
  result.append(capabilities(e, {e.list_changed && !s.answers_only, e.subscribe, s.revision >= 1,
                                 s.revision == newest_revision ? session_tasks : ""}));
  result.append(R"(,"serverInfo":)").append(server_info(profile));
  append_instructions(&result, *s.view);
  return result.append("}");
}

std::string discover_result(const Session &s, const Profile &profile) {
  std::string result = R"({"resultType":"complete","supportedVersions":[")";
  result.append(stateless_revision).append(R"("],"capabilities":)");
  const Expose &e = profile.expose;
  result.append(capabilities(e, {e.list_changed && !s.answers_only, e.subscribe && !s.answers_only,
                                 true, stateless_tasks}));
  append_instructions(&result, *s.view);
  result.append(
      R"(,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":)");
  return result.append(server_info(profile)).append("}}");
}

}  // namespace bulkhead
