#include "route/stateless_server_edge.hpp"

#include "mcp/for_each.hpp"
#include "route/answer_form.hpp"

namespace bulkhead {

// Returns false for the methods, client notifications and server-initiated requests that exist only
// in the revisions with sessions.
bool StatelessServerEdge::has(mcp::Method method) const noexcept {
  switch (method) {
    case mcp::Method::initialize:
    case mcp::Method::ping:
    case mcp::Method::logging_set_level:
    case mcp::Method::resources_subscribe:
    case mcp::Method::resources_unsubscribe:
    case mcp::Method::notifications_initialized:
    case mcp::Method::notifications_progress:
    case mcp::Method::notifications_roots_list_changed:
    case mcp::Method::roots_list:
    case mcp::Method::sampling_create_message:
    case mcp::Method::elicitation_create:
    case mcp::Method::tasks_result:
    case mcp::Method::tasks_list:
      return false;
    default:
      return true;
  }
}

std::string StatelessServerEdge::opening_params(ClientCaps caps) const {
  return R"({"_meta":{)" + request_meta(caps, -1) + "}}";
}

Result<ServerEdge::Opened> StatelessServerEdge::opened(std::string_view result) const {
  const bool object = result.starts_with('{');
  const std::string_view supported =
      object ? mcp::member(result, "supportedVersions") : std::string_view{};
  bool speaks = false;
  std::string scratch, listed;
  if (supported.starts_with('[')) {
    mcp::for_each_item(supported, [&](std::string_view item) {
      if (!item.starts_with('"')) return true;
      const std::string_view text = mcp::unquote(item, &scratch);
      speaks = text == revision;
      if (listed.size() < 100) listed.append(listed.empty() ? "" : ", ").append(text.substr(0, 40));
      return !speaks;
    });
  }
  if (!speaks) {
    return fail(BH_E_PROTOCOL,
                "supports " +
                    (listed.empty() ? "unspecified MCP revisions" : "MCP revisions " + listed) +
                    ", not " + std::string(revision));
  }
  return describe(std::string(revision), result);
}

// In this revision, roots have no listChanged. A client that declares elicitation without modes
// supports forms.
std::string StatelessServerEdge::request_meta(ClientCaps caps, int log_level) const {
  const bool elicits = (caps & cap::elicitation) != 0;
  const bool modes = (caps & (cap::elicitation_form | cap::elicitation_url)) != 0;
  if (elicits && !modes) caps |= cap::elicitation_form;
  std::string text = R"("io.modelcontextprotocol/protocolVersion":")";
  text.append(revision)
      .append(R"(","io.modelcontextprotocol/clientCapabilities":)")
      .append(compose_client_caps(caps & ~cap::roots_changed))
      .append(R"(,"io.modelcontextprotocol/clientInfo":{"name":"bulkhead","version":")")
      .append(BULKHEAD_VERSION "\"}");
  if (log_level >= 0) {
    text.append(R"(,"io.modelcontextprotocol/logLevel":")")
        .append(log_level_text(log_level))
        .append("\"");
  }
  return text;
}

const AnswerForm *StatelessServerEdge::answer_form() const noexcept {
  return &stateless_answer_form();
}

const StatelessServerEdge &stateless_server_edge() noexcept {
  static const StatelessServerEdge edge;
  return edge;
}

bool is_hop_error(std::int32_t error_code) noexcept {
  return error_code <= -32020 && error_code >= -32099;
}

}  // namespace bulkhead
