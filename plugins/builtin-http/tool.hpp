// Interface of all tools of this plugin. A tool has a definition, builds a request from the
// arguments, and builds a result from the response. Each tool has its own file; tools.cpp lists
// them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

class Task {
 public:
  virtual ~Task() = default;

  // The request to send. The sender moves it out.
  Request request;

  // Returns the result of the call as JSON. Checks `cancelled` at least every few milliseconds. May
  // be called once, on any thread.
  virtual std::string result(Response &response, const std::atomic<bool> &cancelled) const = 0;
};

struct Tool {
  std::string_view name;
  std::string (*definition)();  // JSON, as in tools/list

  // `arguments` is the JSON text as received. On failure, returns nullptr and sets *problem to an
  // error message.
  std::unique_ptr<Task> (*make)(std::string_view arguments, std::string *problem);
};

extern const Tool fetch_tool, grep_tool, headers_tool;
extern const Tool get_tool, post_tool, put_tool, patch_tool, delete_tool, head_tool;

}  // namespace builtin_http
