#include "formats/extends.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/capsem_profile.hpp"
#include "profile/parse.hpp"
#include "profile/revision.hpp"

namespace bulkhead {
namespace profiles {
namespace {

struct Identity {
  bool v2 = false;
  std::string id, revision, extends, extends_revision;
  Place place;  // location of extends_profile_id
};

std::string text_of(const Node &root, std::string_view name) {
  const Node *value = root.find(name);
  return value != nullptr && value->kind == Kind::string ? value->text : std::string();
}

std::optional<Identity> identify(const ProfileLayer &layer) {
  const std::vector<ProfileLayer> layers{layer};
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layer, 0, {}, &root, diagnostics)) return std::nullopt;
  Identity out;
  out.v2 = is_v2(root);
  if (!out.v2) return out;
  out.id = text_of(root, "id");
  out.revision = text_of(root, "revision");
  out.extends = text_of(root, "extends_profile_id");
  out.extends_revision = text_of(root, "extends_profile_revision");
  if (const Node *value = root.find("extends_profile_id")) out.place = value->place;
  return out;
}

ProfileError refuse(const ProfileLayer &layer, const Place &place, std::string what) {
  return {layer.file,           place.line,      place.column,
          "extends_profile_id", std::move(what), "invalid_schema"};
}

class Chain {
 public:
  explicit Chain(const FindProfile &find) : find_(find) {}

  std::expected<std::vector<ProfileLayer>, ProfileError> build(ProfileLayer layer) {
    std::optional<Identity> one = identify(layer);
    chain_.push_back(std::move(layer));
    while (one && !one->extends.empty()) {
      seen_.push_back(one->id);
      auto parent = find_parent(*one);
      if (!parent) return std::unexpected(std::move(parent.error()));
      one = identify(*parent);
      chain_.push_back(*std::move(parent));
    }
    std::reverse(chain_.begin(), chain_.end());
    for (std::size_t i = 0; i + 1 < chain_.size(); ++i) chain_[i].extended = true;
    return std::move(chain_);
  }

 private:
  std::expected<ProfileLayer, ProfileError> find_parent(const Identity &one) {
    const ProfileLayer &layer = chain_.back();
    const auto reject = [&](std::string what) {
      return std::unexpected(refuse(layer, one.place, std::move(what)));
    };
    const std::string name = in_quotes(one.extends);
    if (!is_profile_id(one.extends)) return reject(name + " is not a valid profile id");
    if (std::find(seen_.begin(), seen_.end(), one.extends) != seen_.end())
      return reject("the profile extends itself through " + name);
    if (chain_.size() >= kProfileChain)
      return reject("more than " + std::to_string(kProfileChain) + " profiles in a chain; " + name +
                    " exceeds the limit");
    auto parent = find_(one.extends);
    if (!parent) return reject("the profile " + name + " was not found: " + parent.error().text);
    parent->name = layer.name;
    const auto what = identify(*parent);
    if (what && (!what->v2 || what->id != one.extends))
      return reject(parent->file + " is not a " + std::string(kV2Schema) + " profile with the id " +
                    name);
    if (what && !one.extends_revision.empty() && what->revision != one.extends_revision)
      return reject("revision " + printable(one.extends_revision) + " of " + name +
                    " is required, but " + parent->file + " has revision " +
                    printable(what->revision));
    return *std::move(parent);
  }

  const FindProfile &find_;
  std::vector<ProfileLayer> chain_;
  std::vector<std::string> seen_;
};

}  // namespace
}  // namespace profiles

std::expected<std::vector<ProfileLayer>, ProfileError> with_ancestors(ProfileLayer layer,
                                                                      const FindProfile &find) {
  return profiles::Chain(find).build(std::move(layer));
}

}  // namespace bulkhead
