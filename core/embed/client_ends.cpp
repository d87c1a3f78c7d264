// Implements ClientEnd, through which the router sends messages to a client, for transport plugins
// and for the embedding program.
#include "embed/client_ends.hpp"

#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/cpp/basics.hpp"

namespace bulkhead {
namespace {

class TransportEnd final : public ClientEnd {
 public:
  TransportEnd(const bh_transport *table, void *self) : table_(table), self_(self) {}
  void send(const bh_outgoing &message) override { table_->send(self_, &message); }
  void session_ended(bh_session session, std::string_view reason) override {
    table_->session_ended(self_, session, bh::str(reason));
  }

 private:
  const bh_transport *table_;
  void *self_;
};

class LocalClientImpl final : public LocalClient, private ClientEnd {
  using OnMessage = std::function<void(std::string_view)>;

 public:
  LocalClientImpl(Clients &clients, OnMessage on_message)
      : clients_(clients), on_message_(std::make_shared<const OnMessage>(std::move(on_message))) {
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("local");
    peer.principal = bh::str("local");
    clients_.open(*this, peer, &session_, nullptr);
  }
  ~LocalClientImpl() override {
    if (session_ != 0) clients_.close(session_, BH_SESSION_GONE);
  }
  void send(std::string_view message) override {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    if (session_ != 0) clients_.deliver(session_, 0, message, &delivery);
  }

 private:
  void send(const bh_outgoing &message) override {
    std::string text;
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    const auto keep = on_message_;  // keeps the callback alive if it destroys the client
    if (!text.empty()) (*keep)(text);
  }
  void session_ended(bh_session, std::string_view) override { session_ = 0; }

  Clients &clients_;
  const std::shared_ptr<const OnMessage> on_message_;
  bh_session session_ = 0;
};

}  // namespace

std::unique_ptr<ClientEnd> make_transport_end(Instance &instance) {
  return std::make_unique<TransportEnd>(instance.ext<bh_transport>(BH_EXT_TRANSPORT),
                                        instance.self());
}

std::unique_ptr<LocalClient> make_local_client(
    Clients &clients, std::function<void(std::string_view message)> on_message) {
  return std::make_unique<LocalClientImpl>(clients, std::move(on_message));
}

}  // namespace bulkhead
