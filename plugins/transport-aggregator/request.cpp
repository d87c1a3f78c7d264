#include "transport-aggregator/request.hpp"

#include <bulkhead/cpp/json.hpp>

#include <charconv>
#include <iterator>

namespace transport_aggregator {
namespace {

namespace json = bh::json;

constexpr std::string_view names[] = {"list_servers", "list_tools", "list_resources",
                                      "list_prompts", "call_tool",  "read_resource",
                                      "get_prompt",   "refresh",    "shutdown"};

bool is_string(std::string_view value) {
  return value.starts_with('"');
}

bool has_members(std::string_view value) {
  bool any = false;
  json::for_each_member(value, [&any](std::string_view, std::string_view) {
    any = true;
    return false;
  });
  return any;
}

// Finds the wanted members of an object. Returns false if one of them is duplicated.
template <std::size_t N>
bool collect(std::string_view object, const std::string_view (&wanted)[N],
             std::string_view (&found)[N]) {
  bool once = true;
  json::for_each_member(object, [&](std::string_view key, std::string_view value) {
    for (std::size_t i = 0; i < N; ++i) {
      if (!json::is_text(key, wanted[i])) continue;
      once = once && found[i].empty();
      found[i] = value;
    }
    return once;
  });
  return once;
}

const char *read_params(std::string_view params, Request *out) {
  static constexpr std::string_view wanted[] = {"name", "uri", "arguments", "servers"};
  std::string_view found[std::size(wanted)];
  if (!params.empty() && params != "null" && !params.starts_with('{')) {
    return "params is not an object";
  }
  if (!collect(params, wanted, found)) return "params has a duplicate member";
  const auto &[name, uri, arguments, servers] = found;
  switch (out->method) {
    case Method::call_tool:
    case Method::get_prompt:
      if (!is_string(name)) return "params.name is not a string";
      out->target = name;
      // Empty arguments, and arguments that are not an object, are dropped, because not all servers
      // treat them in the same way.
      if (arguments.starts_with('{') && has_members(arguments)) out->arguments = arguments;
      return nullptr;
    case Method::read_resource:
      if (!is_string(uri)) return "params.uri is not a string";
      out->target = uri;
      return nullptr;
    case Method::refresh:
      if (!servers.starts_with('[')) return "params.servers is not an array";
      out->servers = servers;
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

std::string_view method_name(Method method) noexcept {
  return names[static_cast<std::size_t>(method)];
}

RequestError parse_request(std::string_view text, Request *out) {
  static constexpr std::string_view wanted[] = {"id", "method", "params"};
  std::string_view found[std::size(wanted)];
  if (!text.starts_with('{')) return {"it is not an object", false};
  if (!collect(text, wanted, found)) return {"it has a duplicate member", false};
  const auto &[id, method, params] = found;
  const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), out->id);
  if (id.empty() || problem != std::errc() || end != id.data() + id.size()) {
    return {"its id is not a whole number from 0 to 2^64-1", false};
  }
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (!json::is_text(method, names[i])) continue;
    out->method = static_cast<Method>(i);
    return {read_params(params, out), true};
  }
  return {"unknown method", true};
}

}  // namespace transport_aggregator
