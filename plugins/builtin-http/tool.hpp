// Defines the interface of this plugin's tools. A tool provides a definition, builds a request from
// the arguments, and builds a result from the response. Each tool has its own source file.
// tools.cpp lists all tools.
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

  // The request to send. It is moved from when it is sent.
  Request request;

  // Returns the call result as JSON. Stops early if `cancelled` becomes true, which is checked
  // about every few tens of milliseconds. May be called only once, on any thread.
  virtual std::string result(Response &response, const std::atomic<bool> &cancelled) const = 0;
};

struct Tool {
  std::string_view name;
  std::string (*definition)();  // returns the JSON object for tools/list

  // Creates the task of a call. `arguments` is JSON as received from the client. On failure,
  // returns nullptr and sets *problem to an error message.
  std::unique_ptr<Task> (*make)(std::string_view arguments, std::string *problem);
};

extern const Tool fetch_tool, grep_tool, headers_tool;
extern const Tool get_tool, post_tool, put_tool, patch_tool, delete_tool, head_tool;

}  // namespace builtin_http
