#include "state/pin_store.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "catalog/items.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view file_name = "pins.json";

// ---- serialization ---------------------------------------------------------------------------

void put(std::string *out, std::string_view key, std::string_view value) {
  if (!value.empty()) bh::json::append_member(out, key, value);
}

void put(std::string *out, std::string_view key, std::uint64_t value) {
  if (value != 0) bh::json::append_member(out, key, value);
}

std::string text_of(const StoredPin &pin) {
  std::string out = "{";
  put(&out, "file", pin.file);
  put(&out, "server", pin.pin.server);
  put(&out, "tool", pin.pin.tool);
  put(&out, "hash", pin.pin.hash);
  put(&out, "shape", pin.pin.shape);
  put(&out, "seen", pin.pin.seen);
  put(&out, "seen_shape", pin.pin.seen_shape);
  put(&out, "renamed_from", pin.pin.renamed_from);
  put(&out, "text", pin.text);
  put(&out, "seen_text", pin.seen_text);
  put(&out, "definition", pin.definition);
  put(&out, "seen_definition", pin.seen_definition);
  put(&out, "first_seen", pin.first_seen);
  put(&out, "seen_at", pin.seen_at);
  put(&out, "approved_at", pin.approved_at);
  return out + "}";
}

bool is_hash(std::string_view text) {
  return text.empty() || (text.size() == 32 && bh::is_lower_hex(text));
}

// Returns true if the fields have values that this program could have written.
bool sound(const ToolPin &pin) {
  return !pin.server.empty() && !pin.tool.empty() && pin.tool.size() <= max_pin_name_bytes &&
         pin.renamed_from.size() <= max_pin_name_bytes && is_hash(pin.hash) && is_hash(pin.shape) &&
         is_hash(pin.seen) && is_hash(pin.seen_shape) && !(pin.hash.empty() && pin.seen.empty());
}

// Returns a pointer to the string member for a JSON key, or null if there is none.
std::string *text_member(StoredPin *pin, std::string_view key) {
  if (key == "file") return &pin->file;
  if (key == "server") return &pin->pin.server;
  if (key == "tool") return &pin->pin.tool;
  if (key == "hash") return &pin->pin.hash;
  if (key == "shape") return &pin->pin.shape;
  if (key == "seen") return &pin->pin.seen;
  if (key == "seen_shape") return &pin->pin.seen_shape;
  if (key == "renamed_from") return &pin->pin.renamed_from;
  if (key == "text") return &pin->text;
  if (key == "seen_text") return &pin->seen_text;
  if (key == "definition") return &pin->definition;
  return key == "seen_definition" ? &pin->seen_definition : nullptr;
}

std::uint64_t *number_member(StoredPin *pin, std::string_view key) {
  if (key == "first_seen") return &pin->first_seen;
  if (key == "seen_at") return &pin->seen_at;
  return key == "approved_at" ? &pin->approved_at : nullptr;
}

// Returns the definition if it has this hash, and an empty string otherwise. This ensures that the
// definition that the user reviews is the one whose hash the user approves.
std::string matching_definition(const std::string &definition, const std::string &hash) {
  const bool same = mcp::valid_json(definition) && to_hex(definition_hash(definition)) == hash;
  return same ? definition : std::string();
}

// Returns the description of a tool definition, truncated to max_pin_text_bytes at a character
// boundary.
std::string description_of(std::string_view definition) {
  const std::string_view token =
      definition.starts_with('{') ? mcp::member(definition, "description") : std::string_view();
  if (!token.starts_with('"')) return {};
  std::string scratch;
  return std::string(bh::cut_text(mcp::unquote(token, &scratch), max_pin_text_bytes));
}

// Clears definitions where necessary to keep their total size within max_definition_bytes.
void limit_definitions(std::vector<StoredPin> *pins) {
  std::size_t bytes = 0;
  for (StoredPin &pin : *pins) {
    for (std::string *definition : {&pin.seen_definition, &pin.definition}) {
      const std::size_t size = bh::json::quoted(*definition).size();
      if (bytes + size > PinStore::max_definition_bytes) {
        definition->clear();
      } else {
        bytes += size;
      }
    }
  }
}

// Parses a pin in one pass over its members, because all pins are read at startup.
StoredPin pin_of(std::string_view object) {
  StoredPin out;
  mcp::for_each_member(object, [&out](std::string_view key, std::string_view value) {
    key = key.substr(1, key.size() - 2);
    if (std::string *text = text_member(&out, key); text != nullptr && value.starts_with('"')) {
      std::string scratch;
      *text = mcp::unquote(value, &scratch);
    } else if (std::uint64_t *number = number_member(&out, key); number != nullptr) {
      std::from_chars(value.data(), value.data() + value.size(), *number);
    }
  });
  return out;
}

// ---- definitions received from servers -------------------------------------------------------

struct KeyLess {
  bool operator()(const StoredPin *a, const StoredPin *b) const {
    return std::tie(a->file, a->pin.server, a->pin.tool) <
           std::tie(b->file, b->pin.server, b->pin.tool);
  }
};

