// Reads the keys of stdio servers: sandbox, cache limit and idle stop.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "profile/server_reader.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kPaths = 100;  // maximum number of paths in each list of sandbox_paths

constexpr Word kModes[] = {{"home-read-only", static_cast<int>(SandboxMode::home_read_only)},
                           {"strict", static_cast<int>(SandboxMode::strict)},
                           {"off", static_cast<int>(SandboxMode::off)}};

// Returns the server key that should be used instead of a member of the "sandbox" table, or an
// empty view if there is none. (VS Code has a "network" table here.)
std::string_view key_beside(const Member &member) {
  static constexpr std::pair<std::string_view, std::string_view> kStdioKeys[] = {
      {"memory_bytes", "memory_bytes"},   {"memoryBytes", "memory_bytes"},
      {"processes", "processes"},         {"cache_bytes", "cache_bytes"},
      {"cacheBytes", "cache_bytes"},      {"read", "sandbox_paths"},
      {"write", "sandbox_paths"},         {"paths", "sandbox_paths"},
      {"sandbox_paths", "sandbox_paths"}, {"sandboxPaths", "sandbox_paths"},
  };
  if (member.name == "network") {
    return member.value.kind == Kind::table ? std::string_view() : std::string_view(member.name);
  }
  const auto *found = std::find_if(std::begin(kStdioKeys), std::end(kStdioKeys),
                                   [&](const auto &key) { return key.first == member.name; });
  return found == std::end(kStdioKeys) ? std::string_view() : found->second;
}

}  // namespace

void ServerReader::read_sandbox_mode(const Member &mode, const std::string &path) {
  if (const auto value = diagnostics_.one_of(mode.value, path, kModes))
    server_.sandbox.mode = static_cast<SandboxMode>(*value);
}

// Reads a string, or a table with "mode" and "ipc". A member that is a key of the server itself,
// such as "memory_bytes", is an error; the message names the key to use instead. Other members, as
// in VS Code's table with the same name, are ignored with a note.
void ServerReader::read_sandbox(const Member &sandbox) {
  if (sandbox.value.kind != Kind::table) {
    if (find("command") == nullptr)
      reject(sandbox, "only a server with a command can have this key");
    return read_sandbox_mode(sandbox, at(sandbox));
  }
  std::string others;
  for (const Member &member : sandbox.value.members) {
    const std::string path = join(at(sandbox), member.name);
    if (const auto key = key_beside(member); !key.empty()) {
      diagnostics_.error(
          member.place, path,
          "not a member of \"sandbox\"; set " + in_quotes(key) + " in the server instead");
    } else if (member.name != "mode" && member.name != "ipc") {
      others.append(others.empty() ? "" : ", ").append(in_quotes(member.name));
    } else if (find("command") == nullptr) {
      diagnostics_.error(member.place, path, "only a server with a command can have this key");
    } else {
      read_sandbox_member(member, path);
    }
  }
  if (others.empty() && !sandbox.value.members.empty()) return;
  diagnostics_.note(sandbox.place, "server " + in_quotes(server_.name) + ": in the table " +
                                       "\"sandbox\", only \"mode\" and \"ipc\" are supported" +
                                       (others.empty() ? "" : "; ignored: " + others));
}

void ServerReader::read_sandbox_member(const Member &member, const std::string &path) {
  static constexpr Word kIpc[] = {{"private", false}, {"host", true}};
  if (member.name == "mode") return read_sandbox_mode(member, path);
  const auto host = diagnostics_.one_of(member.value, path, kIpc);
  if (!host) return;
  server_.sandbox.host_ipc = *host != 0;
  ipc_ = &member;
}

void ServerReader::read_sandbox_paths(const Member &paths) {
  struct List {
    std::string_view name;
    std::vector<std::string> SandboxRules::*paths;
  };
  static constexpr List kLists[] = {{"read", &SandboxRules::read}, {"write", &SandboxRules::write}};
  static constexpr std::string_view kListNames[] = {"read", "write"};
  if (!diagnostics_.is_table(paths.value, at(paths))) return;
  for (const Member &member : paths.value.members) {
    const std::string path = join(at(paths), member.name);
    const List *list = std::find_if(std::begin(kLists), std::end(kLists),
                                    [&](const List &l) { return l.name == member.name; });
    if (list == std::end(kLists)) {
      diagnostics_.unknown_key(member, at(paths), kListNames);
      continue;
    }
    const auto texts = diagnostics_.strings(member.value, path);
    if (!texts) continue;
    if (texts->size() > kPaths)
      diagnostics_.error(member.place, path, "more than " + std::to_string(kPaths) + " entries");
    for (const std::string &text : *texts)
      add_sandbox_path(text, member.value.place, path, &(server_.sandbox.*list->paths));
  }
}

void ServerReader::add_sandbox_path(const std::string &text, const Place &place,
                                    const std::string &path, std::vector<std::string> *out) {
  if (text.empty() || text.find('\0') != std::string::npos)
    return diagnostics_.error(place, path, "not a valid path");
  const std::string resolved =
      text == "~" ? context_.environment.home : resolve_path(text, place, context_);
  out->push_back(std::filesystem::absolute(resolved).lexically_normal().string());
}

void ServerReader::read_cache_bytes(const Member &bytes) {
  constexpr std::uint64_t least = 1u << 20;
  const auto value = diagnostics_.integer(bytes.value, at(bytes), 0, 1ull << 50);
  if (value && *value != 0 && *value < least)
    reject(bytes, "must be at least 1 MiB, or 0 for no limit");
  server_.sandbox.cache_bytes = value.value_or(server_.sandbox.cache_bytes);
}

// Reports keys that have no effect if the sandbox is off.
void ServerReader::check_sandbox() {
  if (server_.sandbox.mode != SandboxMode::off) return;
  for (const std::string_view key : {"sandbox_paths", "network", "processes", "cache_bytes"}) {
    const Member *member = find(key);
    if (member == nullptr || (key == "network" && server_.sandbox.network)) continue;
    reject(*member, "requires a sandbox, but \"sandbox\" is \"off\"");
  }
  if (ipc_ != nullptr && !server_.sandbox.host_ipc)
    diagnostics_.error(ipc_->place, join(join(path_, "sandbox"), "ipc"),
                       "\"private\" requires a sandbox, but the sandbox mode is \"off\"");
}

void ServerReader::read_idle_stop(const Member &milliseconds) {
  const auto value =
      diagnostics_.integer(milliseconds.value, at(milliseconds), 0, 30ull * 86'400'000);
  if (!value) return;
  server_.idle_stop_ms = *value;
  if (!server_.lazy && *value != 0)
    reject(milliseconds, "only a server with start = \"lazy\" is stopped when idle");
}

}  // namespace bulkhead::profiles
