// The keys of a server that is a child process: its sandbox, when it runs, how many of it.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kPaths = 100;  // of sandbox_paths, each list
constexpr std::uint64_t kMebi = 1u << 20;

class ChildRules {
 public:
  ChildRules(const std::function<const Member *(std::string_view)> &given, const std::string &path,
             Context &context, ServerDef *server)
      : given_(given),
        path_(path),
        context_(context),
        diagnostics_(context.diagnostics),
        server_(*server) {}

  void read() {
    read_mode();
    if (const Member *paths = child_key("sandbox_paths")) read_paths(*paths);
    if (const Member *network = child_key("network"))
      server_.sandbox.network =
          diagnostics_.boolean(network->value, at(*network)).value_or(server_.sandbox.network);
    number("memory_bytes", 16 * kMebi, 1ull << 50, &server_.sandbox.memory_bytes);
    number("processes", 1, 100'000, &server_.sandbox.processes);
    read_cache_bytes();
    if (server_.sandbox.mode == SandboxMode::off) refuse_without_sandbox();
    read_start();
    read_pool();
  }

 private:
  std::string at(const Member &member) const { return join(path_, member.name); }
  void wrong(const Member &member, std::string what) {
    diagnostics_.error(member.place, at(member), std::move(what));
  }
  const Member *child_key(std::string_view key) {
    const Member *member = given_(key);
    if (member != nullptr && given_("command") == nullptr)
      wrong(*member, "only a server with a command has this");
    return member;
  }
  template <class T>
  void number(std::string_view key, std::uint64_t least, std::uint64_t most, T *out) {
    const Member *member = child_key(key);
    if (member == nullptr) return;
    if (const auto value = diagnostics_.integer(member->value, at(*member), least, most))
      *out = static_cast<T>(*value);
  }

  void read_cache_bytes() {
    constexpr std::uint64_t least = 1u << 20;
    number("cache_bytes", 0, 1ull << 50, &server_.sandbox.cache_bytes);
    const Member *member = given_("cache_bytes");
    if (member != nullptr && server_.sandbox.cache_bytes != 0 &&
        server_.sandbox.cache_bytes < least)
      wrong(*member, "less than 1 MiB is not possible; 0 is no bound");
  }

  void read_mode() {
    const Member *sandbox = given_("sandbox");
    if (sandbox == nullptr) return;
    if (sandbox->value.kind == Kind::table) return read_table(*sandbox);
    if (child_key("sandbox") != nullptr) read_mode(*sandbox, at(*sandbox));
  }

  void read_mode(const Member &mode, const std::string &path) {
    static constexpr std::string_view kModes[] = {"home-read-only", "strict", "off"};
    const auto word = diagnostics_.one_of(mode.value, path, kModes);
    if (!word) return;
    server_.sandbox.mode = *word == "strict" ? SandboxMode::strict
                           : *word == "off"  ? SandboxMode::off
                                             : SandboxMode::home_read_only;
  }

  // Two members are ours. VS Code has a table of its own under this name, with others. What limits
  // a server is never left out: the key beside the table that does it is named.
  void read_table(const Member &sandbox) {
    std::string others;
    for (const Member &member : sandbox.value.members) {
      const std::string path = join(at(sandbox), member.name);
      if (const auto key = key_beside(member); !key.empty()) {
        diagnostics_.error(member.place, path,
                           "a table \"sandbox\" has no such member; set " + in_quotes(key) +
                               " of the server, beside \"sandbox\"");
      } else if (member.name != "mode" && member.name != "ipc") {
        others.append(others.empty() ? "" : ", ").append(in_quotes(member.name));
      } else if (given_("command") == nullptr) {
        diagnostics_.error(member.place, path, "only a server with a command has this");
      } else {
        read_own(member, path);
      }
    }
    if (others.empty() && !sandbox.value.members.empty()) return;
    diagnostics_.note(sandbox.place,
                      "server " + in_quotes(server_.name) + ": in the table " +
                          "\"sandbox\" only \"mode\" and \"ipc\" have a meaning here" +
                          (others.empty() ? "" : "; ignored: " + others));
  }

  void read_own(const Member &member, const std::string &path) {
    static constexpr std::string_view kIpc[] = {"private", "host"};
    if (member.name == "mode") return read_mode(member, path);
    const auto word = diagnostics_.one_of(member.value, path, kIpc);
    if (!word) return;
    server_.sandbox.host_ipc = *word == "host";
    ipc_ = &member;
  }

  // The key of the server that a member of the table means; empty: none. A table "network" is VS
  // Code's.
  static std::string_view key_beside(const Member &member) {
    static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
        {"memory_bytes", "memory_bytes"},   {"memoryBytes", "memory_bytes"},
        {"processes", "processes"},         {"cache_bytes", "cache_bytes"},
        {"cacheBytes", "cache_bytes"},      {"read", "sandbox_paths"},
        {"write", "sandbox_paths"},         {"paths", "sandbox_paths"},
        {"sandbox_paths", "sandbox_paths"}, {"sandboxPaths", "sandbox_paths"},
    };
    if (member.name == "network") {
      return member.value.kind == Kind::table ? std::string_view() : std::string_view(member.name);
    }
    const auto *found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                     [&](const auto &key) { return key.first == member.name; });
    return found == std::end(kKeys) ? std::string_view() : found->second;
  }

  void read_paths(const Member &paths) {
    static constexpr std::string_view kKeys[] = {"read", "write"};
    if (!diagnostics_.is_table(paths.value, at(paths))) return;
    for (const Member &list : paths.value.members) {
      const std::string path = join(at(paths), list.name);
      if (list.name != "read" && list.name != "write") {
        diagnostics_.unknown_key(list, at(paths), kKeys);
        continue;
      }
      auto texts = diagnostics_.strings(list.value, path);
      if (!texts) continue;
      if (texts->size() > kPaths)
        diagnostics_.error(list.place, path, "more than " + std::to_string(kPaths) + " entries");
      auto &out = list.name == "read" ? server_.sandbox.read : server_.sandbox.write;
      for (const std::string &text : *texts) add_path(text, list.value.place, path, &out);
    }
  }

  void add_path(const std::string &text, const Place &place, const std::string &path,
                std::vector<std::string> *out) {
    if (text.empty() || text.find('\0') != std::string::npos)
      return diagnostics_.error(place, path, "this is no path");
    const std::string resolved =
        text == "~" ? context_.environment.home : resolve_path(text, place, context_);
    out->push_back(std::filesystem::absolute(resolved).lexically_normal().string());
  }

  // Without a sandbox there is nothing that could enforce these.
  void refuse_without_sandbox() {
    for (const std::string_view key : {"sandbox_paths", "network", "processes", "cache_bytes"}) {
      const Member *member = given_(key);
      if (member == nullptr || (key == "network" && server_.sandbox.network)) continue;
      wrong(*member, "needs a sandbox, but \"sandbox\" is \"off\"");
    }
    if (ipc_ != nullptr && !server_.sandbox.host_ipc)
      diagnostics_.error(ipc_->place, join(join(path_, "sandbox"), "ipc"),
                         "\"private\" needs a sandbox, but its mode is \"off\"");
  }

  void read_start() {
    static constexpr std::string_view kStarts[] = {"eager", "lazy"};
    if (const Member *start = child_key("start"))
      if (const auto word = diagnostics_.one_of(start->value, at(*start), kStarts))
        server_.lazy = *word == "lazy";
    number("idle_stop_ms", 0, 30ull * 86'400'000, &server_.idle_stop_ms);
    if (const Member *idle = given_("idle_stop_ms"))
      if (!server_.lazy && server_.idle_stop_ms != 0)
        wrong(*idle, "only a server with start = \"lazy\" is ended when it is idle");
  }

  void read_pool() {
    number("pool_size", 1, 64, &server_.pool_size);
    const Member *tools = child_key("pool_safe_tools");
    if (tools == nullptr) return;
    auto list = diagnostics_.strings(tools->value, at(*tools));
    if (!list) return;
    if (list->size() > 1000) return wrong(*tools, "more than 1000 entries");
    server_.pool_safe_tools = std::move(*list);
  }

  const std::function<const Member *(std::string_view)> &given_;
  const std::string &path_;
  Context &context_;
  Diagnostics &diagnostics_;
  ServerDef &server_;
  const Member *ipc_ = nullptr;  // of the table "sandbox"
};

}  // namespace

void read_child_rules(const std::function<const Member *(std::string_view)> &given,
                      const std::string &path, Context &context, ServerDef *server) {
  ChildRules(given, path, context, server).read();
}

}  // namespace bulkhead::profiles
