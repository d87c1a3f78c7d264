#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "local_client.hpp"
#include "plugin/instance.hpp"
#include "route/clients.hpp"

namespace bulkhead {

std::unique_ptr<ClientEnd> make_transport_end(Instance &instance);
std::unique_ptr<LocalClient> make_local_client(
    Clients &clients, std::function<void(std::string_view message)> on_message);

}  // namespace bulkhead
