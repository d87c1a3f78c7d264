// Implements fetch_http, which returns a web page as text.
#include "builtin-http/page.hpp"

#include <bulkhead/cpp/json_writer.hpp>

#include "builtin-http/paging.hpp"
#include "builtin-http/structured.hpp"
#include "builtin-http/tool.hpp"
#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

std::string fetch_definition() {
  return R"json({
  "name":"fetch_http","title":"Fetch a web page",
  "description":"Fetches a web page as text. If the text is truncated, the Remaining line contains the next start_index.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["url"],"properties":{
    "url":{"type":"string","description":"The page, with http:// or https://"},
    "format":{"type":"string","enum":["markdown","content","raw"],"default":"markdown",
      "description":"markdown, content (plain text) or raw (the response body as UTF-8)"},
    )json" +
         paging_schema("text") + R"json(}},
  "outputSchema":)json" +
         output_schema(R"("url","content_length","start_index","text")",
                       R"("url":{"type":"string","description":"Final URL after redirects"},)" +
                           part_properties("text")) +
         R"json(,
  "annotations":{"title":"Fetch a web page","readOnlyHint":true,"destructiveHint":false,
    "idempotentHint":true,"openWorldHint":true}})json";
}

class FetchTask final : public Task {
 public:
  Format format = Format::markdown;
  Paging paging;

  std::string result(Response &response, const std::atomic<bool> &cancelled) const override {
    std::string text;
    std::string problem;
    Part part;
    if (!page_text(&response, format, cancelled, &text, &problem) ||
        !part_of(text, paging, &part, &problem)) {
      return tool_kit::error_result(problem);
    }
    std::string out = "URL: " + response.url.text() + "\nDomain: " + response.url.host.name +
                      "\nContent length: " + std::to_string(part.total) + "\n";
    if (!part.is_all()) out += part.shown();
    if (!part.is_last()) {
      out += "Remaining: " + std::to_string(part.total - part.end) +
             " bytes. Use start_index=" + std::to_string(part.end) + " to continue.\n";
    }
    out += "\n" + text.substr(part.begin, part.end - part.begin);
    return tool_kit::text_result(out, "{\"url\":" + bh::json::quoted(response.url.text()) + "," +
                                          part_members("text", text, part) + "}");
  }
};

std::unique_ptr<Task> make_fetch(std::string_view arguments, std::string *problem) {
  auto task = std::make_unique<FetchTask>();
  tool_kit::Arguments a(arguments);
  const std::string url = a.text("url");
  const std::string format = a.choice("format", {"markdown", "content", "raw"});
  task->format = format == "raw"       ? Format::raw
                 : format == "content" ? Format::content
                                       : Format::markdown;
  task->paging = read_paging(&a);
  task->request.any_type = task->format == Format::raw;
  *problem = a.problem();
  if (!problem->empty() || !parse_url(url, &task->request.url, problem)) return nullptr;
  return task;
}

}  // namespace

const Tool fetch_tool = {"fetch_http", fetch_definition, make_fetch};

}  // namespace builtin_http
