#include "trust/quarantine.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/file_mark.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin_base/load_options.hpp"
#include "trust/plugin_log.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_list_bytes = 1u << 20;
constexpr std::size_t max_reason_bytes = 512;
constexpr const char *list_name = "list.json";

}  // namespace

Result<std::vector<QuarantinedPlugin>> Quarantine::read() const {
  std::vector<QuarantinedPlugin> out;
  const std::string path = folder_ + "/" + list_name;
  const auto text = read_private(path, max_list_bytes);
  if (!text && text.error().code == BH_E_NOT_FOUND) return out;
  if (!text) return std::unexpected(text.error());
  if (!text->starts_with('[') || !mcp::valid_json(*text))
    return fail(BH_E_INVALID,
                path + " is damaged; remove it to lift the quarantine of all plugins");
  mcp::for_each_item(*text, [&](std::string_view item) {
    QuarantinedPlugin entry;
    entry.sha256 = bh::json::member_text(item, "sha256");
    entry.id = bh::json::member_text(item, "id");
    entry.version = bh::json::member_text(item, "version");
    entry.reason = bh::json::member_text(item, "reason");
    const std::string_view at = mcp::member(item, "at");
    std::from_chars(at.data(), at.data() + at.size(), entry.at);
    if (!entry.sha256.empty()) out.push_back(std::move(entry));
  });
  return out;
}

Result<void> Quarantine::write(const std::vector<QuarantinedPlugin> &entries) const {
  std::string text = "[";
  for (const QuarantinedPlugin &entry : entries) {
    text += text.size() > 1 ? ",\n{" : "\n{";
    bh::json::append_member(&text, "sha256", entry.sha256);
    bh::json::append_member(&text, "id", entry.id);
    bh::json::append_member(&text, "version", entry.version);
    bh::json::append_member(&text, "reason", bh::one_line(entry.reason, max_reason_bytes));
    bh::json::append_member(&text, "at", entry.at);
    text += '}';
  }
  return write_private(folder_, list_name, text + "\n]\n");
}

Result<void> Quarantine::add(QuarantinedPlugin entry) {
  if (auto made = make_private_dir(folder_); !made) return made;
  const auto lock = lock_file(folder_ + "/lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  auto entries = read();
  if (!entries) return std::unexpected(entries.error());
  std::erase_if(*entries, [&](const QuarantinedPlugin &old) { return old.sha256 == entry.sha256; });
  entries->push_back(std::move(entry));
  if (entries->size() > max_entries) entries->erase(entries->begin());
  return write(*entries);
}

Result<std::vector<QuarantinedPlugin>> Quarantine::clear(const std::string &digest_or_id) {
  std::vector<QuarantinedPlugin> removed;
  auto entries = read();
  if (!entries || entries->empty()) return entries;
  const auto lock = lock_file(folder_ + "/lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  entries = read();
  if (!entries) return entries;
  std::erase_if(*entries, [&](const QuarantinedPlugin &entry) {
    const bool same = entry.sha256 == digest_or_id || entry.id == digest_or_id;
    if (same) removed.push_back(entry);
    return same;
  });
  if (auto written = write(*entries); !written) return std::unexpected(written.error());
  return removed;
}

Result<QuarantinedPlugin> quarantine_plugin(const Profile &profile, const PluginUse &plugin,
                                            const std::string &reason) {
  const auto checked = Library::check(library_of(plugin), load_options(profile, plugin));
  if (!checked) return std::unexpected(checked.error());
  const bool same = plugin.file.mark.empty() || !plugin.file.path.empty() ||
                    file_mark(checked->status) == plugin.file.mark;
  if (!same) return fail(BH_E_UNAVAILABLE, "its file has been replaced since it was loaded");
  QuarantinedPlugin out;
  out.id = checked->manifest.id;
  out.version = checked->manifest.version;
  out.reason = reason;
  out.at = bh::unix_ms();
  if (checked->trusted_by_place || plugin.file.is_program_copy) return out;
  const auto digest = sha256_of(checked->fd());
  if (!digest) return std::unexpected(digest.error());
  if (auto added =
          Quarantine(profile.state_dir).add({*digest, out.id, out.version, reason, out.at});
      !added) {
    return std::unexpected(added.error());
  }
  out.sha256 = *digest;
  // The list decides; the log is for people.
  static_cast<void>(PluginLog(profile.state_dir)
                        .append({out.at, "quarantine", out.id, out.version, out.sha256,
                                 checked->signer, reason}));
  return out;
}

void add_quarantine(Profile *profile) {
  const auto entries = Quarantine(profile->state_dir).read();
  if (!entries) {
    profile->notes.push_back("no plugin is quarantined: " + entries.error().text);
    return;
  }
  for (const QuarantinedPlugin &entry : *entries)
    profile->plugin_trust.quarantined.push_back(entry.sha256);
}

}  // namespace bulkhead::program
