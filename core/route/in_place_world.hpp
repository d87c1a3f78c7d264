// Test fixture for a complete Router with one fake tools plugin and one client. The messages that
// the client receives are stored.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/router.hpp"

namespace bulkhead {

struct Tools {
  std::string list;
  bool fails = false;
  std::uint32_t features = 0;
  bh_status subscribe_status = BH_PENDING;
  std::vector<std::string> calls{};  // "method name" of each call
  std::vector<bh_call> ids{};        // the ids of `calls`
};

inline const bh_tools tools_table = {
    sizeof(bh_tools),
    0,
    [](void *self, const bh_list_info *info, bh_buf *out, bh_error *error) -> bh_status {
      const std::uint32_t kind = info->kind;
      const Tools &tools = *static_cast<Tools *>(self);
      if (kind == BH_LIST_TEMPLATES && tools.features != 0) {
        *out = bh::buf(std::string(R"([{"uriTemplate":"note:///{+id}","name":"note"}])"));
        return BH_OK;
      }
      if (kind != BH_LIST_TOOLS) return BH_E_UNSUPPORTED;
      if (tools.fails) return bh::fail(error, BH_E_UNAVAILABLE, "the folder has gone");
      *out = bh::buf(std::string(tools.list));
      return BH_OK;
    },
    [](void *self, bh_call call, const bh_call_info *info, bh_error *error) -> bh_status {
      Tools &tools = *static_cast<Tools *>(self);
      tools.calls.push_back(std::string(bh::view(info->method)) + " " +
                            std::string(bh::view(info->name)));
      tools.ids.push_back(call);
      if (tools.subscribe_status >= BH_OK) return tools.subscribe_status;
      return bh::fail(error, tools.subscribe_status, "it may not be watched");
    },
    [](void *, bh_call, const bh_cancel *) {},
    [](void *self) -> std::uint32_t { return static_cast<Tools *>(self)->features; },
};

inline const bh_policy policy_table = {
    sizeof(bh_policy),
    0,
    [](void *) -> std::uint32_t { return BH_POLICY_FILTERS_LISTS; },
    [](void *, const bh_policy_request *, bh_verdict *, bh_error *) -> bh_status { return BH_OK; },
    [](void *, const bh_policy_request *, bh_str, bh_verdict *, bh_error *) -> bh_status {
      return BH_OK;
    },
    [](void *self, const bh_policy_request *request, bh_error *) -> bh_status {
      static_cast<std::vector<std::uint64_t> *>(self)->push_back(request->exchange);
      return BH_PENDING;
    },
    nullptr,
};

struct Alone : private ClientEnd {
  struct Sent {
    std::uint32_t kind;
    bh_session session;
    std::uint64_t stream;
    std::uint32_t http_status;
    std::string text;
  };

  Profile profile;
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  Tools tools{R"([{"name":"x"},{"name":"y"}])"};
  std::vector<std::uint64_t> asked, unanswered;
  std::string log, got;
  std::vector<Sent> sent;
  std::unique_ptr<Router> router;
  Upstream *upstream = nullptr;
  bh_session session = 0;

  void start() {
    RouterHooks hooks;
    hooks.log = [this](std::int32_t, std::string_view text) { log.append(text).append("\n"); };
    hooks.on_unanswered = [this](std::uint64_t number, bool) { unanswered.push_back(number); };
    router = std::make_unique<Router>(profile, *reactor, std::move(hooks));
    ServerDef def;
    def.name = "t";
    auto made = std::make_unique<Upstream>(router->parts().servers.lanes, def);
    made->tools = &tools_table;
    made->self = &tools;
    upstream = made.get();
    router->parts().servers.list.add(std::move(made));
    router->start(true);
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
    REQUIRE(router->parts().clients.sessions.open(*this, peer, &session, nullptr) == BH_OK);
  }
  ~Alone() override {
    router->parts().clients.sessions.end_all("the end");
    router->close_lanes();
  }
  void list() { ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"); }
  void ask(std::string_view message) {
    got.clear();
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->parts().clients.sessions.deliver(session, 0, message, &delivery);
  }
  // Delivers a message without a session. If `headers` is null, the transport has no headers.
  bh_status ask_alone(std::uint64_t stream, std::string_view message,
                      const std::vector<bh_header> *headers = nullptr,
                      std::string_view address = "127.0.0.1:1") {
    got.clear();
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("http");
    peer.address = bh::str(address);
    bh_incoming in{};
    in.size = sizeof in;
    in.peer = &peer;
    in.stream = stream;
    in.message = bh::str(message);
    if (headers != nullptr) {
      in.flags = BH_INCOMING_HEADERS;
      in.headers = headers->data();
      in.header_count = static_cast<std::uint32_t>(headers->size());
    }
    bh_delivery out{};
    out.size = sizeof out;
    return router->parts().clients.sessions.deliver_message(*this, in, &out);
  }
  // `method` is "subscribe" or "unsubscribe".
  void watch(const std::string &method, const std::string &uri) {
    ask(R"({"jsonrpc":"2.0","id":2,"method":"resources/)" + method + R"(","params":{"uri":")" +
        uri + "\"}}");
  }
  void complete() { router->parts().servers.tools.complete(tools.ids.back(), BH_RESULT_OK, "{}"); }
  ClientEnd &end() { return *this; }
  bool has(std::string_view text) const { return got.find(text) != std::string::npos; }

 private:
  void send(const bh_outgoing &message) override {
    std::string text;
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    got += text;
    sent.push_back({message.kind, message.session, message.stream, message.http_status, text});
  }
  void session_ended(bh_session, std::string_view) override {}
};

}  // namespace bulkhead
