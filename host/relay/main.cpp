#include "relay/relay.hpp"

int main(int argc, char **argv) {
  return bulkhead::relay::run("bulkhead-relay", argc, argv);
}
