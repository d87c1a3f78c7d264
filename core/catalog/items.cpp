#include "catalog/items.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdio>

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/description_audit.hpp"
#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead {
namespace {

constexpr ItemKindFacts kind_facts[item_kinds] = {
    {mcp::Method::tools_list, "tools/list", "tools", "name", "tool"},
    {mcp::Method::resources_list, "resources/list", "resources", "uri", "resource"},
    {mcp::Method::resources_templates_list, "resources/templates/list", "resourceTemplates",
     "uriTemplate", "resource template"},
    {mcp::Method::prompts_list, "prompts/list", "prompts", "name", "prompt"}};

bool hidden(const ServerDef &definition, std::string_view tool) {
  const auto holds = [tool](const std::vector<std::string> &list) {
    return std::find(list.begin(), list.end(), tool) != list.end();
  };
  if (holds(definition.deny_tools)) return true;
  return definition.allow_tools.has_value() && !holds(*definition.allow_tools);
}

// A hidden character at the start of a string, and its size in bytes.
struct Hidden {
  char32_t code = 0;
  std::size_t size = 0;
};
std::optional<Hidden> hidden_at(std::string_view text) {
  std::size_t size = 0;
  const char32_t code = bh::first_character(text, &size);
  if (!mcp::hidden_character(code)) return std::nullopt;
  return Hidden{code, size};
}

bool has_hidden(std::string_view name) {
  for (; !name.empty(); name.remove_prefix(1)) {
    if (hidden_at(name)) return true;
  }
  return false;
}

std::string without_hidden(std::string_view name) {
  std::string out;
  constexpr std::size_t longest_character = 4;
  while (!name.empty() && out.size() < ItemList::max_shown_name + longest_character) {
    const std::optional<Hidden> found = hidden_at(name);
    if (!found) {
      out += name.front();
    } else {
      bh::json::append_escaped(&out, found->code);
    }
    name.remove_prefix(found ? found->size : 1);
  }
  return std::string(bh::cut_text(out, ItemList::max_shown_name));
}

void note_name(std::string_view name, std::vector<std::string> *names) {
  if (names->size() >= ItemList::max_left_out) return;
  std::string shown = without_hidden(name);
  if (std::find(names->begin(), names->end(), shown) == names->end()) {
    names->push_back(std::move(shown));
  }
}

bool is_ambiguous(std::string_view item) {
  std::vector<std::uint64_t> names;
  mcp::for_each_member(item, [&](std::string_view key, std::string_view) {
    names.push_back(mcp::json::folded_hash_slow(key.substr(1, key.size() - 2)));
  });
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

struct Appending {
  ItemKind kind;
  const ServerDef &definition;
  const Limits &limits;
  ItemList *out;
  std::string scratch;
  bool over = false;
};

bool append_item(void *arg, std::string_view raw) {
  auto &a = *static_cast<Appending *>(arg);
  if (raw.empty() || raw.front() != '{') return true;
  const std::string_view key = mcp::member(raw, facts(a.kind).key);
  if (key.size() <= 2 || key.front() != '"') return true;
  const std::string_view name = mcp::unquote(key, &a.scratch);
  if (a.kind == ItemKind::tool && hidden(a.definition, name)) return true;
  if (has_hidden(name)) {
    note_name(name, &a.out->left_out);
    return true;
  }
  if (is_ambiguous(raw)) {
    note_name(name, &a.out->ambiguous);
    return true;
  }
  if (a.out->items.size() >= a.limits.items_per_server ||
      a.out->bytes.size() + raw.size() > a.limits.list_bytes_per_server) {
    a.over = true;
    return false;
  }
  const auto at = static_cast<std::uint32_t>(a.out->bytes.size());
  const auto key_at = at + static_cast<std::uint32_t>(key.data() - raw.data());
  a.out->bytes.append(raw);
  a.out->items.push_back({{at, at + static_cast<std::uint32_t>(raw.size())},
                          {key_at, key_at + static_cast<std::uint32_t>(key.size())},
                          definition_hash(raw)});
  return true;
}

struct Page {
  std::string_view items, cursor;
};

// Finds the items and the cursor in a single pass, because the items make up most of the result. If
// a member occurs twice, the first occurrence is used.
Page page_of(ItemKind kind, std::string_view result) {
  struct Looking {
    std::string_view member;
    Page page;
  } looking{facts(kind).member, {}};
  const auto take = [](void *arg, std::string_view key, std::string_view value) {
    auto &l = *static_cast<Looking *>(arg);
    key = key.substr(1, key.size() - 2);
    if (l.page.items.empty() && mcp::json::same_text(key, l.member)) l.page.items = value;
    if (l.page.cursor.empty() && mcp::json::same_text(key, "nextCursor")) l.page.cursor = value;
    return true;
  };
  if (result.starts_with('{')) mcp::for_each_member(result, &looking, take);
  return looking.page;
}

}  // namespace

DefinitionHash definition_hash(std::string_view raw) {
  DefinitionHash hash;
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char *>(raw.data()),
                     raw.size(), nullptr, 0);
  return hash;
}

