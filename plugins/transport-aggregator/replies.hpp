// Writes the replies of the aggregator protocol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transport-aggregator/request.hpp"

namespace transport_aggregator {

// Returns {"id":id,"member":value}.
std::string reply(std::uint64_t id, std::string_view member, std::string_view value);
// Returns {"id":id,"error":"text"}.
std::string error_reply(std::uint64_t id, std::string_view text);

// Returns the item kind (BH_LIST_...) of list_tools, list_resources and list_prompts, or 0 for
// other methods.
std::uint32_t listed_kind(Method method) noexcept;

// Returns the reply to list_servers. `listed` is the array from bh_host_control.list_servers.
std::string servers_reply(std::uint64_t id, std::string_view listed);
// Returns the reply to list_tools, list_resources or list_prompts. `listed` is the array from
// bh_host_control.list_items.
std::string items_reply(std::uint64_t id, Method method, std::string_view listed);

}  // namespace transport_aggregator
