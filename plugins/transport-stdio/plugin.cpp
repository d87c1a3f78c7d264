#include "transport-stdio/transport_stdio.hpp"

using transport_stdio::TransportStdio;
BH_PLUGIN(TransportStdio)
