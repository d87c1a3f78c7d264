// Defines the keys of a server: one row for each key, with its aliases, reader and limits.
#include <algorithm>

#include "profile/keys.hpp"
#include "profile/server_reader.hpp"

namespace bulkhead::profiles {

namespace {

enum class Needs : std::uint8_t { nothing, command, url };

struct ServerKey {
  Key<ServerReader> key;         // without a reader if the key is read before the others
  std::string_view others;       // aliases that other programs use
  Needs needs = Needs::nothing;  // the member that the server must also have
  // Completes the error message "only a server with a command can have NOUN".
  std::string_view noun = "";
  bool listed = true;  // false: the key is always rejected with a specific reason
};

template <auto method>
constexpr Key<ServerReader> read_with(std::string_view name) {
  return {name, [](const Key<ServerReader> &, const KeyValue &input, ServerReader &reader) {
            (reader.*method)(input.member);
          }};
}

constexpr Word kStarts[] = {{"eager", false}, {"lazy", true}};
constexpr Word kScopes[] = {{"shared", static_cast<int>(SessionScope::shared)},
                            {"per-client", static_cast<int>(SessionScope::per_client)}};

constexpr Word kProtocols[] = {{"auto", static_cast<int>(ProtocolPin::automatic)},
                               {"2024-11-05", static_cast<int>(ProtocolPin::v2024_11_05)},
                               {"2025-03-26", static_cast<int>(ProtocolPin::v2025_03_26)},
                               {"2025-06-18", static_cast<int>(ProtocolPin::v2025_06_18)},
                               {"2025-11-25", static_cast<int>(ProtocolPin::v2025_11_25)},
                               {"2026-07-28", static_cast<int>(ProtocolPin::v2026_07_28)}};

// The keys, in the order in which messages list them and in which their values are read.
constexpr ServerKey kKeys[] = {
    {{"type"}, "transport transportType transport_type"},
    {read_with<&ServerReader::read_command>("command"), ""},
    {read_with<&ServerReader::read_args>("args"), "", Needs::command, "args"},
    {read_with<&ServerReader::read_env>("env"), "", Needs::command, "an env"},
    {read_with<&ServerReader::read_cwd>("cwd"), "", Needs::command, "a cwd"},
    {read_with<&ServerReader::read_sandbox>("sandbox"), ""},
    {read_with<&ServerReader::read_sandbox_paths>("sandbox_paths"), "sandboxPaths", Needs::command,
     "this key"},
    {flag<&SandboxRules::network, ServerReader>("network"), "", Needs::command, "this key"},
    {number<&SandboxRules::memory_bytes, ServerReader>("memory_bytes", 16u << 20, 1ull << 50),
     "memoryBytes", Needs::command, "this key"},
    {number<&SandboxRules::processes, ServerReader>("processes", 1, 100'000), "", Needs::command,
     "this key"},
    {read_with<&ServerReader::read_cache_bytes>("cache_bytes"), "cacheBytes", Needs::command,
     "this key"},
    {choice<&ServerDef::lazy, ServerReader>("start", kStarts), "", Needs::command, "this key"},
    {read_with<&ServerReader::read_idle_stop>("idle_stop_ms"), "idleStopMs", Needs::command,
     "this key"},
    {number<&ServerDef::pool_size, ServerReader>("pool_size", 1, 64), "poolSize", Needs::command,
     "this key"},
    {texts<&ServerDef::pool_safe_tools, ServerReader>("pool_safe_tools", kServerEntries),
     "poolSafeTools", Needs::command, "this key"},
    {read_with<&ServerReader::read_url>("url"), "httpUrl http_url serverUrl server_url"},
    {read_with<&ServerReader::read_headers>("headers"), "http_headers httpHeaders", Needs::url,
     "headers"},
    {read_with<&ServerReader::read_bearer_token>("bearerToken"), "bearer_token", Needs::url,
     "a bearer token"},
    {read_with<&ServerReader::read_bearer_variable>("bearer_token_env_var"), "", Needs::url,
     "a bearer token"},
    {{"disabled"}, ""},
    {{"enabled"}, ""},
    {read_with<&ServerReader::read_allow_tools>("allowTools"),
     "allow_tools includeTools include_tools enabled_tools tools"},
    {texts<&ServerDef::deny_tools, ServerReader>("denyTools", kServerEntries),
     "deny_tools excludeTools exclude_tools disabledTools disabled_tools"},
    {read_with<&ServerReader::read_timeout>("timeout"), "timeout_ms"},
    {read_with<&ServerReader::read_timeout_seconds>("tool_timeout_sec"), ""},
    {read_with<&ServerReader::read_tool_timeouts>("tool_timeouts"), "toolTimeouts"},
    {read_with<&ServerReader::read_connect_timeout>("connect_timeout"),
     "connectTimeout connect_timeout_ms startup_timeout_ms"},
    {read_with<&ServerReader::read_startup_seconds>("startup_timeout_sec"), ""},
    {choice<&ServerDef::protocol, ServerReader>("protocol", kProtocols), ""},
    {choice<&ServerDef::session, ServerReader>("session", kScopes), ""},
    {read_with<&ServerReader::read_roots>("roots"), ""},
    {read_with<&ServerReader::read_root_folders>("root_folders"), "rootFolders"},
    {read_with<&ServerReader::read_server_compartment>("compartment"), ""},
    {number<&ServerDef::max_in_flight, ServerReader>("max_in_flight", 1, 65'536), "maxInFlight"},
    {{"unsupported_stdio"}, "unsupportedStdio"},
    {read_with<&ServerReader::reject_env_file>("envFile"), "env_file", Needs::nothing, "", false},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

std::string_view server_key(std::string_view spelling) {
  for (const ServerKey &row : kKeys)
    if (row.key.name == spelling || has_word(row.others, spelling)) return row.key.name;
  return {};
}

std::span<const std::string_view> server_keys() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const ServerKey &row : kKeys)
      if (row.listed) out.push_back(row.key.name);
    return out;
  }();
  return names;
}

bool server_key_fits(std::string_view key, const Node &server) {
  for (const ServerKey &row : kKeys) {
    if (row.key.name != key || row.needs == Needs::nothing) continue;
    const std::string_view needed = row.needs == Needs::command ? "command" : "url";
    return std::any_of(server.members.begin(), server.members.end(),
                       [&](const Member &member) { return server_key(member.name) == needed; });
  }
  return true;
}

void ServerReader::read_keys() {
  for (const ServerKey &row : kKeys) {
    const Member *member = find(row.key.name);
    if (member == nullptr || row.key.read == nullptr) continue;
    const std::string noun(row.noun);
    if (row.needs == Needs::command && find("command") == nullptr)
      reject(*member, "only a server with a command can have " + noun);
    if (row.needs == Needs::url && find("url") == nullptr)
      reject(*member, "only a server with a url can have " + noun);
    row.key.read(row.key, {*member, at(*member), context_}, *this);
  }
}

}  // namespace bulkhead::profiles

namespace bulkhead {

std::string_view to_string(ProtocolPin pin) noexcept {
  return profiles::kProtocols[static_cast<std::size_t>(pin)].text;
}

}  // namespace bulkhead
