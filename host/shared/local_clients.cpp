#include "shared/local_clients.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "bulkhead/cpp/json_writer.hpp"
#include "common/text.hpp"
#include "shared/profile_marks.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

// Returns 128 random bits in hex. All of these characters are allowed in the connector's
// meta_prefix.
std::string random_token() {
  constexpr std::string_view digits = "0123456789ABCDEF";
  unsigned char bytes[16];
  randombytes_buf(bytes, sizeof bytes);
  std::string out;
  for (const unsigned char byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string current_folder() {
  std::error_code gone;
  return std::filesystem::current_path(gone).string();
}

}  // namespace

LocalClients::LocalClients(std::string_view service_socket)
    : path_(local_socket_path(service_socket)), token_(random_token()), folder_(current_folder()) {}

void LocalClients::add_to(Profile &profile) const {
  PluginUse use;
  use.id = transport_id;
  use.plugin = "transport-vsock";
  use.required = false;
  use.config_json = "{";
  bh::json::append_member(&use.config_json, "listen", "unix:" + path_);
  bh::json::append_member(&use.config_json, "local_token", token_);
  use.config_json += '}';
  profile.transports.push_back(std::move(use));
}

// Describes the parts that differ, with details about the gateway's side. The program that sent the
// request appends details about its own side (running_gateway.cpp).
std::string LocalClients::differences(const std::vector<std::string> &parts, const Profile &profile,
                                      const ProfileMarks &ours, const ProfileMarks &theirs) const {
  const auto differs = [&](const std::string &part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  std::vector<std::string> named = parts;
  std::string details;
  for (std::string &part : named) {
    if (!part.starts_with(server_part(""))) continue;
    part += !ours.contains(part)     ? " (not in the gateway)"
            : !theirs.contains(part) ? " (only in the gateway)"
                                     : " (its definition or a variable in it)";
  }
  std::size_t programs = 0;
  for (const ServerDef &def : profile.servers) {
    if (def.unmet && differs(server_part(def.name))) {
      details += "; in the gateway, server " + printable(def.name) +
                 " is disabled: " + printable(def.disabled_reason) + std::string(own_environment);
    }
    if (differs(program_part(def.name)) && programs++ < max_named_parts) {
      const std::string program = selected_program(def);
      details += "; in the gateway, PATH selects " +
                 (program.empty() ? "no program" : printable(program)) + " for server " +
                 printable(def.name);
    }
  }
  const auto add_plugins = [&](std::string_view part, const std::vector<PluginUse> &uses) {
    for (const PluginUse &use : uses) {
      const std::string name = std::string(part) + " " + use.id;
      if (!differs(name) || !ours.contains(name) || !theirs.contains(name)) continue;
      details += "; if only the file of this plugin has changed, `bulkhead plugin swap " +
                 printable(use.id) + "` puts it into use";
    }
  };
  add_plugins("tools", profile.tools);
  add_plugins("policy", profile.policies);
  std::string out = "its configuration differs: " + describe_parts(named);
  if (differs(std::string(folder_part))) {
    const std::vector<std::string> servers = servers_in_folder(profile);
    out += "; it was started in " + printable(folder_);
    if (!servers.empty()) {
      out += ", where these servers run unless \"cwd\" is set: " + describe_parts(servers);
    }
  }
  return out + details;
}

ServiceAnswer LocalClients::answer(std::string_view request, const Profile &profile,
                                   std::uint64_t loaded_ms, bool starting) const {
  JoinRequest wanted;
  if (!from_bytes(request, &wanted) || wanted.key.size() != mark_key_bytes ||
      wanted.marks.size() > max_marks) {
    return refuse_with(BH_E_INVALID, "the request is invalid");
  }
  const ProfileMarks ours = marks_of(profile, folder_, wanted.key);
  const std::vector<std::string> parts = different_parts(ours, wanted.marks);
  if (!parts.empty()) {
    Refusal refusal{differences(parts, profile, ours, wanted.marks), {}, parts, loaded_ms};
    return {BH_E_DENIED, to_bytes(refusal)};
  }
  if (::access(path_.c_str(), F_OK) == 0) return answer_with(JoinAnswer{path_, token_});
  if (starting) return refuse_with(BH_E_UNAVAILABLE, std::string(gateway_is_starting));
  // The plugin that implements the transport is not installed.
  return refuse_with(BH_E_DENIED, "it has no socket for local clients");
}

}  // namespace bulkhead::program
