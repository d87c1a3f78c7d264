#include "connector-stdio/connector_stdio.hpp"

using connector_stdio::ConnectorStdio;
BH_PLUGIN(ConnectorStdio)
