// A started tools plugin, which the checks of tools, resources and prompts share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/tools.h"
#include "check/started.hpp"

namespace bulkhead::check {

struct Item {
  std::string name;     // for a resource, the URI
  std::string example;  // arguments with the required members
};

// A request of a client.
struct Request {
  std::string_view method, name, arguments;
};

class Tools : public Started<bh_tools> {
 public:
  static constexpr int answer_ms = 3'000;  // a call that takes longer is cancelled
  static constexpr int cancel_ms = 4'000;  // for a cancelled call; less than a step's limit
  static constexpr int late_ms = 50;       // how long to wait for completions that must not happen
  static constexpr std::size_t most_tools = 200;

  Tools(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_TOOLS) {}

  bh_status list(std::uint32_t kind, std::string *out, bh_error *error);
  // Waits for a list that is not known yet.
  bh_status list_when_known(std::uint32_t kind, std::string *out);

  // Returns the tools that are called: at most `most`.
  std::vector<Item> tools(std::size_t most = most_tools);

  bh_status begin(bh_call call, const Request &request, bh_error *error);
  void cancel(bh_call call);

  std::size_t completions(bh_call call) const { return host_.completions(call); }
  bool wait(bh_call call, int ms);

  // Makes a call and checks that it is completed exactly once. A call that takes too long is
  // cancelled. Returns true if the plugin has completed it with BH_RESULT_OK.
  bool call(bh_call id, const Request &request);
  // Checks that each result is a JSON object with this member.
  void check_results(const char *member);
  // Checks that the plugin returns or reports an error for the request.
  void check_rejected(bh_call id, const Request &request);

 private:
  void check_input_request(const std::string &json);
};

}  // namespace bulkhead::check
