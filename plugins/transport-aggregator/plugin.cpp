#include "transport-aggregator/transport_aggregator.hpp"

using transport_aggregator::TransportAggregator;
BH_PLUGIN(TransportAggregator)
