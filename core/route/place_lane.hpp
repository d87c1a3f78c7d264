// The lane of a tools plugin. Calls the functions of the plugin directly, without serialization or
// a queue.
//
// Owner: the Upstream. Runs on the reactor thread.
#pragma once

#include "bulkhead/abi/ext/tools.h"
#include "route/lane.hpp"

namespace bulkhead {

class ToolsLane final : public Lane {
 public:
  using Lane::Lane;
  ~ToolsLane() override;

  void start() override;
  void close() override;
  void submit(Exchange &exchange, const CallInHand &hand) override;
  void retract(std::uint64_t exchange, bool sent, const Retraction &why) override;
  void abandon(std::uint64_t) override {}
  void send(std::uint32_t, const bh_str *, std::uint32_t) override {}
  void request_quietly(mcp::Method method, std::string_view params) override;

  void list_changed(ItemKind kind);
  // Called when the plugin has been restarted in a new process.
  void began();

 private:
  // Loads one list from the plugin. If the plugin returns BH_PENDING, it will call list_changed()
  // later. BH_E_UNSUPPORTED means an empty list. For any other error, sets reason_ and keeps the
  // previous list.
  bh_status load(ItemKind kind);
  void read_features();
  void end_watches();
  struct Inputs;
  void offer_input(Call &call, const CallInHand &hand, bh_call_info *info, Inputs *inputs);
  // Sets the members of `info` that follow from the exchange.
  bh_status begin(Exchange &exchange, bh_call_info info, bh_error *error);
};

}  // namespace bulkhead
