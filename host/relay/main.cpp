#include "relay/relay.hpp"

#include <malloc.h>

int main(int argc, char **argv) {
  // A guest has little memory, but by default the allocator would keep the memory used for large
  // messages. Large blocks are therefore mapped separately, and freed memory is returned to the
  // system.
  constexpr int bytes = 128 << 10;
  ::mallopt(M_MMAP_THRESHOLD, bytes);
  ::mallopt(M_TRIM_THRESHOLD, bytes);
  return bulkhead::relay::run("bulkhead-relay", argc, argv);
}
