#include "route/handshake.hpp"

#include <algorithm>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view version_text = BULKHEAD_VERSION;

// Names the servers that have never run here and are not ready: their programs may still have to be
// downloaded. A client that lists only once would otherwise assume that they do not exist.
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
  return "Started for the first time, and possibly still being downloaded: " + names +
         ". Their tools are listed as soon as they are ready; list the tools again to see them.\n";
}

// The instructions of the servers that have responded so far; each text ends with a line feed.
std::string instructions_of(const View &view) {
  constexpr std::size_t most = 16'384;
  std::string text = first_start_text(view);
  for (const Lane *lane : view.lanes) {
    if (lane->instructions().empty()) continue;
    if (text.size() + lane->instructions().size() > most) break;
    if (view.lanes.size() > 1) text.append("## ").append(lane->upstream().name()).append("\n");
    text.append(lane->instructions()).append("\n");
  }
  return text;
}

}  // namespace

std::string initialize_result(const Session &s, const Profile &profile) {
  const Expose &e = profile.expose;
  std::string result = R"({"protocolVersion":")";
  result.append(revisions[s.revision]).append(R"(","capabilities":{)");
  const auto capability = [&](std::string_view name, std::string_view members) {
    if (result.back() != '{') result += ',';
    result.append("\"").append(name).append("\":{").append(members).append("}");
  };
  const std::string_view changed = e.list_changed && !s.answers_only ? R"("listChanged":true)" : "";
  if (e.tools) capability("tools", changed);
  if (e.resources) {
    std::string members = e.subscribe ? R"("subscribe":true)" : "";
    if (!changed.empty()) members.append(members.empty() ? "" : ",").append(changed);
    capability("resources", members);
  }
  if (e.prompts) capability("prompts", changed);
  if (e.logging) capability("logging", "");
  if (e.completions && s.revision >= 1) capability("completions", "");
  result.append(R"(},"serverInfo":{"name":)");
  bh::json::append_quoted(&result, profile.server_name);
  result.append(R"(,"version":")").append(version_text).append("\"}");
  const std::string instructions = instructions_of(*s.view);
  if (!instructions.empty()) {
    bh::json::append_member(&result, "instructions",
                            std::string_view(instructions).substr(0, instructions.size() - 1));
  }
  return result.append("}");
}

}  // namespace bulkhead
