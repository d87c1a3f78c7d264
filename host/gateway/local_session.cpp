#include "gateway/local_session.hpp"

#include <algorithm>

#include "bulkhead/cpp/json_writer.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view initialize_params =
    R"({"protocolVersion":"2025-11-25","capabilities":{},)"
    R"("clientInfo":{"name":"bulkhead-cli","version":")" BULKHEAD_VERSION R"("}})";

static_assert(initialize_params.find(LocalSession::client_name) != std::string_view::npos);

class HostWire final : public SessionWire {
 public:
  explicit HostWire(Host &host) : host_(host) {}
  Result<void> open(OnMessage on_message) override {
    client_ = host_.connect(std::move(on_message));
    return {};
  }
  void send(std::string_view message) override { client_->send(message); }
  void wait(const std::function<bool()> &done, std::uint64_t timeout_ms) override {
    host_.run_until([&done] { return done() || stop_requested(); }, timeout_ms);
  }

 private:
  Host &host_;
  std::unique_ptr<LocalClient> client_;
};

LocalSession::Failure failure_of(std::string_view error) {
  std::string scratch;
  const std::string_view message = mcp::member(error, "message");
  std::string text = message.empty() ? "" : std::string(mcp::unquote(message, &scratch));
  return {"error " + std::string(mcp::member(error, "code")) + ": " + printable(text),
          std::string(error)};
}

}  // namespace

LocalSession::LocalSession(Host &host) : wire_(std::make_unique<HostWire>(host)) {}

void LocalSession::on_message(std::string_view message) {
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) return;
  if (scan.kind == mcp::Kind::request) {
    // The only request that servers may send is ping, because this client declares no capabilities.
    std::string reply = R"({"jsonrpc":"2.0","id":)" + std::string(scan.id.in(message));
    reply += scan.method == mcp::Method::ping
                 ? R"(,"result":{}})"
                 : R"(,"error":{"code":-32601,"message":"not supported by this client"}})";
    wire_->send(reply);
    return;
  }
  const bool is_answer = scan.kind == mcp::Kind::result || scan.kind == mcp::Kind::error;
  if (!is_answer || answered_ || scan.id.in(message) != waiting_for_) return;
  answered_ = true;
  if (scan.kind == mcp::Kind::result) {
    answer_ = std::string(scan.result.in(message));
  } else {
    answer_ = std::unexpected(failure_of(scan.error.in(message)));
  }
}

std::expected<void, LocalSession::Failure> LocalSession::open() {
  const auto opened = wire_->open([this](std::string_view message) { on_message(message); });
  if (!opened) return std::unexpected(Failure{opened.error().text, ""});
  const auto answer = request("initialize", initialize_params, list_timeout_ms);
  if (!answer) return std::unexpected(answer.error());
  wire_->send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  return {};
}

LocalSession::Answer LocalSession::request(std::string_view method, std::string_view params,
                                           std::uint64_t timeout_ms,
                                           const std::function<void()> &slow) {
  waiting_for_ = std::to_string(++next_id_);
  answered_ = false;
  std::string message = R"({"jsonrpc":"2.0","id":)" + waiting_for_ + R"(,"method":)";
  bh::json::append_quoted(&message, method);
  message.append(R"(,"params":)").append(params).append("}");
  wire_->send(message);
  const auto done = [this] { return answered_; };
  const std::uint64_t first_ms = slow ? std::min(slow_ms, timeout_ms) : timeout_ms;
  wire_->wait(done, first_ms);
  if (slow && !answered_ && !stop_requested() && !wire_->lost()) {
    slow();
    wire_->wait(done, timeout_ms - first_ms);
  }
  if (answered_) return std::move(answer_);
  if (stop_requested()) return std::unexpected(Failure{"interrupted", ""});
  if (wire_->lost()) {
    return std::unexpected(Failure{"the connection to the gateway was lost; " +
                                       std::string(method) + " may have been executed",
                                   ""});
  }
  return std::unexpected(
      Failure{"no response to " + std::string(method) + " within " + duration(timeout_ms), ""});
}

std::expected<std::vector<std::string>, LocalSession::Failure> LocalSession::list(
    std::string_view method, std::string_view key) {
  std::vector<std::string> items;
  std::string params = "{}";
  for (std::size_t page = 0; page < max_pages; ++page) {
    const auto answer = request(method, params, list_timeout_ms);
    if (!answer) return std::unexpected(answer.error());
    const std::string_view array = mcp::member(*answer, key);
    if (!array.empty() && array.front() == '[') {
      mcp::for_each_item(array, [&](std::string_view item) { items.emplace_back(item); });
    }
    const std::string_view cursor = mcp::member(*answer, "nextCursor");
    if (cursor.empty() || cursor.front() != '"') return items;
    params = R"({"cursor":)" + std::string(cursor) + "}";
  }
  return std::unexpected(Failure{
      std::string(method) + " returned more than " + std::to_string(max_pages) + " pages", ""});
}

}  // namespace bulkhead::program
