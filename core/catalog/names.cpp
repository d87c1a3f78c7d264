#include "catalog/names.hpp"

#include <cstdint>
#include <cstdio>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t hash_chars = 10;

// Uses FNV-1a because std::hash may differ between builds and machines.
std::string hash_suffix(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(h));
  return std::string(hex, hash_chars);
}

}  // namespace

std::optional<std::string> Names::compose(std::string_view server,
                                          std::string_view original) const {
  std::string name;
  if (naming_.prefix) {
    name.append(server).append(naming_.separator);
  }
  name.append(original);
  if (name.size() <= naming_.max_length) return name;
  if (!naming_.shorten) return std::nullopt;
  const std::string hash = hash_suffix(name);
  const std::size_t room = naming_.max_length - hash_chars - 1;
  name.resize(bh::character_boundary(name, room));
  return name + "_" + hash;
}

std::string Names::compose_uri(std::string_view server, std::string_view original) const {
  if (!naming_.prefix) return std::string(original);
  std::string uri = naming_.scheme + "://";
  return uri.append(server).append("/").append(original);
}

std::optional<Names::Uri> Names::split_uri(std::string_view uri) const {
  if (!naming_.prefix || !uri.starts_with(naming_.scheme)) return std::nullopt;
  uri.remove_prefix(naming_.scheme.size());
  if (!uri.starts_with("://")) return std::nullopt;
  uri.remove_prefix(3);
  const std::size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return Uri{uri.substr(0, slash), uri.substr(slash + 1)};
}

std::string_view Names::aliased(std::string_view tool) const {
  const auto at = naming_.aliases.find(tool);
  return at == naming_.aliases.end() ? tool : std::string_view(at->second);
}

bool Names::may_be_of(std::string_view server, std::string_view name) const {
  if (!naming_.prefix) return true;
  const std::string prefix = std::string(server) + naming_.separator;
  if (name.starts_with(prefix)) return true;
  // The name may have been truncated. compose() cuts at a character boundary, which can be up to
  // three bytes before the limit, and it may cut inside the prefix.
  constexpr std::size_t tail = hash_chars + 1, longest_cut = 3;
  if (name.size() < tail || name.size() + longest_cut < naming_.max_length) return false;
  return prefix.starts_with(name.substr(0, name.size() - tail));
}

bool Names::uri_may_be_of(std::string_view server, std::string_view uri) const {
  if (const auto split = split_uri(uri)) return split->server == server;
  return !naming_.prefix || !uri.starts_with(naming_.scheme + "://");
}

std::string_view Names::server_of(std::string_view name) const {
  if (!naming_.prefix) return {};
  const std::size_t at = name.find(naming_.separator);
  return at == std::string_view::npos ? std::string_view{} : name.substr(0, at);
}

}  // namespace bulkhead
