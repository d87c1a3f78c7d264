// The clients of MCP 2026-07-28 whose requests recently arrived outside any session of the
// transport, as over HTTP. They exist only as requests, so `bulkhead status` lists them from here.
//
// Runs on the reactor thread. Owned by Clients. Limits: max_clients clients; if there are more, the
// client that has been idle longest is removed. The names are claimed by clients, so a client that
// changes its name can fill the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "route/client_status.hpp"
#include "route/session.hpp"

namespace bulkhead {

class RecentClients {
 public:
  static constexpr std::size_t max_clients = ClientStatus::max_listed;
  // Clients without a request for this long are not listed.
  static constexpr std::uint64_t listed_ns = 300'000'000'000;

  // Called when the session of such a request ends.
  void add(const Session &request, std::uint64_t now_ns);
  // Appends the clients until the list has ClientStatus::max_listed items.
  void append_to(std::vector<ClientStatus> *list, std::uint64_t now_ns) const;

 private:
  struct Client {
    ClaimedName name;
    std::string process_name, transport;
    std::uint64_t calls, last_ns;
  };
  Client &find_or_add(const Session &request);

  std::vector<Client> clients_;
  std::size_t last_ = 0;  // position of the client of the previous request
};

}  // namespace bulkhead
