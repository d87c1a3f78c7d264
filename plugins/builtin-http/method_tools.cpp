// Implements http_get, http_post, http_put, http_patch, http_delete and http_head, which send
// requests to HTTP APIs. A tool is offered only if `methods` in the profile lists its method. A
// response with an error status is a normal result. HTML in the response body is not converted.
#include "builtin-http/head_text.hpp"
#include "builtin-http/page.hpp"
#include "builtin-http/paging.hpp"
#include "builtin-http/request_headers.hpp"
#include "builtin-http/structured.hpp"
#include "builtin-http/tool.hpp"
#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr std::string_view reads =
    R"("readOnlyHint":true,"destructiveHint":false,"idempotentHint":true)";
constexpr std::string_view adds =
    R"("readOnlyHint":false,"destructiveHint":true,"idempotentHint":false)";
constexpr std::string_view sets =
    R"("readOnlyHint":false,"destructiveHint":true,"idempotentHint":true)";

constexpr std::string_view headers_schema = R"("headers":{"type":"object","maxProperties":64,
  "additionalProperties":{"type":"string"},"description":"Request headers, name and value"},)";
constexpr std::string_view body_schema =
    R"("body":{"type":"string","description":"Sent unchanged; set its Content-Type in headers"},)";

// Returns a tool definition. `name` is the tool name, and `method` is the HTTP method.
std::string define(std::string_view name, std::string_view method, bool has_body,
                   std::string_view hints) {
  std::string out = R"({"name":")";
  out.append(name).append(R"(","title":"HTTP )").append(method);
  out.append(R"(","description":"Sends a )").append(method);
  out.append(has_body ? " request with a body" : " request");
  out.append(method == "HEAD" ? "; returns status and headers."
                              : "; returns status, headers, body.");
  out.append(
      R"(","inputSchema":{"type":"object","additionalProperties":false,"required":["url"],)");
  out.append(R"("properties":{"url":{"type":"string","description":"With http:// or https://"},)");
  out.append(headers_schema).append(has_body ? body_schema : "").append(paging_schema("body"));
  out.append(R"(}},"outputSchema":)");
  out.append(output_schema(R"("url","status","headers","content_length","start_index","body")",
                           std::string(head_properties) + "," + part_properties("body")));
  out.append(R"(,"annotations":{"title":"HTTP )").append(method).append(R"(",)").append(hints);
  return out.append(R"(,"openWorldHint":true}})");
}

class MethodTask final : public Task {
 public:
  Paging paging;

  std::string result(Response &response, const std::atomic<bool> &cancelled) const override {
    std::string out = head_text(response);
    std::string body;
    std::string problem;
    Part part;
    if (!page_text(&response, Format::raw, cancelled, &body, &problem) ||
        !part_of(body, paging, &part, &problem)) {
      return tool_kit::error_result(problem);
    }
    out += "\nContent length: " + std::to_string(part.total) + "\n";
    if (!part.is_all()) out += part.shown();
    if (!part.is_last()) {
      out += "Use start_index=" + std::to_string(part.end) +
             " to continue; this repeats the request.\n";
    }
    return tool_kit::text_result(
        out + "\n" + body.substr(part.begin, part.end - part.begin),
        "{" + head_members(response) + "," + part_members("body", body, part) + "}");
  }
};

std::unique_ptr<Task> make(std::string_view arguments, const char *method, bool has_body,
                           std::string *problem) {
  auto task = std::make_unique<MethodTask>();
  Request &request = task->request;
  tool_kit::Arguments a(arguments);
  const std::string url = a.text("url");
  request.method = method;
  request.any_type = true;
  request.any_status = true;
  if (has_body) request.body = a.text("body");
  task->paging = read_paging(&a);
  const bool headers = a.has("headers");
  *problem = a.problem();
  if (!problem->empty() || !parse_url(url, &request.url, problem)) return nullptr;
  if (headers && !read_headers(arguments, &request.headers, problem)) return nullptr;
  return task;
}

}  // namespace

const Tool get_tool = {
    "http_get", [] { return define("http_get", "GET", false, reads); },
    [](std::string_view a, std::string *problem) { return make(a, "GET", false, problem); }};

const Tool head_tool = {
    "http_head", [] { return define("http_head", "HEAD", false, reads); },
    [](std::string_view a, std::string *problem) { return make(a, "HEAD", false, problem); }};

const Tool post_tool = {
    "http_post", [] { return define("http_post", "POST", true, adds); },
    [](std::string_view a, std::string *problem) { return make(a, "POST", true, problem); }};

const Tool put_tool = {
    "http_put", [] { return define("http_put", "PUT", true, sets); },
    [](std::string_view a, std::string *problem) { return make(a, "PUT", true, problem); }};

const Tool patch_tool = {
    "http_patch", [] { return define("http_patch", "PATCH", true, adds); },
    [](std::string_view a, std::string *problem) { return make(a, "PATCH", true, problem); }};

const Tool delete_tool = {
    "http_delete", [] { return define("http_delete", "DELETE", true, sets); },
    [](std::string_view a, std::string *problem) { return make(a, "DELETE", true, problem); }};

}  // namespace builtin_http
