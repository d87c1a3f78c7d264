#include "relay/relay.hpp"

#include <malloc.h>

int main(int argc, char **argv) {
  // By default, the allocator keeps the memory of large messages. A guest has little memory, so
  // large blocks are mapped separately and returned to the system.
  constexpr int bytes = 128 << 10;
  ::mallopt(M_MMAP_THRESHOLD, bytes);
  ::mallopt(M_TRIM_THRESHOLD, bytes);
  return bulkhead::relay::run("bulkhead-relay", argc, argv);
}
