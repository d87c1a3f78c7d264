// A plugin whose init and create throw exceptions, which the ABI forbids.
#include <cstdint>
#include <stdexcept>

#include "bulkhead/abi/plugin.h"

namespace {

const char *const provides[] = {"bh.tools/1", nullptr};
const bh_descriptor descriptor{sizeof(bh_descriptor), 0, "throws", provides, {}, {}, {}, {}};

bh_status init(const bh_host *, bh_error *) {
  throw std::runtime_error("out of init");
}

const bh_entry entry{sizeof(bh_entry),
                     BH_ABI_MAJOR,
                     BH_ABI_MINOR,
                     0,
                     init,
                     [] {},
                     1,
                     BH_ABI_RC,
                     [](std::uint32_t i) { return i == 0 ? &descriptor : nullptr; },
                     [](const char *, const bh_host *, const bh_plugin **,
                        bh_error *) -> bh_status { throw std::runtime_error("out of create"); }};

}  // namespace

extern "C" __attribute__((visibility("default"))) const bh_entry *bh_plugin_entry_v1();
extern "C" const bh_entry *bh_plugin_entry_v1() {
  return &entry;
}
