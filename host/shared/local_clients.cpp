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

// Returns 128 random bits in hex. All of these characters are allowed in a metadata prefix.
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

// Names the differences and what the user can do about them.
std::string LocalClients::differences(const std::vector<std::string> &parts,
                                      const Profile &profile) const {
  std::string out = "its configuration differs: " + describe_parts(parts);
  if (std::find(parts.begin(), parts.end(), folder_part) != parts.end()) {
    const std::vector<std::string> servers = servers_in_folder(profile);
    out += "; it was started in " + printable(folder_);
    if (!servers.empty()) {
      out += ", where these servers run unless \"cwd\" is set: " + describe_parts(servers);
    }
  }
  for (const ServerDef &def : profile.servers) {
    if (!def.unmet || std::find(parts.begin(), parts.end(), "server " + def.name) == parts.end()) {
      continue;
    }
    out += "; in the gateway, server " + printable(def.name) +
           " is disabled: " + printable(def.disabled_reason) + std::string(own_environment);
  }
  if (any_in_files(parts)) out += "; `bulkhead reload` applies changed files";
  return out;
}

ServiceAnswer LocalClients::answer(std::string_view request, const Profile &profile) const {
  JoinRequest wanted;
  if (!from_bytes(request, &wanted) || wanted.key.size() != mark_key_bytes ||
      wanted.marks.size() > max_marks) {
    return refuse_with(BH_E_INVALID, "the request is invalid");
  }
  // If the plugin that implements the transport is not installed, the socket does not exist.
  if (::access(path_.c_str(), F_OK) != 0) {
    return refuse_with(BH_E_DENIED, "it has no socket for local clients");
  }
  const auto parts = different_parts(marks_of(profile, folder_, wanted.key), wanted.marks);
  if (parts.empty()) return answer_with(JoinAnswer{path_, token_});
  return refuse_with(BH_E_DENIED, differences(parts, profile));
}

}  // namespace bulkhead::program
