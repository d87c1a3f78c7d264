#include "plugin/entry_check.hpp"

#include <algorithm>
#include <cstring>

#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_plugins_per_library = 64;
constexpr std::size_t max_provides = 64;
constexpr std::uint64_t max_schema_bytes = 1u << 20;

std::string text_of(bh_str s, std::uint64_t max_bytes) {
  return s.p == nullptr ? std::string() : bh::one_line({s.p, std::min(s.n, max_bytes)}, max_bytes);
}

Result<PluginDescription> check_descriptor(const bh_descriptor *d, std::uint32_t i) {
  const std::string which = "descriptor " + std::to_string(i);
  if (d == nullptr) return fail(BH_E_ABI, which + " is missing");
  if (!BH_HAS(bh_descriptor, d, provides)) return fail(BH_E_ABI, which + " is too short");
  if (d->flags != 0) return fail(BH_E_ABI, which + " has unknown flags");
  PluginDescription out;
  if (d->id != nullptr) out.id.assign(d->id, ::strnlen(d->id, 65));
  if (!is_plain_name(out.id)) {
    return fail(BH_E_ABI,
                which + " has an invalid id: use 1 to 64 characters from a-z, 0-9 and '-'");
  }
  if (d->provides == nullptr) return fail(BH_E_ABI, which + " provides nothing");
  for (std::size_t n = 0; d->provides[n] != nullptr; ++n) {
    if (n == max_provides) return fail(BH_E_ABI, which + " provides more than 64 extensions");
    out.provides.push_back(bh::one_line({d->provides[n], ::strnlen(d->provides[n], 128)}, 128));
  }
  if (BH_HAS(bh_descriptor, d, name)) out.name = text_of(d->name, 256);
  if (BH_HAS(bh_descriptor, d, version)) out.version = text_of(d->version, 256);
  if (BH_HAS(bh_descriptor, d, vendor)) out.vendor = text_of(d->vendor, 256);
  if (BH_HAS(bh_descriptor, d, config_schema)) {
    if (d->config_schema.n > max_schema_bytes) {
      return fail(BH_E_LIMIT, which + " has a config_schema larger than 1 MiB");
    }
    if (d->config_schema.p != nullptr) {
      out.config_schema.assign(d->config_schema.p, d->config_schema.n);
    }
  }
  return out;
}

}  // namespace

std::string abi_version(std::uint32_t major, std::uint32_t minor, std::uint32_t candidate) {
  return std::to_string(major) + "." + std::to_string(minor) +
         (candidate == 0 ? "" : "-rc" + std::to_string(candidate));
}

Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed) {
  const std::string own = abi_version(BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC);
  if (major != BH_ABI_MAJOR) {
    return fail(BH_E_ABI, "uses plugin ABI " + std::to_string(major) +
                              ".x, but this Bulkhead uses " + own +
                              "; rebuild the plugin with the SDK of this Bulkhead");
  }
  if (minor_needed > BH_ABI_MINOR) {
    return fail(BH_E_ABI, "requires plugin ABI " + abi_version(major, minor_needed) +
                              " or later, but this Bulkhead offers " + own +
                              "; use a newer Bulkhead, or rebuild the plugin with SDK " +
                              abi_version(BH_ABI_MAJOR, BH_ABI_MINOR));
  }
  return {};
}

Result<void> check_candidate(const bh_entry &entry) {
  if (entry.abi_rc == BH_ABI_RC) return {};
  return fail(BH_E_ABI,
              "was built for plugin ABI " +
                  abi_version(entry.abi_major, entry.abi_minor_built, entry.abi_rc) +
                  ", but this Bulkhead uses " + abi_version(BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC) +
                  "; a release candidate is compatible only with itself: rebuild the plugin with "
                  "the SDK of this Bulkhead");
}

Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry) {
  if (entry == nullptr) return fail(BH_E_ABI, "returned no entry");
  if (!BH_HAS(bh_entry, entry, abi_minor_needed))
    return fail(BH_E_ABI, "returned an entry that is too short");
  // The versions must be checked before the other members, whose layout depends on the major
  // version.
  if (const auto abi = check_abi(entry->abi_major, entry->abi_minor_needed); !abi) {
    return std::unexpected(abi.error());
  }
  if (!BH_HAS(bh_entry, entry, create))
    return fail(BH_E_ABI, "returned an entry that is too short");
  if (const auto same = check_candidate(*entry); !same) return std::unexpected(same.error());
  if (entry->init == nullptr || entry->deinit == nullptr || entry->descriptor == nullptr ||
      entry->create == nullptr) {
    return fail(BH_E_ABI,
                "lacks at least one of the functions init, deinit, descriptor and create");
  }
  if (entry->count == 0 || entry->count > max_plugins_per_library) {
    return fail(BH_E_ABI,
                "declares " + std::to_string(entry->count) + " plugins; 1 to 64 are allowed");
  }
  std::vector<PluginDescription> plugins;
  for (std::uint32_t i = 0; i < entry->count; ++i) {
    auto one = check_descriptor(entry->descriptor(i), i);
    if (!one) return std::unexpected(one.error());
    const auto same = [&](const PluginDescription &p) { return p.id == one->id; };
    if (std::any_of(plugins.begin(), plugins.end(), same)) {
      return fail(BH_E_ABI, "has two descriptors with the id " + one->id);
    }
    plugins.push_back(std::move(*one));
  }
  return plugins;
}

}  // namespace bulkhead
