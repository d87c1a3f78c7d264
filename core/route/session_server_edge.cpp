#include "route/server_edge.hpp"

namespace bulkhead {
namespace {

class SessionServerEdge final : public ServerEdge {
 public:
  mcp::Method opening_method() const override { return mcp::Method::initialize; }

  std::string opening_params(ClientCaps caps) const override {
    std::string text = R"({"protocolVersion":")";
    return text.append(revisions[newest_revision])
        .append(R"(","capabilities":)")
        .append(compose_client_caps(caps))
        .append(R"(,"clientInfo":{"name":"bulkhead","version":")" BULKHEAD_VERSION "\"}}");
  }

  Result<Opened> opened(std::string_view result) const override {
    const bool object = result.starts_with('{');
    std::string scratch;
    const std::string_view token =
        object ? mcp::member(result, "protocolVersion") : std::string_view{};
    Opened out;
    if (token.starts_with('"')) out.revision = mcp::unquote(token, &scratch);
    if (!find_revision(out.revision).has_value()) {
      return fail(BH_E_PROTOCOL, "uses MCP revision \"" + out.revision.substr(0, 40) +
                                     "\", which this gateway does not support");
    }
    const std::string_view caps = mcp::member(result, "capabilities");
    out.caps = parse_server_caps(caps.starts_with('{') ? caps : std::string_view("{}"));
    const std::string_view instructions = mcp::member(result, "instructions");
    if (instructions.starts_with('"')) {
      out.instructions = mcp::unquote(instructions, &scratch).substr(0, max_instructions_bytes);
    }
    return out;
  }

  std::string_view confirmation() const override {
    return R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
  }
  std::string request_meta(ClientCaps) const override { return {}; }
};

}  // namespace

const ServerEdge &session_server_edge() noexcept {
  static const SessionServerEdge edge;
  return edge;
}

}  // namespace bulkhead