void apply_seen(const PinNews &news, StoredPin *pin) {
  // A gateway that does not know of any approved definition of this tool reports the current
  // definition as approved. Here, it is only recorded as seen.
  const bool by_itself = news.pin.seen.empty() && news.pin.hash != pin->pin.hash;
  pin->pin.seen = by_itself ? news.pin.hash : news.pin.seen;
  pin->pin.seen_shape = by_itself ? news.pin.shape : news.pin.seen_shape;
  // A gateway that does not know about an approval yet reports the approved definition as changed.
  if (pin->pin.seen == pin->pin.hash) {
    pin->pin.seen.clear();
    pin->pin.seen_shape.clear();
  }
  pin->pin.renamed_from = pin->pin.approved() ? std::string() : news.pin.renamed_from;
  pin->seen_definition = matching_definition(news.definition, pin->pin.seen);
  pin->seen_text = description_of(pin->seen_definition);
  pin->seen_at = bh::unix_s();
  // Files written by earlier versions contain no definitions, so the approved definition is added.
  if (pin->pin.approved() && pin->definition.empty()) {
    pin->definition = matching_definition(news.definition, pin->pin.hash);
  }
}

StoredPin fresh(const PinNews &news, const std::string &file, bool may_approve) {
  StoredPin pin;
  pin.file = file;
  pin.pin.server = news.pin.server;
  pin.pin.tool = news.pin.tool;
  pin.first_seen = bh::unix_s();
  if (news.pin.hash.empty() || !may_approve) {
    apply_seen(news, &pin);
    return pin;
  }
  pin.pin = news.pin;
  pin.approved_at = pin.first_seen;
  pin.definition = matching_definition(news.definition, pin.pin.hash);
  pin.text = description_of(pin.definition);
  pin.seen_definition = matching_definition(news.definition, pin.pin.seen);
  pin.seen_text = description_of(pin.seen_definition);
  return pin;
}

}  // namespace

PinTerms pin_terms(const Profile &profile) {
  PinTerms terms;
  terms.accept_new = profile.pins.accept_new;
  for (const ServerDef &def : profile.servers) {
    const std::string &file = def.origin.file;
    terms.files[def.name] =
        file.empty() ? "" : std::filesystem::absolute(file).lexically_normal().string();
    terms.first_use.insert(def.name);
  }
  for (const ToolPin &pin : profile.pinned) {
    if (!pin.hash.empty()) terms.first_use.erase(pin.server);
  }
  return terms;
}

Result<std::vector<StoredPin>> PinStore::read() const {
  std::vector<StoredPin> out;
  const std::string path = folder_ + "/" + std::string(file_name);
  auto text = read_private(path, max_bytes);
  if (!text) {
    if (text.error().code == BH_E_NOT_FOUND) return out;
    return std::unexpected(text.error());
  }
  const std::string_view list =
      mcp::valid_json(*text) ? mcp::member(*text, "pins") : std::string_view();
  if (!list.starts_with('[')) return fail(BH_E_INVALID, path + " is not a list of pins");
  mcp::for_each_item(list, [&out](std::string_view item) { out.push_back(pin_of(item)); });
  const bool good =
      std::all_of(out.begin(), out.end(), [](const StoredPin &pin) { return sound(pin.pin); });
  if (!good) return fail(BH_E_INVALID, path + " has an invalid entry");
  return out;
}

std::vector<ToolPin> PinStore::known(const std::vector<StoredPin> &all, const PinTerms &terms) {
  std::vector<ToolPin> out;
  for (const StoredPin &pin : all) {
    const auto at = terms.files.find(pin.pin.server);
    if (at != terms.files.end() && at->second == pin.file) out.push_back(pin.pin);
  }
  return out;
}

Result<std::vector<StoredPin>> PinStore::update(
    const std::function<bool(std::vector<StoredPin> &)> &change) const {
  if (auto made = make_private_dir(folder_); !made) return std::unexpected(made.error());
  const auto lock = lock_file(folder_ + "/lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  auto pins = read();
  if (!pins || !change(*pins)) return pins;
  limit_definitions(&*pins);
  std::string text = R"({"pins":[)";
  for (const StoredPin &pin : *pins) text += (text.ends_with('[') ? "\n" : ",\n") + text_of(pin);
  text += "\n]}\n";
  const std::string path = folder_ + "/" + std::string(file_name);
  if (text.size() > max_bytes) {
    return fail(BH_E_LIMIT, path + " would be larger than " + std::to_string(max_bytes) +
                                " bytes; remove pins with `bulkhead pins forget`");
  }
  if (!mcp::valid_json(text)) return fail(BH_E_INVALID, path + " would not be valid JSON");
  if (auto written = write_private(folder_, std::string(file_name), text); !written) {
    return std::unexpected(written.error());
  }
  return pins;
}

Result<std::vector<StoredPin>> PinStore::merge(const std::vector<PinNews> &news,
                                               const PinTerms &terms) const {
  return update([&](std::vector<StoredPin> &pins) {
    std::set<StoredPin *, KeyLess> by_key;
    for (StoredPin &pin : pins) by_key.insert(&pin);
    std::vector<StoredPin> added;
    bool changed = false;
    for (const PinNews &one : news) {
      const auto file = terms.files.find(one.pin.server);
      if (file == terms.files.end() || !sound(one.pin) ||
          one.definition.size() > max_pin_definition_bytes) {
        continue;
      }
      changed = true;
      StoredPin key;
      key.file = file->second;
      key.pin = one.pin;
      if (const auto at = by_key.find(&key); at != by_key.end()) {
        apply_seen(one, *at);
        continue;
      }
      const bool may_approve = terms.first_use.contains(one.pin.server) ||
                               (terms.accept_new && one.pin.renamed_from.empty());
      added.push_back(fresh(one, file->second, may_approve));
    }
    for (StoredPin &pin : added) pins.push_back(std::move(pin));
    return changed;
  });
}

}  // namespace bulkhead::program
