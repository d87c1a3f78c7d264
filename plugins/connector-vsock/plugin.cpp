#include "connector-vsock/connector_vsock.hpp"

using connector_vsock::ConnectorVsock;
BH_PLUGIN(ConnectorVsock)
