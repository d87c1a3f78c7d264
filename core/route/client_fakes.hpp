// Test fakes for the client side: a client that stores the messages it receives, and a function
// that opens a session for it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

// Calls the function if there is one, and then clears it. Tests use this to run code inside a
// fake's callback.
inline void call_once(std::function<void()> &f) {
  if (f) std::exchange(f, nullptr)();
}

struct FakeClient : ClientEnd {
  struct Sent {
    std::uint32_t kind;
    bh_session session;
    std::uint64_t stream;
    std::uint32_t http_status;
    std::string text;
  };
  std::vector<Sent> sent;
  std::vector<bh_session> ended;
  std::function<void()> inside;  // runs inside the next send()

  void send(const bh_outgoing &m) override {
    std::string text;
    for (std::uint32_t i = 0; i < m.part_count; ++i) text.append(bh::view(m.parts[i]));
    sent.push_back({m.kind, m.session, m.stream, m.http_status, std::move(text)});
    call_once(inside);
  }
  void session_ended(bh_session session, std::string_view) override { ended.push_back(session); }
};

inline Session &open_session(Sessions &sessions, ClientEnd &client, std::uint32_t flags = 0) {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.flags = flags;
  peer.transport = bh::str("http");
  peer.address = bh::str("127.0.0.1:7");
  peer.principal = bh::str("somebody");
  peer.process_name = bh::str("agent");
  peer.max_message_bytes = 4096;
  return sessions.open(client, peer, 42);
}

}  // namespace bulkhead
