// builtin-http: an MCP server in the gateway, for the web.
//
// The HTTP client is another plugin's and may be absent: the host is asked for it at each call.
#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <string>
#include <unordered_map>

#include "builtin-http/config.hpp"
#include "builtin-http/fetch.hpp"
#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {

constexpr std::string_view definitions = R"json([{
  "name":"fetch_http","title":"Fetch a web page",
  "description":"Gets a web page as text. If cut, Remaining gives the next start_index.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["url"],"properties":{
    "url":{"type":"string","description":"The page, with http:// or https://"},
    "format":{"type":"string","enum":["markdown","content","raw"],"default":"markdown",
              "description":"markdown, content (plain text) or raw (as the server sent it)"},
    "start_index":{"type":"integer","minimum":0,"default":0,
                   "description":"Byte of the text to begin at"},
    "max_length":{"type":"integer","minimum":1,"maximum":1000000,"default":5000,
                  "description":"Bytes of text at most"}}},
  "annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,
                 "openWorldHint":true}},{
  "name":"echo","title":"Echo",
  "description":"Returns the message as it came. Shows that tools can be reached.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["message"],"properties":{
    "message":{"type":"string","description":"Any text"}}},
  "annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,
                 "openWorldHint":false}}])json";

class BuiltinHttp {
 public:
  static constexpr std::size_t max_fetches = 32;  // at once; more are told to try again

  static constexpr bh::Info info{.id = "builtin-http",
                                 .name = "Web pages",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TOOLS}};

  explicit BuiltinHttp(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host takes no tools or has no reactor");
    }
    return parse_config(bh::view(json), &config_, error);
  }

  bh_status start(bh_error *) { return BH_OK; }
  void drain(std::uint64_t) noexcept { draining_ = true; }

  // A page that is being converted ends at its next look; the host counts it and keeps this object.
  void stop() noexcept {
    for (const auto &[call, fetch] : fetches_) fetch->abort();
    std::erase_if(fetches_, [](const auto &entry) { return !entry.second->converting(); });
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<BuiltinHttp>() : nullptr;
  }

  bh_status list(std::uint32_t kind, bh_buf *out, bh_error *error) {
    if (kind != BH_LIST_TOOLS) return bh::fail(error, BH_E_UNSUPPORTED, "there are only tools");
    *out = bh_buf{definitions.data(), definitions.size(), nullptr, nullptr};
    return BH_OK;
  }

  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *error) {
    if (draining_) return bh::fail(error, BH_E_UNAVAILABLE, "the plugin is about to stop");
    if (bh::view(request.method) == "tools/call") {
      if (bh::view(request.name) == "fetch_http") return begin_fetch(call, request, error);
      if (bh::view(request.name) == "echo") return echo(call, request);
    }
    return bh::fail(error, BH_E_NOT_FOUND, "there is no such tool");
  }

  void call_cancel(bh_call call) {
    const auto it = fetches_.find(call);
    if (it != fetches_.end()) it->second->cancel();
  }

 private:
  bh_status echo(bh_call call, const bh_call_info &request) {
    tool_kit::Arguments arguments(bh::view(request.arguments));
    const std::string message = arguments.text("message");
    const bool given = arguments.has("message");
    std::string problem = arguments.problem();
    if (problem.empty() && !given) problem = "the argument \"message\" is missing";
    complete(call,
             problem.empty() ? tool_kit::text_result(message) : tool_kit::error_result(problem));
    return BH_OK;
  }

  bh_status begin_fetch(bh_call call, const bh_call_info &request, bh_error *error) {
    if (fetches_.size() >= max_fetches) {
      return bh::fail(error, BH_E_LIMIT, "too many pages are fetched at once", 500);
    }
    tool_kit::Arguments arguments(bh::view(request.arguments));
    Url url;
    PageRequest page;
    std::string problem;
    if (!read_arguments(&arguments, &url, &page, &problem)) {
      complete(call, tool_kit::error_result(problem));
      return BH_OK;
    }
    const auto *http = host_.ext<bh_host_http>(BH_EXT_HOST_HTTP);
    if (http == nullptr) {
      complete(call, tool_kit::error_result(
                         "this gateway has no HTTP client: the plugin http-client is not loaded"));
      return BH_OK;
    }
    auto fetch = std::make_unique<Fetch>(
        host_, *http, config_, [this, call](const std::string &event) { note(call, event); },
        [this, call](Fetch &, std::string &&result) {
          fetches_.erase(call);
          complete(call, std::move(result));
        });
    Fetch &f = *fetches_.emplace(call, std::move(fetch)).first->second;
    f.start(url, page, request.deadline_ns);
    return BH_PENDING;
  }

  static bool read_arguments(tool_kit::Arguments *a, Url *url, PageRequest *page,
                             std::string *problem) {
    const std::string text = a->text("url");
    const std::string format = a->choice("format", {"markdown", "content", "raw"});
    page->format = format == "raw"       ? Format::raw
                   : format == "content" ? Format::content
                                         : Format::markdown;
    page->start_index = a->whole("start_index", 0, 0, 1u << 30);
    page->max_length = a->whole("max_length", 5000, 1, 1'000'000);
    *problem = a->problem();
    return problem->empty() && parse_url(text, url, problem);
  }

  void note(bh_call call, const std::string &event) const {
    const auto *record = host_.ext<bh_host_event>(BH_EXT_HOST_EVENT);
    if (record != nullptr) record->event(host_.ctx(), call, BH_RECORD_NET, bh::str(event));
  }

  void complete(bh_call call, std::string &&json) {
    bh_result result{};
    result.size = sizeof result;
    result.kind = BH_RESULT_OK;
    result.json = bh::buf(std::move(json));
    tools_->complete(host_.ctx(), call, &result);
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  Config config_;
  bool draining_ = false;
  std::unordered_map<bh_call, std::unique_ptr<Fetch>> fetches_;
};

}  // namespace builtin_http

using BuiltinHttp = builtin_http::BuiltinHttp;
BH_PLUGIN(BuiltinHttp)
