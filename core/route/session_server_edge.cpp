#include <array>
#include <utility>

#include "route/server_edge.hpp"

namespace bulkhead {
namespace {

class SessionServerEdge final : public ServerEdge {
 public:
  explicit SessionServerEdge(std::uint8_t offered) : offered_(offered) {}

  bool has(mcp::Method method) const noexcept override {
    return method != mcp::Method::tasks_update;
  }
  mcp::Method opening_method() const override { return mcp::Method::initialize; }

  std::string opening_params(ClientCaps caps) const override {
    std::string text = R"({"protocolVersion":")";
    return text.append(revisions[offered_])
        .append(R"(","capabilities":)")
        .append(compose_client_caps(caps))
        .append(R"(,"clientInfo":{"name":"bulkhead","version":")" BULKHEAD_VERSION "\"}}");
  }

  Result<Opened> opened(std::string_view result) const override {
    const bool object = result.starts_with('{');
    std::string scratch;
    const std::string_view token =
        object ? mcp::member(result, "protocolVersion") : std::string_view{};
    std::string revision;
    if (token.starts_with('"')) revision = mcp::unquote(token, &scratch);
    if (!find_revision(revision).has_value()) {
      return fail(BH_E_PROTOCOL, "uses MCP revision \"" + revision.substr(0, 40) +
                                     "\", which this gateway does not support");
    }
    return describe(std::move(revision), result);
  }

  std::string_view confirmation() const override {
    return R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
  }
  std::string request_meta(ClientCaps, int) const override { return {}; }

 private:
  const std::uint8_t offered_;
};

}  // namespace

ServerEdge::Opened ServerEdge::describe(std::string revision, std::string_view result) {
  Opened out;
  out.revision = std::move(revision);
  const std::string_view caps = mcp::member(result, "capabilities");
  out.caps = parse_server_caps(caps.starts_with('{') ? caps : std::string_view("{}"));
  const std::string_view instructions = mcp::member(result, "instructions");
  std::string scratch;
  if (instructions.starts_with('"')) {
    out.instructions = mcp::unquote(instructions, &scratch).substr(0, max_instructions_bytes);
  }
  return out;
}

const ServerEdge &session_server_edge(std::uint8_t offered) noexcept {
  static const std::array<SessionServerEdge, revisions.size()> edges = {
      SessionServerEdge(0), SessionServerEdge(1), SessionServerEdge(2), SessionServerEdge(3)};
  return edges.at(offered);
}

}  // namespace bulkhead
