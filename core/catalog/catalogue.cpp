#include "catalog/catalogue.hpp"

#include <algorithm>
#include <atomic>

#include "bulkhead/cpp/json_writer.hpp"
#include "catalog/header_annotations.hpp"
#include "catalog/session_schemas.hpp"

namespace bulkhead {
namespace {

// Encodes a composed name as a JSON string token. If the composed name ends with the original name,
// that part is copied from `original_token`, so its escape sequences are preserved.
std::string compose_token(std::string_view composed, std::string_view original,
                          std::string_view original_token) {
  std::string token;
  if (composed.ends_with(original)) {
    bh::json::append_quoted(&token, composed.substr(0, composed.size() - original.size()));
    token.pop_back();
    return token.append(original_token.substr(1));
  }
  bh::json::append_quoted(&token, composed);
  return token;
}

std::optional<std::string> compose_name(ItemKind kind, const Names &names, std::string_view server,
                                        std::string_view original) {
  const bool is_uri = kind == ItemKind::resource || kind == ItemKind::resource_template;
  return is_uri ? names.compose_uri(server, original) : names.compose(server, original);
}

bool is_named_after(std::string_view name, std::string_view server, const Naming &naming) {
  return name.starts_with(server) && name.substr(server.size()).starts_with(naming.separator);
}

// Returns the server, other than `own`, for which this name is reserved because it has that
// server's prefix. Returns an empty view if there is none.
std::string_view owner_of(std::string_view name, std::string_view own,
                          const std::vector<CatalogueSource> &sources, const Naming &naming) {
  if (!naming.prefix) return {};
  for (const CatalogueSource &source : sources) {
    if (source.server != own && is_named_after(name, source.server, naming)) return source.server;
  }
  return {};
}

// Returns true if a tool with this name may appear later, because a server that could list it is
// down or has not listed its tools yet.
bool may_come(std::string_view tool, const std::vector<CatalogueSource> &sources,
              const Naming &naming) {
  return std::any_of(sources.begin(), sources.end(), [&](const CatalogueSource &source) {
    return !source.up && (!naming.prefix || is_named_after(tool, source.server, naming));
  });
}

}  // namespace

bool CatalogueSource::known() const {
  return up || std::any_of(lists.begin(), lists.end(), [](const ItemList *list) {
           return list != nullptr && !list->items.empty();
         });
}

std::string quoted_list(const std::vector<std::string_view> &servers) {
  std::string text;
  for (const std::string_view server : servers) {
    text.append(text.empty() ? "\"" : ", \"").append(server).append("\"");
  }
  return text;
}

Catalogue Catalogue::build(const std::vector<CatalogueSource> &sources, const Names &names,
                           const Keep &keep) {
  static std::atomic<std::uint64_t> last_version = 0;
  Catalogue catalogue;
  catalogue.version_ = ++last_version;
  for (const CatalogueSource &source : sources) catalogue.servers_.emplace_back(source.server);
  if (!names.naming().prefix && sources.size() > 1) {
    for (const ItemKind kind : all_item_kinds) catalogue.find_held(kind, sources, names);
  }
  for (const ItemKind kind : all_item_kinds) catalogue.reserve(kind, sources);
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    for (const ItemKind kind : all_item_kinds) catalogue.add(kind, i, sources[i], names, keep);
  }
  catalogue.add_aliases(sources, names);
  for (List &list : catalogue.lists_) {
    list.bytes.shrink_to_fit();
    list.ends.shrink_to_fit();
  }
  catalogue.session_tools_.bytes.shrink_to_fit();
  catalogue.session_tools_.ends.shrink_to_fit();
  return catalogue;
}

// Reserves memory for all items, including the prefixes that are added to their names.
void Catalogue::reserve(ItemKind kind, const std::vector<CatalogueSource> &sources) {
  const auto k = static_cast<std::size_t>(kind);
  std::size_t bytes = 0, items = 0;
  for (const CatalogueSource &source : sources) {
    const ItemList *list = source.lists[k];
    if (list == nullptr) continue;
    bytes += list->bytes.size() + list->items.size() * (source.server.size() + 4);
    items += list->items.size();
  }
  lists_[k].bytes.reserve(bytes);
  lists_[k].ends.reserve(items);
  maps_[k].reserve(items);
}

// Finds the names that do not resolve: names that several servers list, and names listed by a
// server that is down. Items that the policy hides from these clients are included, because hiding
// an item must not change which server a name resolves to.
void Catalogue::find_held(ItemKind kind, const std::vector<CatalogueSource> &sources,
                          const Names &names) {
  const auto k = static_cast<std::size_t>(kind);
  Holders &held = held_[k];
  std::string scratch;
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    const ItemList *items = sources[i].lists[k];
    if (items == nullptr) continue;
    for (const ItemList::Item &item : items->items) {
      const std::string_view original = mcp::unquote(item.key.in(items->bytes), &scratch);
      const auto name = compose_name(kind, names, sources[i].server, original);
      if (!name.has_value()) continue;
      std::vector<std::uint32_t> &holders = held[*name];
      if (holders.empty() || holders.back() != i) holders.push_back(i);
    }
  }
  std::erase_if(held, [&](const auto &entry) {
    return entry.second.size() == 1 && sources[entry.second.front()].up;
  });
}

