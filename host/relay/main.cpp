#include "relay/relay.hpp"

#include <malloc.h>

int main(int argc, char **argv) {
  // By itself the allocator keeps more and more of what large messages have used; a guest's memory
  // is small, so they are mapped alone and given back.
  constexpr int bytes = 128 << 10;
  ::mallopt(M_MMAP_THRESHOLD, bytes);
  ::mallopt(M_TRIM_THRESHOLD, bytes);
  return bulkhead::relay::run("bulkhead-relay", argc, argv);
}
