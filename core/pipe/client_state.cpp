#include "pipe/client_state.hpp"

#include "bulkhead/abi/ext/connector.h"
#include "mcp/scan.hpp"

namespace bulkhead::pipe {
namespace {

constexpr std::string_view changed[] = {
    R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})",
    R"({"jsonrpc":"2.0","method":"notifications/resources/list_changed"})",
    R"({"jsonrpc":"2.0","method":"notifications/prompts/list_changed"})"};

std::string uri_of(std::string_view text) {
  const std::string_view params = mcp::member(text, "params");
  return std::string(params.starts_with('{') ? mcp::member(params, "uri") : "");
}

}  // namespace

void ClientState::on_sent(std::string_view method, std::string_view text) {
  if (method == "\"tools/list\"") {
    read_[tools] = true;
  } else if (method == "\"resources/list\"" || method == "\"resources/templates/list\"") {
    read_[resources] = true;
  } else if (method == "\"prompts/list\"") {
    read_[prompts] = true;
  } else if (method == "\"logging/setLevel\"") {
    if (text.size() <= limits_.max_handshake_bytes) set_level_ = text;
  } else if (method == "\"resources/subscribe\"") {
    subscribe(text);
  } else if (method == "\"resources/unsubscribe\"") {
    unsubscribe(text);
  }
}

void ClientState::clear() {
  set_level_.clear();
  subscribe_.clear();
  subscribe_bytes_ = 0;
  read_ = {};
}

void ClientState::subscribe(std::string_view text) {
  std::string uri = uri_of(text);
  if (uri.empty() || subscribe_.contains(uri) || subscribe_.size() >= limits_.max_subscriptions ||
      subscribe_bytes_ + text.size() > limits_.max_subscription_bytes) {
    return;
  }
  subscribe_bytes_ += text.size();
  subscribe_.emplace(std::move(uri), text);
}

void ClientState::unsubscribe(std::string_view text) {
  const auto at = subscribe_.find(uri_of(text));
  if (at == subscribe_.end()) return;
  subscribe_bytes_ -= at->second.size();
  subscribe_.erase(at);
}

void ClientState::repeat(Ends &ends, Backlog &backlog) {
  const auto send = [&](const std::string &text) {
    const std::uint64_t exchange = backlog.next_exchange();
    if (ends.send(BH_LANE_REQUEST, exchange, text)) repeated_.insert(exchange);
  };
  if (!set_level_.empty()) send(set_level_);
  for (const auto &[uri, text] : subscribe_) send(text);
}

void ClientState::announce_lists(Ends &ends) const {
  for (std::size_t i = 0; i < read_.size(); ++i) {
    if (read_[i]) ends.to_client(changed[i]);
  }
}

}  // namespace bulkhead::pipe
