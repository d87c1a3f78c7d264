#include "lists.hpp"

#include <rapidjson/document.h>

#include <algorithm>
#include <iterator>

namespace bulkhead::lists {
namespace {

constexpr std::string_view kKeys[] = {"global_policy",    "blocked_servers",
                                      "server_enabled",   "allowed_servers",
                                      "tool_permissions", "default_tool_permission"};

std::string_view text_of(const rapidjson::Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

std::optional<Permission> permission_of(const rapidjson::Value &value) {
  if (!value.IsString()) return std::nullopt;
  const std::string_view text = text_of(value);
  if (text == "allow") return Permission::allow;
  if (text == "warn") return Permission::warn;
  if (text == "block") return Permission::block;
  return std::nullopt;
}

}  // namespace

// Reads one layer of the configuration and applies it on top of the previous layers.
struct Reader {
  Lists &lists;
  std::string at;  // prefix of keys in error messages: "" or "corp."
  std::string fault;

  void fail(std::string_view key, std::string_view what) {
    if (fault.empty()) fault = at + std::string(key) + ": " + std::string(what);
  }

  void read(const rapidjson::Value &table) {
    for (const auto &each : table.GetObject()) {
      const std::string_view key = text_of(each.name);
      if (key == "global_policy") {
        global(key, each.value);
      } else if (key == "blocked_servers" || key == "allowed_servers") {
        servers(key, each.value);
      } else if (key == "server_enabled") {
        enabled(key, each.value);
      } else if (key == "tool_permissions") {
        tools(key, each.value);
      } else if (key == "default_tool_permission") {
        if (const auto permission = permission_of(each.value))
          lists.fallback_ = *permission;
        else
          fail(key, "must be \"allow\", \"warn\" or \"block\"");
      } else if (!(at.empty() && key == "corp")) {
        unknown(key);
      }
    }
  }

  void unknown(std::string_view key) {
    if (key == "profile_rules") {
      return fail(
          "rules",
          "this policy does not evaluate the profile's rules: set rules = false here, and add a "
          "policy that does");
    }
    std::string text = "unknown key; known keys:";
    for (const std::string_view known : kKeys) text.append(" ").append(known);
    fail(key, text);
  }

  void global(std::string_view key, const rapidjson::Value &value) {
    const auto permission = permission_of(value);
    if (!permission || *permission == Permission::warn)
      return fail(key, "must be \"allow\" or \"block\"");
    // A layer cannot remove a block that another layer has set.
    lists.block_all_ = lists.block_all_ || *permission == Permission::block;
  }

  void servers(std::string_view key, const rapidjson::Value &value) {
    std::vector<std::string> names;
    if (!value.IsArray()) return fail(key, "must be an array of server names");
    for (const auto &name : value.GetArray()) {
      if (!name.IsString()) return fail(key, "must be an array of server names");
      names.emplace_back(text_of(name));
    }
    if (key == "blocked_servers") {
      for (std::string &name : names) lists.enabled_.insert_or_assign(std::move(name), false);
      return;
    }
    std::sort(names.begin(), names.end());
    lists.allowed_ = std::move(names);
  }

  void enabled(std::string_view key, const rapidjson::Value &value) {
    if (!value.IsObject()) return fail(key, "must be a table that maps server names to booleans");
    for (const auto &each : value.GetObject()) {
      if (!each.value.IsBool())
        return fail(key, "must be a table that maps server names to booleans");
      lists.enabled_.insert_or_assign(std::string(text_of(each.name)), each.value.GetBool());
    }
  }

  void tools(std::string_view key, const rapidjson::Value &value) {
    if (!value.IsObject())
      return fail(key, "must be a table that maps server__tool names to permissions");
    for (const auto &each : value.GetObject()) {
      const std::string name(text_of(each.name));
      const auto permission = permission_of(each.value);
      if (!permission)
        return fail(std::string(key) + "." + name, "must be \"allow\", \"warn\" or \"block\"");
      if (name.find("__") == std::string::npos)
        return fail(std::string(key) + "." + name, "a tool name must have the form server__tool");
      lists.tools_.insert_or_assign(name, *permission);
    }
  }
};

std::expected<Lists, std::string> Lists::load(std::string_view config_json) {
  rapidjson::Document config;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  config.Parse<flags>(config_json.data(), config_json.size());
  if (config.HasParseError() || !config.IsObject())
    return std::unexpected("the configuration is not a table");
  Lists lists;
  Reader user{lists, "", ""};
  user.read(config);
  if (!user.fault.empty()) return std::unexpected(user.fault);
  const auto corp = config.FindMember("corp");
  if (corp == config.MemberEnd()) return lists;
  if (!corp->value.IsObject()) return std::unexpected("corp: must be a table");
  Reader above{lists, "corp.", ""};
  above.read(corp->value);
  if (!above.fault.empty()) return std::unexpected(above.fault);
  return lists;
}

Decision Lists::decide(std::string_view server, std::string_view tool) const {
  if (block_all_) return {Permission::block, "global_policy"};
  if (const auto at = enabled_.find(server); at != enabled_.end() && !at->second)
    return {Permission::block, "blocked_servers." + at->first};
  if (!allowed_.empty() && !std::binary_search(allowed_.begin(), allowed_.end(), server))
    return {Permission::block, "allowed_servers"};
  if (tool.empty()) return {};
  std::string name(server);
  name.append("__").append(tool);
  const auto at = tools_.find(name);
  // An entry is meant for the server whose name is the part before the first "__". It applies to
  // other servers only if it is stricter than the default.
  const bool meant = name.find("__") == server.size();
  if (at != tools_.end() && (meant || at->second > fallback_))
    return {at->second, "tool_permissions." + name};
  if (fallback_ == Permission::allow) return {};
  return {fallback_, "default_tool_permission"};
}

bool Lists::empty() const {
  const auto allows = [](const auto &entry) { return entry.second == Permission::allow; };
  const auto on = [](const auto &entry) { return entry.second; };
  return !block_all_ && allowed_.empty() && fallback_ == Permission::allow &&
         std::all_of(tools_.begin(), tools_.end(), allows) &&
         std::all_of(enabled_.begin(), enabled_.end(), on);
}

}  // namespace bulkhead::lists
