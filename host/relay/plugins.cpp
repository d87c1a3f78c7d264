#include "relay/plugins.hpp"

#define BH_STATIC_PLUGIN
#include "connector-vsock/plugin.cpp"
#include "transport-stdio/plugin.cpp"

namespace bulkhead::relay {

const bh_entry *stdio_entry() {
  return bh_static_entry_TransportStdio();
}

const bh_entry *vsock_entry() {
  return bh_static_entry_ConnectorVsock();
}

}  // namespace bulkhead::relay
