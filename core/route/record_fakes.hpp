// A fake telemetry plugin for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/cpp/basics.hpp"

namespace bulkhead {

// A telemetry plugin that stores the records that it receives.
struct FakeArchive {
  struct Record {
    std::uint64_t number, intent;
    std::uint32_t kind, outcome, flags;
    std::string name, principal, request, response, detail, method, request_id, error;
    std::uint64_t bytes_in;
  };
  std::uint32_t needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS;
  std::size_t room = SIZE_MAX;  // number of records that it accepts before it is full
  std::vector<Record> records{};
};
inline const bh_telemetry archive_table = {
    sizeof(bh_telemetry),
    0,
    [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
      auto &archive = *static_cast<FakeArchive *>(self);
      const auto taken = static_cast<std::uint32_t>(std::min<std::size_t>(n, archive.room));
      archive.room -= taken;
      for (std::uint32_t i = 0; i < taken; ++i) {
        const bh_record &r = *records[i];
        archive.records.push_back(
            {r.number, r.intent, r.kind, r.outcome, r.flags, std::string(bh::view(r.name)),
             std::string(bh::view(r.principal)), std::string(bh::view(r.request)),
             std::string(bh::view(r.response)), std::string(bh::view(r.detail)),
             std::string(bh::view(r.method)), std::string(bh::view(r.request_id)),
             std::string(bh::view(r.error)), r.bytes_in});
      }
      return taken;
    },
    [](void *self) { return static_cast<FakeArchive *>(self)->needs; },
};

}  // namespace bulkhead
