#include "service/connectors.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "corporation/holds.hpp"
#include "layers/user_layer.hpp"

namespace bulkhead::program {
namespace {

ConnectorChange refuse(bh_status code, std::string why) {
  ConnectorChange change;
  change.answer = refuse_with(code, std::move(why));
  return change;
}

std::string joined_lines(const std::vector<std::string> &lines) {
  std::string out;
  for (const std::string &line : lines) out += (out.empty() ? "" : "\n") + line;
  return out;
}

std::string profile_id(const LoadedProfile &loaded) {
  return loaded.file.empty() ? "builtin" : loaded.file;
}

std::string source_of(const ServerDef &def) {
  return def.origin.layer == "file" ? "profile" : def.origin.layer;
}

ConnectorItem item(const ServerDef &def) {
  return {def.name, source_of(def), def.origin.file, def.origin.layer == user_layer,
          masked_json(def)};
}

const ServerDef *find(const Profile &profile, std::string_view name) {
  for (const ServerDef &def : profile.servers) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

// The API is stricter about names than a profile is.
bool is_valid_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

Result<OwnedFd> lock_user_layer() {
  const std::filesystem::path file(user_layer_file());
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  return lock_file(file.string() + ".lock", lock_ms);
}

Result<void> write_user_layer(const std::string &text) {
  const std::filesystem::path file(user_layer_file());
  return write_private(file.parent_path().string(), file.filename().string(), text);
}

// Returns the user layer, or an empty layer if the file does not exist.
Result<ProfileLayer> read_user_layer() {
  auto layer = read_profile_file(user_layer_file(), std::string(user_layer));
  if (!layer.has_value() && layer.error().code == BH_E_NOT_FOUND) {
    return ProfileLayer{std::string(user_layer), user_layer_file(), ""};
  }
  return layer;
}

}  // namespace

ConnectorChange add_connector(const Arguments &arguments, Transports transports,
                              const ServerEntry &entry) {
  const std::string &id = entry.id;
  if (!is_valid_id(id)) {
    return refuse(
        BH_E_INVALID,
        "an id must have 1 to 64 characters: lower-case letters, digits, '-', '_' and '.'");
  }
  const auto lock = lock_user_layer();
  if (!lock.has_value()) return refuse(BH_E_LIMIT, lock.error().text);
  auto layer = read_user_layer();
  if (!layer.has_value()) return refuse(BH_E_INTERNAL, layer.error().text);
  auto before = load_for(arguments, transports, layer->text);
  if (!before.has_value()) {
    return refuse(BH_E_INTERNAL, "the profile is not valid: " + joined_lines(before.error()));
  }
  auto text = with_server(*layer, entry);
  if (!text.has_value() && text.error().code != BH_E_DENIED) {
    return refuse(BH_E_INVALID, text.error().text);
  }
  const auto same = [&](const PluginUse &use) { return use.id == id; };
  const auto &tools = before->profile.tools;
  if (!text.has_value() || find(before->profile, id) != nullptr ||
      std::any_of(tools.begin(), tools.end(), same)) {
    return refuse(BH_E_DENIED, "server_exists: server \"" + id + "\" already exists");
  }
  if (const ProfileHold *hold = find_hold(before->holds, {"mcpServers", id})) {
    return refuse(BH_E_DENIED, "server_is_locked: " + hold->says);
  }
  auto next = load_for(arguments, transports, *text);
  if (!next.has_value()) return refuse(BH_E_INVALID, joined_lines(next.error()));
  const ServerDef *added = find(next->profile, id);
  if (added == nullptr) {  // the name is invalid, and a note contains the reason
    return refuse(BH_E_INVALID, next->profile.notes.empty() ? "the server is invalid"
                                                            : next->profile.notes.back());
  }
  if (added->unmet || added->disabled_reason.starts_with(kWrongDefinition)) {
    return refuse(BH_E_INVALID, added->disabled_reason);
  }
  if (auto done = write_user_layer(*text); !done.has_value()) {
    return refuse(BH_E_INTERNAL, done.error().text);
  }
  ConnectorChange change;
  change.answer = answer_with(item(*added));
  change.next = *std::move(next);
  return change;
}

ConnectorChange remove_connector(const Arguments &arguments, Transports transports,
                                 std::string_view id) {
  const auto lock = lock_user_layer();
  if (!lock.has_value()) return refuse(BH_E_LIMIT, lock.error().text);
  auto layer = read_user_layer();
  if (!layer.has_value()) return refuse(BH_E_INTERNAL, layer.error().text);
  const std::string name(id.substr(0, 64));
  auto text = without_server(*layer, name);
  if (!text.has_value() && text.error().code != BH_E_NOT_FOUND) {
    return refuse(BH_E_INTERNAL, text.error().text);
  }
  if (!text.has_value()) {
    const auto loaded = load_for(arguments, transports, layer->text);
    const bool inherited = loaded.has_value() && find(loaded->profile, name) != nullptr;
    return inherited ? refuse(BH_E_DENIED, "server_is_locked: \"" + name +
                                               "\" is defined in another layer of the profile")
                     : refuse(BH_E_NOT_FOUND, "unknown server \"" + name + "\"");
  }
  auto next = load_for(arguments, transports, *text);
  if (!next.has_value()) return refuse(BH_E_INTERNAL, joined_lines(next.error()));
  if (auto done = write_user_layer(*text); !done.has_value()) {
    return refuse(BH_E_INTERNAL, done.error().text);
  }
  ConnectorChange change;
  change.next = *std::move(next);
  change.answer = answer_with(ConnectorRemoved{profile_id(change.next), name});
  return change;
}

ConnectorList connector_list(const LoadedProfile &loaded) {
  ConnectorList out;
  out.profile_id = profile_id(loaded);
  for (const ServerDef &def : loaded.profile.servers) out.servers.push_back(item(def));
  std::sort(out.servers.begin(), out.servers.end(),
            [](const ConnectorItem &a, const ConnectorItem &b) { return a.id < b.id; });
  return out;
}

}  // namespace bulkhead::program
