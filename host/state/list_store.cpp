#include "state/list_store.hpp"

#include <sodium.h>

#include "base/archive.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "profile/archive.hpp"

namespace bulkhead::program {
namespace {

// Cannot collide with a server's file, because server names do not begin with a dot.
constexpr std::string_view key_name = ".key";
constexpr std::string_view file_head = "bulkhead lists 1\n";

}  // namespace

Result<std::string> ListStore::key() const {
  if (auto made = make_private_dir(folder_); !made) return std::unexpected(made.error());
  const std::string path = folder_ + "/" + std::string(key_name);
  auto there = read_private(path, crypto_generichash_KEYBYTES);
  if (there && there->size() == crypto_generichash_KEYBYTES) return there;
  if (!there && there.error().code != BH_E_NOT_FOUND) return std::unexpected(there.error());
  std::string key(crypto_generichash_KEYBYTES, '\0');
  randombytes_buf(key.data(), key.size());
  const auto how = there ? Existing::replace : Existing::keep;
  if (auto written = write_private(folder_, std::string(key_name), key, how); !written) {
    // Another gateway has created the key in the meantime.
    if (written.error().code == BH_E_DENIED) return read_private(path, key.size());
    return std::unexpected(written.error());
  }
  return key;
}

std::string ListStore::name_of(const ServerDef &definition, const std::string &key) {
  ArchiveWriter all;
  all(definition.to_json(), definition.allow_tools, definition.deny_tools);
  const std::string text = all.take();
  unsigned char hash[16];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char *>(text.data()),
                     text.size(), reinterpret_cast<const unsigned char *>(key.data()), key.size());
  char hex[2 * sizeof hash + 1];
  return sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
}

Result<KeptLists> ListStore::read(const std::string &server, const std::string &definition) const {
  KeptLists kept;
  kept.definition = definition;
  const std::string path = folder_ + "/" + server;
  const auto text = read_private(path, max_bytes);
  if (!text) {
    if (text.error().code == BH_E_NOT_FOUND) return kept;
    return std::unexpected(text.error());
  }
  KeptLists stored;
  if (!text->starts_with(file_head) ||
      !from_bytes(std::string_view(*text).substr(file_head.size()), &stored)) {
    return fail(BH_E_INVALID, path + " is damaged");
  }
  if (stored.definition != definition) return kept;
  for (KeptList &list : stored.lists) merge_kept_list(&kept, std::move(list));
  return kept;
}

Result<void> ListStore::write(const std::string &server, const KeptLists &lists) const {
  if (auto made = make_private_dir(folder_); !made) return made;
  return write_private(folder_, server, std::string(file_head) + to_bytes(lists));
}

void load_stored_lists(Profile *profile) {
  const ListStore store(profile->state_dir);
  std::string key;
  std::size_t bytes = 0;
  for (ServerDef &def : profile->servers) {
    if (def.disabled || def.session != SessionScope::shared) continue;
    if (key.empty()) {
      auto made = store.key();
      if (!made) {
        return profile->notes.push_back("server lists are not stored: " + made.error().text);
      }
      key = *std::move(made);
    }
    const std::string definition = ListStore::name_of(def, key);
    auto kept = store.read(def.name, definition);
    if (!kept) {
      profile->notes.push_back("server \"" + def.name +
                               "\" lists its tools only after it starts: " + kept.error().text);
      kept = KeptLists{definition, {}};
    }
    for (const KeptList &list : kept->lists) bytes += list.text.size();
    if (bytes > max_kept_lists_bytes) kept->lists.clear();
    def.kept = *std::move(kept);
  }
}

void load_existing_lists(Profile *profile) {
  const ListStore lists(profile->state_dir);
  if (::access(lists.folder().c_str(), R_OK) == 0) load_stored_lists(profile);
}

}  // namespace bulkhead::program
