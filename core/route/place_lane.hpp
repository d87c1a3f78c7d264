// A lane to a tools plugin: the server is in the process, nothing is framed or queued.
#pragma once

#include "bulkhead/abi/ext/tools.h"
#include "route/lane.hpp"

namespace bulkhead {

class PlaceLane final : public Lane {
 public:
  using Lane::Lane;
  ~PlaceLane() override;

  void start() override;
  void close() override;
  void submit(Exchange &exchange, const CallInHand &hand) override;
  void retract(std::uint64_t exchange, bool sent, std::string_view reason,
               const mcp::Scan *reason_scan) override;
  void abandon(std::uint64_t) override {}
  void send(std::uint32_t, const bh_str *, std::uint32_t) override {}
  void request_quietly(mcp::Method method, std::string_view params) override;

  void list_changed(ItemKind kind);
  // The plugin has begun (again) in another process.
  void began();

 private:
  // Gets that list. BH_PENDING: list_changed() comes. Another status than BH_OK: it failed, reason_
  // says why, and what was listed before stays.
  bh_status load(ItemKind kind);
  void read_features();
  void end_watches();
  bh_status begin(Exchange &exchange, std::uint32_t flags, std::string_view arguments,
                  bh_error *error);
};

}  // namespace bulkhead
