#include "transport-vsock/transport_vsock.hpp"

using transport_vsock::TransportVsock;
BH_PLUGIN(TransportVsock)
