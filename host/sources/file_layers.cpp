#include "sources/file_layers.hpp"

#include <filesystem>
#include <utility>

#include "common/paths.hpp"
#include "formats/extends.hpp"

namespace bulkhead::program {
namespace {

// Returns the directories in which to search for the profiles that `file` extends, in search order.
std::vector<std::filesystem::path> profile_folders(const std::string &file) {
  const std::filesystem::path own = std::filesystem::path(file).parent_path();
  const std::filesystem::path config = default_config_file();
  return {own.empty() ? std::filesystem::path(".") : own, config.parent_path() / "profiles",
          "/etc/bulkhead/profiles"};
}

Result<ProfileLayer> find_profile(const std::vector<std::filesystem::path> &folders,
                                  const std::string &id) {
  std::vector<std::string> absent;
  for (const auto &folder : folders) {
    for (const std::string &name : {id + ".toml", id + ".json", id + "/profile.toml"}) {
      const std::string file = (folder / name).string();
      auto layer = read_profile_file(file);
      if (layer) layer->absent = std::move(absent);
      if (layer || layer.error().code != BH_E_NOT_FOUND) return layer;
      absent.push_back(file);
    }
  }
  std::string places;
  for (const auto &folder : folders) places += (places.empty() ? "" : ", ") + folder.string();
  return fail(BH_E_NOT_FOUND,
              "no " + id + ".toml, " + id + ".json or " + id + "/profile.toml in " + places);
}

}  // namespace

std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file) {
  using Texts = std::vector<std::string>;
  auto layer = read_profile_file(file);
  if (!layer) return std::unexpected(Texts{layer.error().text});
  const auto folders = profile_folders(file);
  auto layers = with_ancestors(*std::move(layer),
                               [&](const std::string &id) { return find_profile(folders, id); });
  if (!layers) return std::unexpected(Texts{to_string(layers.error())});
  return *std::move(layers);
}

std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes) {
  std::vector<ProfileLayer> out;
  for (const std::string name : {"gemini", "claude"}) {
    auto layer = read_project_file(home_dir() + "/." + name + "/settings.json");
    if (!layer) {
      if (layer.error().code != BH_E_NOT_FOUND) notes->push_back(layer.error().text);
      continue;
    }
    layer->name = name;
    layer->project = false;
    layer->detected = layer->lenient = true;
    out.push_back(*std::move(layer));
  }
  return out;
}

}  // namespace bulkhead::program
