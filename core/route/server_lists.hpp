// Reads the lists of a lane's server page by page, stores them, and tracks their age.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/items.hpp"
#include "route/conversation.hpp"
#include "route/lane.hpp"
#include "route/lane_wire.hpp"
#include "route/list_hints.hpp"

namespace bulkhead {

class ServerLists {
 public:
  // The lane.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Called once for each connection, when the first request for each list of the server has
    // finished, even if a list could not be read. If this list is that of the tools, tools_failed()
    // is called instead.
    virtual void become_ready() = 0;
    // Called if the first list of tools could not be read. A server without its tools is unusable,
    // so the lane fails visibly and retries instead of becoming ready without tools. If `again` is
    // true, the list must be requested again on the same connection, because a new connection would
    // restart the server's warm-up.
    virtual void tools_failed(const std::string &reason, bool again,
                              std::uint32_t retry_after_ms) = 0;
    // Called when the list of tools was read or could not be read, unless tools_failed() was called
    // or the list is immediately read once more.
    virtual void tools_read() = 0;
  };

  // `items` are the lane's lists, which this object updates. The references must stay valid.
  ServerLists(Lane &lane, LaneHost &host, std::array<ItemList, item_kinds> &items,
              Conversation &conversation, LaneWire &wire, Owner &owner)
      : lane_(lane),
        host_(host),
        items_(items),
        conversation_(conversation),
        wire_(wire),
        owner_(owner) {}

  // Called when a new connection is being opened. Discards all state except the items.
  void reset();
  // Requests all lists that the server has.
  void start_all();
  // Requests the list. If it is already being read, it is read once more afterwards.
  void start(ItemKind kind);
  // Called when the server may have changed the list. Reads it again if the connection is open.
  void changed(ItemKind kind);
  // Called with the response to a list request. If there is no response, `error` is set and `scan`
  // is null. `retry_after_ms` is the delay that the server requested, or 0.
  void answered(ItemKind kind, const mcp::Scan *scan, std::string_view message, const Error *error,
                std::uint32_t retry_after_ms);
  // Removes the tools that the definition hides. Returns true if a listed tool was removed.
  bool hide();
  // Passes the lists to the host, which stores them for the next start, unless they are already
  // stored. The lists from a client's own connection belong to that client and are not stored.
  void keep() const;

  // Returns true if the list was received from this connection, or could not be read.
  bool known(ItemKind kind) const { return ages_[static_cast<std::size_t>(kind)].known(); }
  // See Lane::list_hints() and Lane::refresh(). `reported` is true if the server reports changes of
  // the list.
  std::optional<ListHints> hints(ItemKind kind, bool reported, std::uint64_t now_ns) const;
  void refresh(ItemKind kind, bool reported, std::uint64_t now_ns);

 private:
  struct Listing {
    bool running = false;
    bool first = false;  // must finish before the lane is ready
    bool again = false;
    ItemList incoming;
    std::string cursor;       // JSON token of the requested page
    std::size_t page_at = 0;  // index of the last page's first item in incoming.items
    std::uint32_t pages = 0;
    ListHints hints;  // of the pages so far
  };

  void request_page(ItemKind kind, std::string_view cursor_token);
  void finish(ItemKind kind, bool ok);
  void report_left_out(ItemKind kind, const ItemList &list) const;

  Lane &lane_;
  LaneHost &host_;
  std::array<ItemList, item_kinds> &items_;
  Conversation &conversation_;
  LaneWire &wire_;
  Owner &owner_;
  std::array<Listing, item_kinds> listings_;
  std::array<ListAge, item_kinds> ages_;  // of the lists from this connection
  std::uint32_t first_lists_ = 0;         // pending first list requests of this connection
  std::uint32_t failures_ = 0;            // of the first list of tools
};

}  // namespace bulkhead
