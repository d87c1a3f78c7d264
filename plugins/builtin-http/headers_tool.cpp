// Implements http_headers, which returns the status and headers of a page without its body.
#include "builtin-http/head_text.hpp"
#include "builtin-http/paging.hpp"
#include "builtin-http/structured.hpp"
#include "builtin-http/tool.hpp"
#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

std::string headers_definition() {
  return R"json({
  "name":"http_headers","title":"HTTP headers",
  "description":"Returns the HTTP status and the response headers of a URL.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["url"],"properties":{
    "url":{"type":"string","description":"The URL, with http:// or https://"},
    "method":{"type":"string","enum":["HEAD","GET"],"default":"HEAD",
      "description":"Use GET if the server responds differently to HEAD; the body is not read"},
    )json" +
         paging_schema("result") + R"json(}},
  "outputSchema":)json" +
         output_schema(R"("url","status","headers")", head_properties) + R"json(,
  "annotations":{"title":"HTTP headers","readOnlyHint":true,"destructiveHint":false,
    "idempotentHint":true,"openWorldHint":true}})json";
}

class HeadersTask final : public Task {
 public:
  Paging paging;

  std::string result(Response &response, const std::atomic<bool> &) const override {
    const std::string all = head_text(response);
    std::string problem;
    Part part;
    if (!part_of(all, paging, &part, &problem)) return tool_kit::error_result(problem);
    std::string out = all.substr(part.begin, part.end - part.begin);
    if (!part.is_last()) {
      out += "\nUse start_index=" + std::to_string(part.end) + " to continue.\n";
    }
    return tool_kit::text_result(out, "{" + head_members(response) + "}");
  }
};

std::unique_ptr<Task> make_headers(std::string_view arguments, std::string *problem) {
  auto task = std::make_unique<HeadersTask>();
  tool_kit::Arguments a(arguments);
  const std::string url = a.text("url");
  task->request.method = a.choice("method", {"HEAD", "GET"});
  task->paging = read_paging(&a);
  task->request.head_only = true;
  task->request.any_type = true;
  task->request.any_status = true;
  *problem = a.problem();
  if (!problem->empty() || !parse_url(url, &task->request.url, problem)) return nullptr;
  return task;
}

}  // namespace

const Tool headers_tool = {"http_headers", headers_definition, make_headers};

}  // namespace builtin_http
