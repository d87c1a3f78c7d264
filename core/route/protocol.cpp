#include "route/protocol.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {
namespace {

constexpr std::array<std::string_view, 8> log_levels = {"debug", "info",     "notice", "warning",
                                                        "error", "critical", "alert",  "emergency"};

// Returns the member if it is an object, and an empty string otherwise. A member such as
// `"sampling": false` does not declare a capability.
std::string_view object_member(std::string_view object, std::string_view key) {
  const std::string_view value =
      object.starts_with('{') ? mcp::member(object, key) : std::string_view{};
  return value.starts_with('{') ? value : std::string_view{};
}

}  // namespace

ClientCaps parse_client_caps(std::string_view capabilities) {
  ClientCaps caps = 0;
  if (const auto roots = object_member(capabilities, "roots"); !roots.empty()) {
    caps |= cap::roots;
    if (mcp::member(roots, "listChanged") == "true") caps |= cap::roots_changed;
  }
  if (const auto sampling = object_member(capabilities, "sampling"); !sampling.empty()) {
    caps |= cap::sampling;
    if (!object_member(sampling, "tools").empty()) caps |= cap::sampling_tools;
    if (!object_member(sampling, "context").empty()) caps |= cap::sampling_context;
  }
  if (const auto elicitation = object_member(capabilities, "elicitation"); !elicitation.empty()) {
    caps |= cap::elicitation;
    if (!object_member(elicitation, "form").empty()) caps |= cap::elicitation_form;
    if (!object_member(elicitation, "url").empty()) caps |= cap::elicitation_url;
  }
  return caps;
}

std::string compose_client_caps(ClientCaps caps) {
  const auto has = [caps](ClientCaps bit) { return (caps & bit) != 0; };
  std::string out = "{";
  const auto add = [&out](std::string_view text) {
    if (out.size() > 1) out += ',';
    out += text;
  };
  if (has(cap::roots)) {
    add(has(cap::roots_changed) ? R"("roots":{"listChanged":true})" : R"("roots":{})");
  }
  if (has(cap::sampling)) {
    std::string sampling;
    if (has(cap::sampling_tools)) sampling += R"("tools":{})";
    if (has(cap::sampling_context))
      sampling += sampling.empty() ? R"("context":{})" : R"(,"context":{})";
    add(R"("sampling":{)" + sampling + "}");
  }
  if (has(cap::elicitation)) {
    std::string modes;
    if (has(cap::elicitation_form)) modes += R"("form":{})";
    if (has(cap::elicitation_url)) modes += modes.empty() ? R"("url":{})" : R"(,"url":{})";
    add(R"("elicitation":{)" + modes + "}");
  }
  if (has(cap::tasks)) add(R"("extensions":{"io.modelcontextprotocol/tasks":{}})");
  return out + "}";
}

std::string compose_roots(const std::vector<std::string> &folders) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out = R"({"roots":[)";
  for (const std::string &folder : folders) {
    if (!out.ends_with('[')) out += ',';
    out += R"({"uri":"file://)";
    for (const char c : folder) {
      const auto byte = static_cast<unsigned char>(c);
      if (plain.find(c) != std::string_view::npos) {
        out += c;
      } else {
        out.append({'%', hex[byte >> 4], hex[byte & 15]});
      }
    }
    const std::string_view last = std::string_view(folder).substr(folder.find_last_of('/') + 1);
    out += R"(","name":)";
    bh::json::append_quoted(&out, last.empty() ? std::string_view(folder) : last);
    out += '}';
  }
  return out + "]}";
}

ServerCaps parse_server_caps(std::string_view capabilities) {
  ServerCaps caps;
  const auto changes = [](std::string_view capability) {
    return !capability.empty() && mcp::member(capability, "listChanged") == "true";
  };
  caps.tools = !object_member(capabilities, "tools").empty();
  caps.tools_changed = changes(object_member(capabilities, "tools"));
  caps.resources_changed = changes(object_member(capabilities, "resources"));
  caps.prompts_changed = changes(object_member(capabilities, "prompts"));
  const auto resources = object_member(capabilities, "resources");
  caps.resources = !resources.empty();
  caps.subscribe = !resources.empty() && mcp::member(resources, "subscribe") == "true";
  caps.prompts = !object_member(capabilities, "prompts").empty();
  caps.logging = !object_member(capabilities, "logging").empty();
  caps.completions = !object_member(capabilities, "completions").empty();
  const auto tasks = object_member(capabilities, "tasks");
  if (!tasks.empty()) {
    const auto requests = object_member(tasks, "requests");
    const auto tools = requests.empty() ? requests : object_member(requests, "tools");
    caps.tool_tasks = !tools.empty() && !object_member(tools, "call").empty();
    caps.task_cancel = !object_member(tasks, "cancel").empty();
  }
  return caps;
}

std::string compose_server_caps(const ServerCaps &caps) {
  std::string out = "{";
  const auto add = [&out](bool has, std::string_view text) {
    if (has) out.append(out.size() > 1 ? "," : "").append(text);
  };
  add(caps.tools, R"("tools":{})");
  add(caps.resources, caps.subscribe ? R"("resources":{"subscribe":true})" : R"("resources":{})");
  add(caps.prompts, R"("prompts":{})");
  add(caps.logging, R"("logging":{})");
  add(caps.completions, R"("completions":{})");
  return out + "}";
}

int parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < log_levels.size(); ++i) {
    if (log_levels[i] == text) return static_cast<int>(i);
  }
  return -1;
}

std::string_view log_level_text(int level) {
  return log_levels.at(static_cast<std::size_t>(level));
}

std::string compose_cancelled(std::string_view id, std::string_view message,
                              const mcp::Scan &scan) {
  std::string out = R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)";
  out += id;
  const std::string_view params = scan.params.in(message);
  const std::string_view reason =
      params.starts_with('{') ? mcp::member(params, "reason") : std::string_view{};
  if (reason.starts_with('"')) out.append(",\"reason\":").append(reason);
  return out += "}}";
}

}  // namespace bulkhead
