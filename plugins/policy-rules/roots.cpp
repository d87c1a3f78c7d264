#include "roots.hpp"

#include <algorithm>
#include <iterator>
#include <string>
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
      {"mcp.request.uri_normalized", Kind::kString},
      {"client.process_name", Kind::kString},
      {"client.transport", Kind::kString},
      {"client.principal", Kind::kString},
      {"client.peer", Kind::kString},
      {"client.claimed_name", Kind::kString},
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
      {"mcp.request.extra", object},
      {"mcp.completion.argument", object},
      {"mcp.completion.context", object},
  };
  static const std::vector<Declared> response = {
      {"mcp.response.result_status", Kind::kString},
      {"mcp.response.is_error", Kind::kBool},
      {"mcp.response.content", Type::list(Kind::kDyn)},
      {"mcp.response.structured", Kind::kDyn},
      {"mcp.response.text", Kind::kString},
  };
  static const std::vector<Declared> input_request = {
      {"mcp.input.params", object},
      {"mcp.input.text", Kind::kString},
  };
  static const std::vector<Declared> input_response = {
      {"mcp.input.result", object},
      {"mcp.input.text", Kind::kString},
      {"mcp.input.action", Kind::kString},
  };
  static const std::vector<Declared> notification = {
      {"mcp.notification.params", object},
      {"mcp.notification.text", Kind::kString},
      {"mcp.notification.recipient", Kind::kString},
  };
  switch (event) {
    case Event::request:
      return request;
    case Event::response:
      return response;
    case Event::input_request:
      return input_request;
    case Event::input_response:
      return input_response;
    case Event::notification:
      break;
  }
  return notification;
}

constexpr std::string_view kNames[kEvents] = {"mcp.request", "mcp.response", "mcp.input_request",
                                              "mcp.input_response", "mcp.notification"};

bool declares(Event event, std::string_view name);

bool begins(std::string_view name, std::string_view root) {
  return name.starts_with(root) && (name.size() == root.size() || name[root.size()] == '.');
}

std::optional<std::string> refused(Event event, std::string_view name) {
  for (const std::string_view internal : {"event", "subject"}) {
    if (begins(name, internal)) {
      return std::string(internal) +
             ".* is internal; rules can use mcp.request.*, mcp.response.*, mcp.tool.*, "
             "mcp.completion.*, mcp.input.*, mcp.notification.*, client.*, session.* and time";
    }
  }
  if (declares(event, name)) return std::nullopt;
  for (std::size_t i = 0; i < kEvents; ++i) {
    if (!declares(static_cast<Event>(i), name)) continue;
    std::string text(name);
    if (event == Event::request && i == 1) {
      text += " is not available for requests";
    } else if (event == Event::response && i == 0) {
      text += " is not available for responses";
    } else {
      text += " is not available when on = \"" + std::string(to_string(event)) + "\"";
    }
    return text + "; use on = \"" + std::string(kNames[i]) + "\"";
  }
  return std::nullopt;
}

bool declares(Event event, std::string_view name) {
  const auto &roots = own(event);
  return std::any_of(roots.begin(), roots.end(),
                     [&](const Declared &root) { return begins(name, root.name); });
}

cel::Environment make(Event event) {
  cel::Environment out;
  for (const Declared &root : common()) out.declare(std::string(root.name), root.type);
  for (const Declared &root : own(event)) out.declare(std::string(root.name), root.type);
  out.refuse = [event](std::string_view name) { return refused(event, name); };
  return out;
}

}  // namespace

std::string_view to_string(Event event) noexcept {
  return kNames[static_cast<std::size_t>(event)];
}

std::optional<Event> event_named(std::string_view on) noexcept {
  const auto *at = std::find(std::begin(kNames), std::end(kNames), on);
  if (at == std::end(kNames)) return std::nullopt;
  return static_cast<Event>(at - std::begin(kNames));
}

const cel::Environment &environment(Event event) {
  static const std::array<cel::Environment, kEvents> all = {
      make(Event::request), make(Event::response), make(Event::input_request),
      make(Event::input_response), make(Event::notification)};
  return all[static_cast<std::size_t>(event)];
}

}  // namespace bulkhead::rules