void Catalogue::add(ItemKind kind, std::uint32_t source, const CatalogueSource &from,
                    const Names &names, const Keep &keep) {
  const auto k = static_cast<std::size_t>(kind);
  const ItemList *items = from.lists[k];
  if (items == nullptr) return;
  Map &map = maps_[k];
  std::string scratch, text;
  const auto note = [&](const std::string &name, const std::string &why) {
    note_collision(std::string(facts(kind).noun) + " \"" + name + "\" of server \"" +
                   std::string(from.server) + "\" is not offered: " + why);
  };
  for (const std::string &name : items->left_out) {
    note(name, "its " + std::string(facts(kind).key) + " contains control or invisible characters");
  }
  for (const std::string &name : items->ambiguous) {
    note(name, "two of its members have the same name (ignoring case)");
  }
  for (std::uint32_t number = 0; number < items->items.size(); ++number) {
    const auto &item = items->items[number];
    const std::string_view raw = item.raw.in(items->bytes);
    const std::string_view token = item.key.in(items->bytes);
    if (from.up && keep && !keep(kind, source, token, raw)) continue;
    const std::string_view original = mcp::unquote(token, &scratch);
    const std::string label = std::string(facts(kind).noun) + " \"";
    const std::optional<std::string> composed = compose_name(kind, names, from.server, original);
    if (!composed.has_value()) {
      note_collision(label + std::string(original) + "\" of server \"" + std::string(from.server) +
                     "\" is not offered: its name with the server prefix would be too long");
      continue;
    }
    if (!from.up && kind == ItemKind::tool && names.naming().aliases.contains(*composed)) {
      unavailable_aliases_.insert(*composed);
    }
    const auto held = held_[k].find(*composed);
    const bool offered = from.up && held == held_[k].end();
    if (kind == ItemKind::resource_template && (from.up || held != held_[k].end())) {
      templates_.push_back({std::string(original.substr(0, original.find('{'))), source});
    }
    if (!offered) {
      if (held != held_[k].end() && held->second.size() > 1 && held->second.front() == source) {
        note_collision(label + *composed + "\" is not offered: servers " +
                       quoted_list(holders(kind, *composed)) + " have a " +
                       std::string(facts(kind).noun) + " with this name");
      }
      continue;
    }
    const auto [at, fresh] =
        map.try_emplace(*composed, Resolved{source, std::string(token), item.hash, kind, number});
    if (!fresh) {
      note_collision(label + *composed + "\" of server \"" + std::string(from.server) +
                     "\" is not offered: server \"" + servers_[at->second.source] + "\" has a " +
                     std::string(facts(kind).noun) + " with the same name");
      continue;
    }
    if (kind == ItemKind::resource) originals_[std::string(original)].push_back(source);
    const std::size_t key_at = item.key.begin - item.raw.begin;
    text.assign(raw.substr(0, key_at));
    text.append(compose_token(*composed, original, token));
    text.append(raw.substr(key_at + item.key.size()));
    kind == ItemKind::tool ? append_tool(text) : lists_[k].append(text);
  }
}

// The list for clients with a session is created at the first tool that differs, as a copy of the
// list for all clients.
void Catalogue::append_tool(std::string_view tool) {
  List &all = lists_[static_cast<std::size_t>(ItemKind::tool)];
  const std::optional<std::string> for_sessions = without_foreign_schemas(tool);
  const std::optional<std::string> for_others = without_invalid_headers(tool);
  const bool differs = for_sessions.has_value() || for_others.has_value();
  if (differs && !has_session_tools()) session_tools_ = all;
  if (differs || has_session_tools()) {
    session_tools_.append(for_sessions.has_value() ? std::string_view(*for_sessions) : tool);
  }
  all.append(for_others.has_value() ? std::string_view(*for_others) : tool);
}

void Catalogue::List::append(std::string_view item) {
  if (!ends.empty()) bytes += ',';
  bytes.append(item);
  ends.push_back(static_cast<std::uint32_t>(bytes.size()));
}

