// Reads one mcpServers entry. Internal to core/profile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/server.hpp"

namespace bulkhead::profiles {

// Maximum number of entries in args, in env and in each tool list.
inline constexpr std::size_t kServerEntries = 1000;

class ServerReader {
 public:
  ServerReader(const Member &entry, Context &context);
  // Reads the server and adds it to the profile, or reports its errors.
  void read();

  // The objects into which the keys are read.
  operator ServerDef &() { return server_; }
  operator SandboxRules &() { return server_.sandbox; }

  // The readers of the individual keys; see server_keys.cpp.
  void read_command(const Member &command);
  void read_args(const Member &args);
  void read_cwd(const Member &cwd);
  void read_env(const Member &env);
  void read_sandbox(const Member &sandbox);
  void read_sandbox_paths(const Member &paths);
  void read_cache_bytes(const Member &bytes);
  void read_idle_stop(const Member &milliseconds);
  void read_url(const Member &url);
  void read_headers(const Member &headers);
  void read_bearer_token(const Member &token);
  void read_bearer_variable(const Member &variable);
  void read_allow_tools(const Member &tools);
  void read_timeout(const Member &timeout);
  void read_timeout_seconds(const Member &seconds);
  void read_tool_timeouts(const Member &tools);
  void read_connect_timeout(const Member &timeout);
  void read_startup_seconds(const Member &seconds);
  void read_roots(const Member &roots);
  void read_root_folders(const Member &folders);
  void read_server_compartment(const Member &compartment);
  void reject_env_file(const Member &file);

 private:
  // A value after references have been resolved.
  struct Value {
    std::string text;
    bool referred = false;  // at least part of the value comes from the environment
    // References in the text have not been resolved, because the server is disabled or will be.
    bool unresolved = false;
  };

  const Member *find(std::string_view key) const;
  std::string at(const Member &member) const { return join(path_, member.name); }
  void reject(const Member &member, std::string what);
  void collect();
  void read_keys();
  void read_switches();
  void read_type();
  void read_custom_type(const Member &type, const std::string &text);
  void read_sandbox_mode(const Member &mode, const std::string &path);
  void read_sandbox_member(const Member &member, const std::string &path);
  void add_sandbox_path(const std::string &text, const Place &place, const std::string &path,
                        std::vector<std::string> *out);
  void check_sandbox();
  void check_roots();
  void expand_inputs(std::vector<std::string> *args);
  bool within_limit(const Member &member, std::size_t count, std::size_t most);
  std::optional<Value> expanded(const std::string &text, const Place &place,
                                const std::string &path);
  std::optional<Value> checked(Value value, const Place &place, const std::string &path);
  std::optional<Value> bearer_variable(const Member &token, const std::string &name);
  bool may_be_unset(const Place &place) const;
  void reject_value(const Value &value, const Place &place, const std::string &path,
                    const std::string &what);
  void note_foreign_references();
  void disable_if_unmet();
  void add_header(const std::string &name, Value value, const Place &place,
                  const std::string &path);
  void add_bearer(const Member &token, Value value);
  std::optional<std::uint64_t> milliseconds(const Member &member, const std::string &path);
  std::optional<std::uint64_t> from_seconds(const Member &member);
  std::uint64_t clamped(std::uint64_t value, const Member &member, const std::string &path);

  const Member &entry_;
  Context &context_;
  Diagnostics &diagnostics_;
  const std::string path_;
  std::map<std::string_view, const Member *> members_;  // by the canonical name of the key
  ServerDef server_;
  std::vector<std::string> unmet_;  // reasons why values from the environment are unusable
  bool custom_type_ = false;        // the type is defined only in [connectors]
  const Member *ipc_ = nullptr;     // the member "ipc" in the "sandbox" table
};

}  // namespace bulkhead::profiles
