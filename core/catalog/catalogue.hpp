// The merged list for one group of clients. It contains prebuilt list responses and a map from
// client-visible names to (lane, original name). It is rebuilt when a list changes, never per
// request.
//
// Invariant: a listed name resolves to the upstream that listed it. An unlisted name resolves only
// if the profile defines it as an alias of a listed name (for resources, see resolve_uri). An alias
// never shadows a name that an unavailable server has listed or may list. Without prefixes, a name
// that several upstreams list is neither listed nor resolved: start order and availability must not
// determine which server receives a call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catalog/items.hpp"
#include "catalog/names.hpp"

namespace bulkhead {

// The items of one upstream. The pointers are used only during build().
struct CatalogueSource {
  std::string_view server;
  std::array<const ItemList *, item_kinds> lists{};  // null if there are no items of that kind
  // False if the server is down. In that case, its last listed items are not offered, but their
  // names stay reserved.
  bool up = true;
  // Returns false if the server has not yet listed anything, so its names are unknown.
  bool known() const;
};

struct Resolved {
  std::uint32_t source = 0;          // index into the sources of build()
  std::string original_token;        // JSON string token, as the upstream wrote it
  DefinitionHash definition_hash{};  // of the listed item; all zeros if not listed
  ItemKind kind = ItemKind::tool;    // of the listed item
  std::uint32_t item = 0;            // index of the listed item in its list
};

// Formats names for error texts: "a", "b".
std::string quoted_list(const std::vector<std::string_view> &servers);

class Catalogue {
 public:
  // The policy filter, which decides for each item whether it is listed. May be empty. `raw` is the
  // item as sent by the server.
  using Keep = std::function<bool(ItemKind, std::uint32_t source, std::string_view original_token,
                                  std::string_view raw)>;
  static Catalogue build(const std::vector<CatalogueSource> &sources, const Names &names,
                         const Keep &keep);

  // Returns null if the name is not listed. The result is valid for the lifetime of the catalogue.
  const Resolved *resolve(ItemKind kind, std::string_view name) const;

  // Returns the servers that explain why a name does not resolve without prefixes: several servers
  // that list it, one server that is down, or none. The views are valid for the lifetime of the
  // catalogue.
  std::vector<std::string_view> holders(ItemKind kind, std::string_view name) const;

  // Resolves a resource URI in this order: listed URIs; composed URIs of any source, because
  // templates produce unlisted URIs; original URIs, if exactly one source lists them or has a
  // matching template. Original URIs are accepted because results contain them and clients send
  // them back.
  std::optional<Resolved> resolve_uri(std::string_view uri, const Names &names) const;

  struct Page {
    std::string_view items;             // separated by commas
    std::optional<std::uint32_t> next;  // index of the first item of the next page
  };
  // Returns a page of at most page_items items and page_bytes bytes, but with at least one item. A
  // limit of 0 means unlimited. Returns nullopt if `first` is past the end.
  std::optional<Page> page(ItemKind kind, std::uint32_t first, std::uint32_t page_items,
                           std::uint64_t page_bytes = 0) const;

  std::size_t count(ItemKind kind) const { return list(kind).ends.size(); }
  // Messages for the operator, for example: tool "x" is not offered: servers "a", "b" have the same
  // name. Limited to 100 messages.
  const std::vector<std::string> &collisions() const noexcept { return collisions_; }

  bool same_list(ItemKind kind, const Catalogue &other) const {
    return list(kind).bytes == other.list(kind).bytes;
  }

 private:
  struct List {
    std::string bytes;
    std::vector<std::uint32_t> ends;  // offset after each item, excluding its comma
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept {
      return std::hash<std::string_view>{}(s);
    }
  };
  using Map = std::unordered_map<std::string, Resolved, Hash, std::equal_to<>>;
  using Holders =
      std::unordered_map<std::string, std::vector<std::uint32_t>, Hash, std::equal_to<>>;
  struct Template {
    std::string literal;  // original template up to its first brace
    std::uint32_t source;
  };

  void add(ItemKind kind, std::uint32_t source, const CatalogueSource &from, const Names &names,
           const Keep &keep);
  void reserve(ItemKind kind, const std::vector<CatalogueSource> &sources);
  void find_held(ItemKind kind, const std::vector<CatalogueSource> &sources, const Names &names);
  void add_aliases(const std::vector<CatalogueSource> &sources, const Names &names);
  void note_collision(std::string text);
  const List &list(ItemKind kind) const { return lists_[static_cast<std::size_t>(kind)]; }

  std::array<List, item_kinds> lists_;
  std::array<Map, item_kinds> maps_;
  std::array<Holders, item_kinds> held_;  // unresolvable names and the servers that list them
  Map aliases_;                           // aliases of tools; never a listed or reserved name
  // Aliases of tools of unavailable servers.
  std::set<std::string, std::less<>> unavailable_aliases_;
  Holders originals_;
  std::vector<Template> templates_;
  std::vector<std::string> servers_;
  std::vector<std::string> collisions_;
};

}  // namespace bulkhead
