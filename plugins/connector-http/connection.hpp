// A connection to an origin. It connects, sends a request and parses the response. Afterwards, it
// is closed or becomes idle so that it can be reused. See http1.hpp.
#pragma once

#include <sys/uio.h>

#include "http-codec/response_reader.hpp"
#include "http1.hpp"

namespace connector_http {

class Connection final : public HttpCall {
 public:
  Connection(Http1Client &client, Origin &origin, std::uint64_t connect_timeout_ms);

  // Queues the request and connects, after resolving the host name if necessary. On error, this
  // object is retired, nothing was sent, and the sink is not called.
  bh_status open(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent,
                 bh_error *error);
  // Sends a request on an idle connection. Returns false if nothing was sent because the peer has
  // closed the connection. The caller must then use another connection.
  bool send(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent);
  void cancel() override;

  // Connects to the next address. Called when the addresses are known.
  void connect_next();
  void fail(bh_status code, const std::string &text);

  // Returns false if the peer has closed the idle connection or is expected to close it soon.
  bool reusable(std::uint64_t now_ns) const;
  bool expired(std::uint64_t now_ns, std::uint64_t idle_ms) const noexcept;
  bool idle() const noexcept { return state_ == State::idle; }
  // Closes the socket. Called only by Http1Client::retire(), which deletes the object later.
  void close() noexcept;

 private:
  friend class Http1Client;
  enum class State : std::uint8_t { resolving, connecting, idle, busy, closed };

  void on_event(std::uint32_t events);
  void on_timer();

  bool begin_connect(const Address &address);
  void connect_done();
  void connect_failed(int error);
  void start_timer();
  void begin(HttpSink &sink, std::uint64_t *unsent);
  void queue_request(const HttpRequest &request, std::size_t skip);
  void flush();
  void set_unsent(std::uint64_t bytes) noexcept;
  void watch_for(std::uint32_t events);

  void readable();
  void ended(int error);
  void consume(std::string_view in);
  bool take_head(std::string_view in);
  bool deliver_body(std::string_view piece);
  void complete();
  HttpSink *detach(bool reuse);
  void protocol_error(const char *why);

  Http1Client &client_;
  Origin &origin_;
  HttpSink *sink_ = nullptr;
  std::uint64_t *unsent_ = nullptr;  // the route's count of unsent bytes
  int fd_ = -1;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
  State state_ = State::resolving;
  bool keep_alive_ = false;
  bool surplus_ = false;  // bytes followed the response, so the connection must not be reused
  bool received_ = false;
  std::uint32_t watched_ = 0;
  std::uint32_t keep_alive_s_ = 0;
  std::vector<Address> addresses_;  // addresses to try
  std::size_t tried_ = 0;
  std::string failure_;  // error message of the last failure
  std::uint64_t connect_timeout_ms_, deadline_ns_ = 0;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t account_ = 0;
  std::string out_;  // request bytes to send
  std::size_t out_at_ = 0;
  http_codec::ResponseReader reader_;
};

}  // namespace connector_http
