// Implements grep_http, which returns the lines of a page that match a regular expression.
#include "builtin-http/grep.hpp"

#include <bulkhead/cpp/json_writer.hpp>

#include "builtin-http/page.hpp"
#include "builtin-http/paging.hpp"
#include "builtin-http/structured.hpp"
#include "builtin-http/tool.hpp"
#include "tool-kit/arguments.hpp"
#include "tool-kit/pattern.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr std::string_view match_properties =
    R"("url":{"type":"string"},"pattern":{"type":"string"},"matches":{"type":"array","items":{)"
    R"("type":"object","required":["line","text"],"properties":{"line":{"type":"integer"},)"
    R"("text":{"type":"string","description":"Up to 300 bytes of the line"}}}},)"
    R"("more":{"type":"boolean","description":"True if there are matches that were not returned"})";

std::string grep_definition() {
  return R"json({
  "name":"grep_http","title":"Search a web page",
  "description":"Searches the text of a web page for a regular expression (case-insensitive) and returns the matching lines with context.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["url","pattern"],
    "properties":{
    "url":{"type":"string","description":"The page, with http:// or https://"},
    "pattern":{"type":"string","minLength":1,"maxLength":4096,
      "description":"Regular expression (RE2 syntax), matched against each line"},
    "context_lines":{"type":"integer","minimum":0,"maximum":100,"default":3,
      "description":"Lines before and after each match"},
    "max_matches":{"type":"integer","minimum":1,"maximum":1000,"default":50},
    "raw":{"type":"boolean","default":false,
      "description":"Search the original page, including markup"},
    )json" +
         paging_schema("result") + R"json(}},
  "outputSchema":)json" +
         output_schema(R"("url","pattern","matches","more")", match_properties) + R"json(,
  "annotations":{"title":"Search a web page","readOnlyHint":true,"destructiveHint":false,
    "idempotentHint":true,"openWorldHint":true}})json";
}

class GrepTask final : public Task {
 public:
  tool_kit::Pattern pattern;
  std::size_t context = 3, most = 50;
  bool raw = false;
  Paging paging;

  std::string result(Response &response, const std::atomic<bool> &cancelled) const override {
    std::string text;
    std::string problem;
    Part part;
    if (!page_text(&response, raw ? Format::raw : Format::content, cancelled, &text, &problem)) {
      return tool_kit::error_result(problem);
    }
    const Matches found = find_matches(text, pattern, context, most, cancelled);
    const std::string all = head(response, found) + found.blocks;
    if (!part_of(all, paging, &part, &problem)) return tool_kit::error_result(problem);
    std::string out;
    if (!part.is_last()) {
      out = "Content length: " + std::to_string(part.total) + "\n" + part.shown() +
            "Use start_index=" + std::to_string(part.end) + " to continue.\n\n";
    }
    return tool_kit::text_result(out + all.substr(part.begin, part.end - part.begin),
                                 structured(response, found));
  }

 private:
  // The structured content contains all matches, even if the text is returned in parts.
  std::string structured(const Response &response, const Matches &found) const {
    return "{\"url\":" + bh::json::quoted(response.url.text()) +
           ",\"pattern\":" + bh::json::quoted(pattern.text()) + ",\"matches\":[" + found.json +
           "],\"more\":" + (found.more ? "true}" : "false}");
  }
  std::string head(const Response &response, const Matches &found) const {
    const std::string count = std::to_string(found.count);
    std::string out = "URL: " + response.url.text() + "\nPattern: " + pattern.text() +
                      "\nMatches found: " + (found.more ? "more than " : "") + count + "\n";
    if (found.more) out += "(showing the first " + count + ")\n";
    return out + "\n";
  }
};

std::unique_ptr<Task> make_grep(std::string_view arguments, std::string *problem) {
  auto task = std::make_unique<GrepTask>();
  tool_kit::Arguments a(arguments);
  const std::string url = a.text("url");
  const std::string pattern = a.text("pattern");
  task->context = a.whole("context_lines", 3, 0, 100);
  task->most = a.whole("max_matches", 50, 1, 1000);
  task->raw = a.flag("raw", false);
  task->paging = read_paging(&a);
  task->request.any_type = task->raw;
  *problem = a.problem();
  if (!problem->empty() || !parse_url(url, &task->request.url, problem) ||
      !task->pattern.parse("pattern", pattern, tool_kit::Case::ignored, problem)) {
    return nullptr;
  }
  return task;
}

}  // namespace

const Tool grep_tool = {"grep_http", grep_definition, make_grep};

}  // namespace builtin_http
