// Accepts MCP clients over HTTP. This file connects the server to the plugin ABI.
#include <bulkhead/cpp/text.hpp>

#include <sys/random.h>

#include <array>
#include <memory>
#include <string>

#include "bulkhead/cpp/tables.hpp"
#include "server.hpp"

namespace transport_http {

namespace {

constexpr std::string_view secret_name = "http-token";

std::string make_token() {
  std::array<unsigned char, 32> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return bh::hex({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

}  // namespace

class TransportHttp {
 public:
  static constexpr bh::Info info{.id = "transport-http",
                                 .name = "HTTP transport",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TRANSPORT}};

  explicit TransportHttp(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    transport_ = host_.ext<bh_host_transport>(BH_EXT_HOST_TRANSPORT);
    if (!host_.has_reactor() || transport_ == nullptr) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "transport-http requires bh.host.executor/1, bh.host.fd/1 and "
                      "bh.host.transport/1");
    }
    return parse_config(bh::view(json), config_, error);
  }

  bh_status start(bh_error *error) {
    server_ = std::make_unique<Server>(host_, transport_, config_);
    return find_token(error);
  }

  bh_status listen(bh_error *error) {
    if (!server_) return bh::fail(error, BH_E_INVALID, "listen was called before start");
    return server_->listen(token_, error);
  }

  void stop_accepting() noexcept {
    if (server_) server_->stop_accepting();
  }
  void drain(std::uint64_t) noexcept {
    if (server_) server_->drain();
  }
  bh_status probe(bh_error *) const noexcept {
    return server_ && server_->sends_after_drain() ? BH_PENDING : BH_OK;
  }
  void stop() noexcept { server_.reset(); }

  bh_status send(const bh_outgoing &message) {
    return server_ ? server_->send(message) : bh_status{BH_STALE};
  }
  void session_ended(bh_session session, bh_str) noexcept {
    if (server_) server_->session_ended(session);
  }
  bh_str endpoint() const noexcept {
    return bh::str(server_ ? server_->endpoint() : std::string_view{});
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<TransportHttp>() : nullptr;
  }

 private:
  // Determines the token: the configured one, or with "auto" the one in the host's secrets, which
  // is created if it is missing. A token is mandatory if other machines can connect.
  bh_status find_token(bh_error *error) {
    ListenAddress address;
    if (const bh_status s = ListenAddress::parse(config_.listen, address, error); s != BH_OK) {
      return s;
    }
    token_ = config_.guard.token;
    if (token_.empty() && !address.loopback) token_ = "auto";
    if (token_ != "auto") return BH_OK;
    const auto *secrets = host_.ext<bh_host_secrets>(BH_EXT_HOST_SECRETS);
    if (secrets == nullptr) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "the host does not store secrets: configure a token for this address");
    }
    std::array<char, 4096> buffer;
    std::uint64_t n = 0;
    const bool known = secrets->get(host_.ctx(), bh::str(secret_name), buffer.data(), buffer.size(),
                                    &n) == BH_OK &&
                       n > 0;
    token_ = known ? std::string(buffer.data(), n) : make_token();
    if (token_.empty()) return bh::fail(error, BH_E_IO, "cannot create a token: getrandom failed");
    if (!known) {
      const bh_status s = secrets->put(host_.ctx(), bh::str(secret_name), bh::str(token_));
      if (s != BH_OK) return bh::fail(error, s, "the host could not store the new bearer token");
    }
    host_.log(BH_LOG_INFO, std::string(known ? "using the" : "created a") +
                               " bearer token stored in the host's secrets as '" +
                               std::string(secret_name) +
                               "'; clients must send it as Authorization: Bearer");
    return BH_OK;
  }

  bh::Host host_;
  const bh_host_transport *transport_ = nullptr;
  Config config_;
  std::string token_;
  std::unique_ptr<Server> server_;
};

}  // namespace transport_http

using transport_http::TransportHttp;
BH_PLUGIN(TransportHttp)
