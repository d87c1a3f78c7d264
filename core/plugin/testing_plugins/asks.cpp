// A tools plugin that asks the client for input, and reports what it knows about its calls. `ask`
// asks for a form, then returns the client's answer and the state that it had sent; `sure` does the
// same without a state. `who` returns
// the client's identity and trace. `wait` completes when it is cancelled, and logs the reason.
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view tools_json = R"([{"name":"ask","inputSchema":{"type":"object"}},)"
                                        R"({"name":"sure","inputSchema":{"type":"object"}},)"
                                        R"({"name":"who","inputSchema":{"type":"object"}},)"
                                        R"({"name":"wait","inputSchema":{"type":"object"}}])";
constexpr std::string_view question =
    R"({"inputRequests":{"form":{"method":"elicitation/create","params":{"mode":"form",)"
    R"("message":"Which one?","requestedSchema":{"type":"object","properties":)"
    R"({"n":{"type":"integer"}}}}}},"requestState":"asked \"once\""})";

constexpr std::string_view confirmation =
    R"({"inputRequests":{"sure":{"method":"elicitation/create","params":{"mode":"form",)"
    R"("message":"Really?","requestedSchema":{"type":"object","properties":{}}}}}})";

class Asks {
 public:
  static constexpr bh::Info info{.id = "asks",
                                 .name = "Asks",
                                 .version = "1.0.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TOOLS}};

  explicit Asks(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    return tools_ != nullptr ? BH_OK : bh::fail(error, BH_E_UNSUPPORTED, "this host has no tools");
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<Asks>() : nullptr;
  }

  bh_status list(const bh_list_info &wanted, bh_buf *out, bh_error *error) {
    if (wanted.kind != BH_LIST_TOOLS) return bh::fail(error, BH_E_UNSUPPORTED, "tools only");
    *out = bh_buf{tools_json.data(), tools_json.size(), nullptr, nullptr};
    return BH_OK;
  }
  std::uint32_t features() { return BH_TOOLS_ASKS_INPUT; }

  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *error) {
    const std::string_view name = bh::view(request.name);
    if (name == "wait") return BH_PENDING;
    if (name == "who") {
      std::string text = request.principal.n == 0 ? "anonymous" : "";
      text.append(bh::view(request.principal)).append(request.session != 0 ? " in " : " without ");
      text.append("a session ").append(bh::view(request.traceparent));
      answer(call, text);
      return BH_OK;
    }
    if (name != "ask" && name != "sure") return bh::fail(error, BH_E_NOT_FOUND, "no such tool");
    if (request.input_responses.n != 0) {
      answer(call, std::string(bh::view(request.request_state)) + " " +
                       std::string(bh::view(request.input_responses)));
      return BH_OK;
    }
    if ((request.flags & BH_CALL_ELICITATION) == 0) {
      answer(call, "the client cannot be asked");
      return BH_OK;
    }
    complete(call, BH_RESULT_INPUT_REQUIRED, std::string(name == "ask" ? question : confirmation));
    return BH_OK;
  }
  void call_cancel(bh_call call, const bh_cancel &cancel) {
    host_.log(BH_LOG_INFO, "cancelled for reason " + std::to_string(cancel.reason) + " \"" +
                               std::string(bh::view(cancel.text)) + "\"");
    answer(call, "cancelled");
  }

 private:
  void answer(bh_call call, const std::string &text) {
    std::string json = R"({"content":[{"type":"text","text":)";
    bh::json::append_quoted(&json, text);
    complete(call, BH_RESULT_OK, json + "}]}");
  }
  void complete(bh_call call, std::uint32_t kind, std::string json) {
    const bh_result result{sizeof result, kind, bh::buf(std::move(json))};
    tools_->complete(host_.ctx(), call, &result);
  }

  const bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
};

}  // namespace

BH_PLUGIN(Asks)