std::string to_hex(const DefinitionHash &hash) {
  return bh::hex({reinterpret_cast<const char *>(hash.data()), hash.size()});
}

const ItemKindFacts &facts(ItemKind kind) noexcept {
  return kind_facts[static_cast<std::size_t>(kind)];
}

Result<std::optional<std::string>> append_page(ItemKind kind, std::string_view result,
                                               const ServerDef &definition, const Limits &limits,
                                               ItemList *out) {
  const auto [array, cursor] = page_of(kind, result);
  if (array.empty() || array.front() != '[') {
    return fail(BH_E_PROTOCOL, std::string(facts(kind).list_method_text) +
                                   " returned a result without a \"" +
                                   std::string(facts(kind).member) + "\" array");
  }
  Appending appending{kind, definition, limits, out, {}, false};
  mcp::for_each_item(array, &appending, append_item);
  if (appending.over) {
    return fail(BH_E_LIMIT,
                "lists more than " + std::to_string(limits.items_per_server) + " " +
                    std::string(facts(kind).noun) + "s or " +
                    std::to_string(limits.list_bytes_per_server) +
                    " bytes in total (limits.items_per_server, limits.list_bytes_per_server)");
  }
  if (cursor.empty() || cursor.front() != '"') return std::nullopt;
  return std::string(cursor);
}

const ItemList::Item *ItemList::find(const DefinitionHash &definition, std::size_t at) const {
  if (at < items.size() && items[at].hash == definition) return &items[at];
  const auto found = std::find_if(items.begin(), items.end(), [&definition](const Item &item) {
    return item.hash == definition;
  });
  return found == items.end() ? nullptr : &*found;
}

const ItemList::Item *ItemList::find_named(std::string_view name) const {
  std::string scratch;
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item &item) {
    return mcp::unquote(item.key.in(bytes), &scratch) == name;
  });
  return found == items.end() ? nullptr : &*found;
}

bool hide_tools(const ServerDef &definition, ItemList *tools) {
  std::string scratch;
  return remove_items(tools, [&](const ItemList::Item &item) {
    return hidden(definition, mcp::unquote(item.key.in(tools->bytes), &scratch));
  });
}

bool remove_items(ItemList *list, const std::function<bool(const ItemList::Item &)> &which) {
  ItemList kept;
  for (const ItemList::Item &item : list->items) {
    if (which(item)) continue;
    const auto at = static_cast<std::uint32_t>(kept.bytes.size());
    const std::uint32_t key_at = at + (item.key.begin - item.raw.begin);
    kept.bytes.append(item.raw.in(list->bytes));
    kept.items.push_back({{at, static_cast<std::uint32_t>(kept.bytes.size())},
                          {key_at, key_at + static_cast<std::uint32_t>(item.key.size())},
                          item.hash});
  }
  if (kept.items.size() == list->items.size()) return false;
  kept.left_out = std::move(list->left_out);
  kept.ambiguous = std::move(list->ambiguous);
  *list = std::move(kept);
  return true;
}

}  // namespace bulkhead
