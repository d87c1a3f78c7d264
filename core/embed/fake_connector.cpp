#define BH_STATIC_PLUGIN
#include "embed/fake_connector.hpp"

#include <algorithm>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/tables.hpp"

namespace {

const bh_host_connector *connector_host() {
  const bh_host *host = FakeUpstreams::get().host;
  return static_cast<const bh_host_connector *>(host->get_ext(host->ctx, BH_EXT_HOST_CONNECTOR));
}

// Responds in the next iteration of the event loop, like a real connection.
void answer_later(bh_lane lane, std::string text) {
  FakeUpstreams &u = FakeUpstreams::get();
  u.answers.push_back({lane, std::move(text)});
  const bh::Host host(u.host);
  host.post(
      [](void *arg) {
        const auto &answer = *static_cast<FakeUpstreams::Answer *>(arg);
        connector_host()->message(FakeUpstreams::get().host->ctx, answer.lane, 0,
                                  bh::str(answer.text));
      },
      &u.answers.back());
}

class FakeConnector {
 public:
  static constexpr bh::Info info{.id = "fake-connector",
                                 .name = "Fake",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_CONNECTOR}};
  explicit FakeConnector(const bh_host *host) { FakeUpstreams::get().host = host; }
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_CONNECTOR) ? bh::connector_table<FakeConnector>() : nullptr;
  }

  bh_status lane_open(bh_lane lane, const bh_lane_info &info_, void **out, bh_error *error) {
    FakeUpstreams &u = FakeUpstreams::get();
    if (u.refuse_open || bh::view(info_.server) == u.refused_server)
      return bh::fail(error, BH_E_UNAVAILABLE, "refused by the test");
    u.lanes.push_back({lane, std::string(bh::view(info_.server)), true, {}, {}});
    *out = reinterpret_cast<void *>(u.lanes.size());
    return BH_OK;
  }
  bh_status lane_send(void *lane, const bh_lane_message &m, bh_error *) {
    FakeUpstreams &u = FakeUpstreams::get();
    FakeLane &l = u.lanes[reinterpret_cast<std::uintptr_t>(lane) - 1];
    std::string text;
    for (std::uint32_t i = 0; i < m.part_count; ++i) text += bh::view(m.parts[i]);
    l.sent.push_back(text);
    const std::string head = R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(text);
    if (text.find(R"("method":"initialize")") != std::string::npos) {
      if (!u.answer_initialize) return BH_OK;
      const auto caps = u.capabilities.find(l.server);
      answer_later(l.handle, head + R"(,"result":{"protocolVersion":"2025-06-18","capabilities":)" +
                                 (caps == u.capabilities.end() ? R"({"tools":{}})" : caps->second) +
                                 R"(,"serverInfo":{"name":"f","version":"1"}}})");
    } else if (text.find(R"("method":"tools/list")") != std::string::npos) {
      if (u.hold_tools) return BH_OK;
      const auto tools = u.tools.find(l.server);
      const auto cursor = u.cursor.find(l.server);
      const std::string next =
          cursor == u.cursor.end() ? "" : R"(,"nextCursor":")" + cursor->second + "\"";
      answer_later(l.handle, tools == u.tools.end()
                                 ? head + R"(,"error":{"code":-32603,"message":"no list"}})"
                                 : head + R"(,"result":{"tools":)" + tools->second + next + "}}");
    } else if (text.find("/list\"") != std::string::npos) {
      const bool templates = text.find("templates") != std::string::npos;
      const bool prompts = text.find("prompts") != std::string::npos;
      answer_later(l.handle, head + R"(,"result":{")" +
                                 (templates ? "resourceTemplates"
                                  : prompts ? "prompts"
                                            : "resources") +
                                 R"(":[]}})");
    }
    return BH_OK;
  }
  void lane_ready(void *lane, bh_str) {
    FakeUpstreams &u = FakeUpstreams::get();
    if (u.on_ready) u.on_ready(u.lanes[reinterpret_cast<std::uintptr_t>(lane) - 1].handle);
  }
  void lane_abandon(void *lane, std::uint64_t exchange) {
    FakeUpstreams &u = FakeUpstreams::get();
    FakeLane &l = u.lanes[reinterpret_cast<std::uintptr_t>(lane) - 1];
    l.abandoned.push_back(exchange);
    if (u.on_abandon) u.on_abandon(l.handle);
  }
  void lane_close(void *lane) {
    FakeLane &l = FakeUpstreams::get().lanes[reinterpret_cast<std::uintptr_t>(lane) - 1];
    l.open = false;
    connector_host()->lane_closed(FakeUpstreams::get().host->ctx, l.handle);
  }
};

}  // namespace

BH_PLUGIN(FakeConnector)

FakeUpstreams &FakeUpstreams::get() {
  static FakeUpstreams upstreams;
  return upstreams;
}

FakeLane &FakeUpstreams::lane(std::string_view server) {
  const auto at = std::find_if(lanes.rbegin(), lanes.rend(),
                               [&](const FakeLane &l) { return l.server == server; });
  return *at;
}

std::string FakeUpstreams::id_of(const std::string &message) {
  const std::size_t at = message.find("\"id\":");
  if (at == std::string::npos) return {};
  return message.substr(at + 5, message.find_first_of(",}", at) - at - 5);
}

void FakeUpstreams::send(std::string_view server, const std::string &message,
                         std::uint64_t exchange) {
  connector_host()->message(host->ctx, lane(server).handle, exchange, bh::str(message));
}

void FakeUpstreams::fall(std::string_view server, const std::string &reason) {
  const bh_error error = bh::make_error(BH_E_UNAVAILABLE, reason);
  const bh_lane_failure failure = bh::lane_failure(error);
  connector_host()->lane_down(host->ctx, lane(server).handle, &failure);
}

void FakeUpstreams::send_on(bh_lane lane, const std::string &message) {
  connector_host()->message(host->ctx, lane, 0, bh::str(message));
}

void FakeUpstreams::lane_down(bh_lane lane, const bh_error &error) {
  const bh_lane_failure failure = bh::lane_failure(error);
  connector_host()->lane_down(host->ctx, lane, &failure);
}
