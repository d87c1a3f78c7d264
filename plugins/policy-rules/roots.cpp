#include "roots.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bulkhead::rules {
namespace {

using cel::Kind;
using cel::Type;

struct Declared {
  std::string_view name;
  Type type;
};

const std::vector<Declared> &common() {
  static const std::vector<Declared> roots = {
      {"mcp.request.method", Kind::kString},
      {"mcp.request.server_name", Kind::kString},
      {"mcp.request.tool_name", Kind::kString},
      {"mcp.request.prompt_name", Kind::kString},
      {"mcp.request.uri", Kind::kString},
      {"client.process_name", Kind::kString},
      {"client.transport", Kind::kString},
      {"client.principal", Kind::kString},
      {"client.peer", Kind::kString},
      {"session.id", Kind::kString},
      {"session.calls", Kind::kInt},
      {"session.age", Kind::kDuration},
      {"time", Kind::kTimestamp},
  };
  return roots;
}

const std::vector<Declared> &own(Event event) {
  static const Type object = Type::map(Kind::kString, Kind::kDyn);
  static const std::vector<Declared> request = {
      {"mcp.request.arguments", object},
      {"mcp.request.arguments_text", Kind::kString},
      {"mcp.request.meta", object},
      {"mcp.tool.annotations", object},
      {"mcp.tool.description", Kind::kString},
      {"mcp.tool.pinned", Kind::kBool},
  };
  static const std::vector<Declared> response = {
      {"mcp.response.result_status", Kind::kString},
      {"mcp.response.is_error", Kind::kBool},
      {"mcp.response.content", Type::list(Kind::kDyn)},
      {"mcp.response.structured", Kind::kDyn},
      {"mcp.response.text", Kind::kString},
  };
  return event == Event::request ? request : response;
}

bool begins(std::string_view name, std::string_view root) {
  return name.starts_with(root) && (name.size() == root.size() || name[root.size()] == '.');
}

std::optional<std::string> refused(Event event, std::string_view name) {
  for (const std::string_view internal : {"event", "subject"}) {
    if (begins(name, internal)) {
      return std::string(internal) +
             ".* is internal; rules name mcp.request.*, mcp.response.*, "
             "mcp.tool.*, client.*, session.* and time";
    }
  }
  const Event other = event == Event::request ? Event::response : Event::request;
  for (const Declared &root : own(other)) {
    if (!begins(name, root.name)) continue;
    return std::string(root.name) +
           (event == Event::request
                ? " is not there yet when a request is judged; on = \"mcp.response\" is for this"
                : " is not there any more when a response is judged; on = \"mcp.request\" is for "
                  "this");
  }
  return std::nullopt;
}

cel::Environment make(Event event) {
  cel::Environment out;
  for (const Declared &root : common()) out.declare(std::string(root.name), root.type);
  for (const Declared &root : own(event)) out.declare(std::string(root.name), root.type);
  out.refuse = [event](std::string_view name) { return refused(event, name); };
  return out;
}

}  // namespace

const cel::Environment &environment(Event event) {
  static const cel::Environment request = make(Event::request);
  static const cel::Environment response = make(Event::response);
  return event == Event::request ? request : response;
}

}  // namespace bulkhead::rules
