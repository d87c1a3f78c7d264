// The merged list that one group of clients sees: prebuilt bytes for the list answers, and the map
// from a client's name to (lane, original name). Built once per change, never once per request.
//
// Invariant: a name that is listed resolves, to the upstream that listed it, and a name that is not
// listed does not (resources: see resolve_uri), unless the profile has it as an alias of one that
// is, and then never in place of what a server that is down has listed or may list. Where names
// have no prefix, one that several upstreams have is listed for none of them and resolves to none:
// which one answers first, or is up, must not decide who gets a call.
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

// One upstream's contribution. Pointers must outlive the build only.
struct CatalogueSource {
  std::string_view server;
  std::array<const ItemList *, item_kinds> lists{};  // null: nothing of that kind
  // False: it is down. What it listed last is not offered, but goes on holding its names.
  bool up = true;
  // False: it has listed nothing yet, so nobody knows its names.
  bool known() const;
};

struct Resolved {
  std::uint32_t source = 0;          // index into the sources given to build()
  std::string original_token;        // JSON string token, as the upstream wrote it
  DefinitionHash definition_hash{};  // of the listed item; all zero: not listed
  ItemKind kind = ItemKind::tool;    // of the listed item, which is this one of its list:
  std::uint32_t item = 0;
};

// "a", "b": for error texts.
std::string quoted_list(const std::vector<std::string_view> &servers);

class Catalogue {
 public:
  // `keep` decides per item whether it is shown (a policy's filter); may be empty. `raw`: the item
  // as it was listed.
  using Keep = std::function<bool(ItemKind, std::uint32_t source, std::string_view original_token,
                                  std::string_view raw)>;
  static Catalogue build(const std::vector<CatalogueSource> &sources, const Names &names,
                         const Keep &keep);

  // Null: not listed. The pointer lives as long as the catalogue.
  const Resolved *resolve(ItemKind kind, std::string_view name) const;

  // Without prefix, for a name that does not resolve: the servers that have it, which are several,
  // or one that is down. Empty: nobody has it. The views live as long as the catalogue.
  std::vector<std::string_view> holders(ItemKind kind, std::string_view name) const;

  // A resource URI: listed ones first, then composed ones of any source (templates produce URIs
  // that no list holds), then originals that exactly one source lists or has a template for:
  // results carry original URIs, and clients send them back.
  std::optional<Resolved> resolve_uri(std::string_view uri, const Names &names) const;

  struct Page {
    std::string_view items;             // comma-separated
    std::optional<std::uint32_t> next;  // first item of the next page
  };
  // At most page_items items in page_bytes bytes, but one item at least; 0: no bound. nullopt:
  // `first` is beyond the end.
  std::optional<Page> page(ItemKind kind, std::uint32_t first, std::uint32_t page_items,
                           std::uint64_t page_bytes = 0) const;

  std::size_t count(ItemKind kind) const { return list(kind).ends.size(); }
  // "tool "x" is not offered: servers "a", "b" have the same name", for the operator. At most 100.
  const std::vector<std::string> &collisions() const noexcept { return collisions_; }

  bool same_list(ItemKind kind, const Catalogue &other) const {
    return list(kind).bytes == other.list(kind).bytes;
  }

 private:
  struct List {
    std::string bytes;
    std::vector<std::uint32_t> ends;  // offset behind each item, its comma not included
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
  std::array<Holders, item_kinds> held_;  // names that must not resolve, with who has them
  Map aliases_;  // of tools: the profile's names for them, none of which is listed or held
  std::set<std::string, std::less<>> away_;  // those that are tools of servers that are down
  Holders originals_;
  std::vector<Template> templates_;
  std::vector<std::string> servers_;
  std::vector<std::string> collisions_;
};

}  // namespace bulkhead
