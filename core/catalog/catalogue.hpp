// The merged catalogue of one group of clients: prebuilt list responses, and a map from
// client-visible names to lanes and original names. The catalogue is rebuilt after a list has
// changed, never per request.
//
// Invariant: a listed name resolves to the upstream that listed it. An unlisted name resolves only
// if the profile defines it as an alias of a listed name. (resolve_uri() describes the rules for
// resources.) An alias never shadows a name that an unavailable server has listed or may list.
// Without prefixes, a name that several upstreams list is neither listed nor resolved: the server
// that receives a call must not depend on start order or availability.
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

// One upstream's items. build() does not keep the pointers.
struct CatalogueSource {
  std::string_view server;
  std::array<const ItemList *, item_kinds> lists{};  // null: no items of that kind
  // False if the server is down. In this case, the items that it last sent are not listed, but
  // their names stay reserved.
  bool up = true;
  // Returns false if the server is down and no item of it is known, so its names are unknown.
  bool known() const;
};

struct Resolved {
  std::uint32_t source = 0;          // index into the sources passed to build()
  std::string original_token;        // JSON string token as sent by the upstream
  DefinitionHash definition_hash{};  // hash of the listed item; all zeros if the item is not listed
  ItemKind kind = ItemKind::tool;    // kind of the listed item
  std::uint32_t item = 0;            // index of the listed item in its list
};

// Formats names for error messages: "a", "b".
std::string quoted_list(const std::vector<std::string_view> &servers);

class Catalogue {
 public:
  // The policy filter. Returns true if the item should be listed. `raw` is the item as sent by the
  // server. If the function is empty, all items are listed.
  using Keep = std::function<bool(ItemKind, std::uint32_t source, std::string_view original_token,
                                  std::string_view raw)>;
  static Catalogue build(const std::vector<CatalogueSource> &sources, const Names &names,
                         const Keep &keep);

  // Returns null if the name does not resolve. The pointer is valid while the catalogue exists.
  const Resolved *resolve(ItemKind kind, std::string_view name) const;

  // Returns the servers that prevent an unprefixed name from resolving: all servers that list it if
  // there are several, or the only server that lists it if that server is down. Otherwise, and if
  // the catalogue has only one server, returns an empty list. The views are valid while the
  // catalogue exists.
  std::vector<std::string_view> holders(ItemKind kind, std::string_view name) const;

  // Resolves a resource URI. The first match wins:
  // 1. A URI that a server lists.
  // 2. A URI with the prefix of a server, even if the server does not list it, because templates
  //    produce URIs that are not listed.
  // 3. A server's own URI without a prefix, if exactly one server lists it or has a matching
  //    template, or if the profile has only one server and no prefixes. Clients send such URIs
  //    because results contain them.
  std::optional<Resolved> resolve_uri(std::string_view uri, const Names &names) const;

  struct Page {
    std::string_view items;             // separated by commas
    std::optional<std::uint32_t> next;  // index of the next page's first item
  };
  // See session_schemas.hpp and header_annotations.hpp.
  enum class For : std::uint8_t { all_clients, clients_with_sessions };
  // Returns up to page_items items and page_bytes bytes, but at least one item. A limit of 0 means
  // unlimited. Returns nullopt if `first` is past the last item. An empty list has one empty page.
  std::optional<Page> page(ItemKind kind, std::uint32_t first, std::uint32_t page_items,
                           std::uint64_t page_bytes = 0, For clients = For::all_clients) const;

  std::size_t count(ItemKind kind) const { return list(kind).ends.size(); }
  // Messages for the operator about items that are not offered and aliases that are not used, such
  // as: alias "x" is not used: no server offers "y". Limited to 100 messages.
  const std::vector<std::string> &collisions() const noexcept { return collisions_; }

  // A number that no other catalogue of this process has; part of cursors.
  std::uint64_t version() const noexcept { return version_; }

  bool same_list(ItemKind kind, const Catalogue &other) const {
    return list(kind).bytes == other.list(kind).bytes &&
           (kind != ItemKind::tool || session_tools_.bytes == other.session_tools_.bytes);
  }

 private:
  struct List {
    std::string bytes;
    std::vector<std::uint32_t> ends;  // offset of the end of each item, without the comma
    void append(std::string_view item);
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
    std::string literal;  // the template up to its first brace
    std::uint32_t source;
  };

  void add(ItemKind kind, std::uint32_t source, const CatalogueSource &from, const Names &names,
           const Keep &keep);
  void reserve(ItemKind kind, const std::vector<CatalogueSource> &sources);
  void find_held(ItemKind kind, const std::vector<CatalogueSource> &sources, const Names &names);
  void append_tool(std::string_view tool);
  void add_aliases(const std::vector<CatalogueSource> &sources, const Names &names);
  void note_collision(std::string text);
  bool has_session_tools() const noexcept { return !session_tools_.ends.empty(); }
  const List &list(ItemKind kind) const { return lists_[static_cast<std::size_t>(kind)]; }

  std::uint64_t version_ = 0;
  std::array<List, item_kinds> lists_;
  std::array<Map, item_kinds> maps_;
  // Names that do not resolve, and the servers that list them.
  std::array<Holders, item_kinds> held_;
  Map aliases_;  // aliases of tools; never a listed or reserved name
  // Aliases that have the same name as a tool of an unavailable server.
  std::set<std::string, std::less<>> unavailable_aliases_;
  Holders originals_;
  std::vector<Template> templates_;
  std::vector<std::string> servers_;
  std::vector<std::string> collisions_;
  // The tools as clients with a session receive them. Empty if they receive the same bytes as other
  // clients.
  List session_tools_;
};

}  // namespace bulkhead
