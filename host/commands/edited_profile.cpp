#include "commands/edited_profile.hpp"

#include <unistd.h>

#include "bulkhead/cpp/json.hpp"
#include "commands/profile_file.hpp"
#include "commands/running_policy.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "mcp/scan.hpp"
#include "sources/builtin_profile.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t lock_wait_ms = 5'000;

}  // namespace

Arguments looking_at(const Arguments &arguments, const std::string &file) {
  Arguments out = arguments;
  out.config = file;
  out.no_project = true;
  return out;
}

DraftProfile::DraftProfile(const std::string &path, std::string_view text) : path_(path) {
  draft_ = folder_of(path) + "/.draft-" + std::to_string(::getpid()) + '-' + name_of(path);
  written_ = write_profile(draft_, text, Existing::keep);
}

DraftProfile::~DraftProfile() {
  if (written_) ::unlink(draft_.c_str());
}

std::expected<LoadedProfile, std::vector<std::string>> DraftProfile::load(
    const Arguments &arguments) const {
  if (!written_) return std::unexpected(std::vector{written_.error().text});
  auto loaded = load_to_look(looking_at(arguments, draft_), Transports::none);
  if (!loaded) {
    for (std::string &line : loaded.error()) {
      const std::size_t at = line.find(draft_);
      if (at != std::string::npos) line.replace(at, draft_.size(), path_);
    }
  }
  return loaded;
}

Result<EditedProfile> open_profile(const std::string &path) {
  EditedProfile out;
  if (auto made = make_private_dir(default_state_dir()); !made)
    return std::unexpected(made.error());
  auto lock = lock_file(default_state_dir() + "/profile.lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  out.lock = *std::move(lock);
  auto layer = read_profile_file(path);
  if (layer) {
    out.layer = *std::move(layer);
    return out;
  }
  if (layer.error().code != BH_E_NOT_FOUND) return std::unexpected(layer.error());
  out.is_new = true;
  out.layer = {"file", path,
               path.ends_with(".json") ? "{\n  \"mcpServers\": {\n  }\n}\n"
                                       : "schema = \"bulkhead.profile/1\"\n"};
  return out;
}

std::vector<std::string> own_addresses(const Arguments &arguments, const std::string &path) {
  Arguments look = arguments;
  look.no_project = true;
  if (!path.empty() && ::access(path.c_str(), F_OK) == 0) look.config = path;
  std::vector<std::string> out{std::string(default_listen)};
  const auto loaded = load_to_look(look, Transports::served);
  if (!loaded) return out;
  for (const PluginUse &use : loaded->profile.transports)
    out.push_back(bh::json::member_text(use.config_json, "listen"));
  return out;
}

int profile_unchanged(const std::string &path, const std::vector<std::string> &lines) {
  report_config_errors(lines);
  return complain(tilde(path) + " was not changed");
}

int profile_unchanged(const std::string &path, const Error &error) {
  return complain(tilde(path) + ": " + error.text);
}

void mention_reload(const std::string &path) {
  if (running_policies(path, {}).empty()) return;
  complain("a gateway with this profile is running: run `bulkhead reload` to apply the change",
           exit_ok);
}

}  // namespace bulkhead::program
