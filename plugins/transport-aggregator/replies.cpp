#include "transport-aggregator/replies.hpp"

#include <bulkhead/abi/ext/tools.h>
#include <bulkhead/cpp/json.hpp>

#include <iterator>
#include <utility>

namespace transport_aggregator {
namespace {

namespace json = bh::json;

// Writes a reply whose value is an array of objects.
class Records {
 public:
  Records(std::uint64_t id, std::string_view member) {
    writer_.begin_object().member("id", id).key(member).begin_array();
  }
  void begin() { writer_.begin_object(); }
  void end() { writer_.end_object(); }
  // An empty value is written as null.
  void add(std::string_view name, std::string_view value) {
    writer_.member(name, json::Raw{value.empty() ? "null" : value});
  }
  std::string done() {
    writer_.end_array().end_object();
    return std::move(out_);
  }

 private:
  std::string out_;
  json::Writer writer_{&out_};
};

// Converts the names of MCP's tool annotations from camelCase to the protocol's snake_case.
std::string annotations(std::string_view given) {
  static constexpr std::pair<std::string_view, std::string_view> members[] = {
      {"title", "title"},
      {"readOnlyHint", "read_only_hint"},
      {"destructiveHint", "destructive_hint"},
      {"idempotentHint", "idempotent_hint"},
      {"openWorldHint", "open_world_hint"}};
  if (!given.starts_with('{')) return {};
  std::string out = "{";
  for (const auto &[theirs, ours] : members) {
    const std::string_view value = json::member(given, theirs);
    if (!value.empty()) json::append_member(&out, ours, json::Raw{value});
  }
  return out + "}";
}

// Converts milliseconds to seconds, rounded up: 1,500 ms become 2 s.
std::string seconds(std::string_view ms) {
  std::uint64_t value = 0;
  for (const char c : ms) {
    if (c < '0' || c > '9' || value > 1'000'000'000'000) return {};
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return std::to_string((value + 999) / 1000);
}

void add_tool(Records &out, std::string_view entry, std::string_view item) {
  out.add("namespaced_name", json::member(entry, "name"));
  out.add("original_name", json::member(entry, "original_name"));
  out.add("description", json::member(item, "description"));
  out.add("input_schema", json::member(item, "inputSchema"));
  out.add("server_name", json::member(entry, "server"));
  out.add("annotations", annotations(json::member(item, "annotations")));
  const std::string_view timeout = json::member(entry, "timeout_ms");
  if (!timeout.empty()) out.add("timeout_secs", seconds(timeout));
}

void add_resource(Records &out, std::string_view entry, std::string_view item) {
  out.add("namespaced_uri", json::member(entry, "name"));
  out.add("original_uri", json::member(entry, "original_name"));
  out.add("name", json::member(item, "name"));
  out.add("description", json::member(item, "description"));
  out.add("mime_type", json::member(item, "mimeType"));
  out.add("server_name", json::member(entry, "server"));
}

void add_prompt(Records &out, std::string_view entry, std::string_view item) {
  const std::string_view arguments = json::member(item, "arguments");
  out.add("namespaced_name", json::member(entry, "name"));
  out.add("original_name", json::member(entry, "original_name"));
  out.add("description", json::member(item, "description"));
  out.add("arguments", arguments.starts_with('[') ? arguments : "[]");
  out.add("server_name", json::member(entry, "server"));
}

}  // namespace

std::string reply(std::uint64_t id, std::string_view member, std::string_view value) {
  std::string out;
  json::Writer(&out).begin_object().member("id", id).member(member, json::Raw{value}).end_object();
  return out;
}

std::string error_reply(std::uint64_t id, std::string_view text) {
  return reply(id, "error", json::quoted(text));
}

std::uint32_t listed_kind(Method method) noexcept {
  switch (method) {
    case Method::list_tools:
      return BH_LIST_TOOLS;
    case Method::list_resources:
      return BH_LIST_RESOURCES;
    case Method::list_prompts:
      return BH_LIST_PROMPTS;
    default:
      return 0;
  }
}

std::string servers_reply(std::uint64_t id, std::string_view listed) {
  static constexpr std::string_view members[] = {
      "name",      "url",        "enabled",        "source",      "is_stdio",
      "connected", "tool_count", "resource_count", "prompt_count"};
  Records out(id, "servers");
  json::for_each_element(listed, [&](std::string_view server) {
    out.begin();
    for (const std::string_view name : members) out.add(name, json::member(server, name));
    // This member is an extension of the protocol. It states why the server is not connected.
    const std::string_view reason = json::member(server, "reason");
    if (!reason.empty() && reason != "\"\"") out.add("reason", reason);
    out.end();
    return true;
  });
  return out.done();
}

std::string items_reply(std::uint64_t id, Method method, std::string_view listed) {
  const auto add = method == Method::list_tools       ? add_tool
                   : method == Method::list_resources ? add_resource
                                                      : add_prompt;
  Records out(id, method_name(method).substr(sizeof "list_" - 1));
  json::for_each_element(listed, [&](std::string_view entry) {
    const std::string_view item = json::member(entry, "item");
    if (!item.starts_with('{')) return true;
    out.begin();
    add(out, entry, item);
    out.end();
    return true;
  });
  return out.done();
}

}  // namespace transport_aggregator