// Adds the aliases. An alias is never added if it would shadow a tool that a server lists or may
// list later.
void Catalogue::add_aliases(const std::vector<CatalogueSource> &sources, const Names &names) {
  constexpr auto tools = static_cast<std::size_t>(ItemKind::tool);
  const Naming &naming = names.naming();
  const auto unknown = std::find_if(sources.begin(), sources.end(),
                                    [](const CatalogueSource &source) { return !source.known(); });
  for (const auto &[alias, tool] : naming.aliases) {
    const auto unused = [&](std::string_view why) {
      note_collision("alias \"" + alias + "\" is not used: " + std::string(why));
    };
    const Resolved *listed = resolve(ItemKind::tool, tool);
    const std::string_view own = listed == nullptr ? "" : sources[listed->source].server;
    const std::string_view owner = owner_of(alias, own, sources, naming);
    if (maps_[tools].contains(alias) || held_[tools].contains(alias) ||
        unavailable_aliases_.contains(alias)) {
      unused("a server has a tool with this name");
    } else if (listed == nullptr) {
      if (!may_come(tool, sources, naming)) unused("no server offers \"" + tool + "\"");
    } else if (!owner.empty()) {
      unused("this name is reserved for tools of server \"" + std::string(owner) + "\"");
    } else if (!naming.prefix && unknown != sources.end()) {
      unused("server \"" + std::string(unknown->server) + "\" has not listed its tools yet");
    } else {
      aliases_.emplace(alias, *listed);
    }
  }
}

void Catalogue::note_collision(std::string text) {
  constexpr std::size_t most = 100;
  if (collisions_.size() < most) collisions_.push_back(std::move(text));
}

std::vector<std::string_view> Catalogue::holders(ItemKind kind, std::string_view name) const {
  std::vector<std::string_view> servers;
  const Holders &held = held_[static_cast<std::size_t>(kind)];
  if (const auto at = held.find(name); at != held.end()) {
    for (const std::uint32_t source : at->second) servers.emplace_back(servers_[source]);
  }
  return servers;
}

const Resolved *Catalogue::resolve(ItemKind kind, std::string_view name) const {
  const Map &map = maps_[static_cast<std::size_t>(kind)];
  if (const auto at = map.find(name); at != map.end()) return &at->second;
  if (kind != ItemKind::tool) return nullptr;
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? nullptr : &alias->second;
}

std::optional<Resolved> Catalogue::resolve_uri(std::string_view uri, const Names &names) const {
  if (const Resolved *listed = resolve(ItemKind::resource, uri)) return *listed;
  if (const Resolved *listed = resolve(ItemKind::resource_template, uri)) return *listed;
  if (held_[static_cast<std::size_t>(ItemKind::resource)].contains(uri)) return std::nullopt;
  const auto with = [](std::uint32_t source, std::string_view original) {
    Resolved resolved;
    resolved.source = source;
    bh::json::append_quoted(&resolved.original_token, original);
    return resolved;
  };
  if (const auto split = names.split_uri(uri)) {
    const auto at = std::find(servers_.begin(), servers_.end(), split->server);
    if (at == servers_.end()) return std::nullopt;
    return with(static_cast<std::uint32_t>(at - servers_.begin()), split->original);
  }
  if (const auto at = originals_.find(uri); at != originals_.end()) {
    if (at->second.size() != 1) return std::nullopt;
    return with(at->second.front(), uri);
  }
  std::optional<std::uint32_t> only;
  for (const Template &candidate : templates_) {
    if (candidate.literal.empty() || !uri.starts_with(candidate.literal)) continue;
    if (only.has_value() && *only != candidate.source) return std::nullopt;
    only = candidate.source;
  }
  if (!only.has_value() && servers_.size() == 1 && !names.naming().prefix) only = 0;
  if (!only.has_value()) return std::nullopt;
  return with(*only, uri);
}

std::optional<Catalogue::Page> Catalogue::page(ItemKind kind, std::uint32_t first,
                                               std::uint32_t page_items, std::uint64_t page_bytes,
                                               For clients) const {
  const bool own = kind == ItemKind::tool && clients == For::clients_with_sessions;
  const List &l = own && has_session_tools() ? session_tools_ : list(kind);
  const auto total = static_cast<std::uint32_t>(l.ends.size());
  if (first > total || (first == total && first != 0)) return std::nullopt;
  std::uint32_t last =
      page_items == 0 ? total : std::min<std::uint64_t>(total, std::uint64_t{first} + page_items);
  const std::uint32_t begin = first == 0 ? 0 : l.ends[first - 1] + 1;
  if (page_bytes != 0 && last > first && l.ends[last - 1] - begin > page_bytes) {
    const auto too_far =
        std::upper_bound(l.ends.begin() + first, l.ends.begin() + last, begin + page_bytes);
    last = std::max(first + 1, static_cast<std::uint32_t>(too_far - l.ends.begin()));
  }
  const std::uint32_t end = last == 0 ? 0 : l.ends[last - 1];
  Page page{std::string_view(l.bytes).substr(begin, end - begin), std::nullopt};
  if (last < total) page.next = last;
  return page;
}

}  // namespace bulkhead
