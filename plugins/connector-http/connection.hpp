// One socket to an origin: connects, sends a request, takes the response apart, and is then idle
// again or gone. See http1.hpp.
#pragma once

#include <sys/uio.h>

#include "http-codec/response_reader.hpp"
#include "http1.hpp"

namespace connector_http {

class Connection final : public HttpCall {
 public:
  Connection(Http1Client &client, Origin &origin, std::uint64_t connect_timeout_ms);

  // Queues the request and connects (after the look-up, when one is needed). An error: the object
  // has retired, nothing was sent, the sink hears nothing.
  bh_status open(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent,
                 bh_error *error);
  // On an idle connection. False: the peer had closed it; nothing was written, take another.
  bool send(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent);
  void cancel() override;

  // The addresses are known: begins to connect.
  void connect_next();
  void fail(bh_status code, const std::string &text);

  // False when an idle connection should no longer be used: the peer closed it, or is about to.
  bool reusable(std::uint64_t now_ns) const;
  bool expired(std::uint64_t now_ns, std::uint64_t idle_ms) const noexcept;
  bool idle() const noexcept { return state_ == State::idle; }
  // Gives the socket back; the object lives on until the end of the turn.
  void close() noexcept;

 private:
  friend class Http1Client;
  enum class State : std::uint8_t { resolving, connecting, idle, busy, closed };

  static void on_event(void *arg, std::int32_t fd, std::uint32_t events);
  static void on_timer(void *arg);

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
  std::uint64_t *unsent_ = nullptr;  // the route's account of bytes that wait here
  int fd_ = -1;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
  State state_ = State::resolving;
  bool keep_alive_ = false;
  bool surplus_ = false;  // bytes behind the response: never reuse
  bool received_ = false;
  std::uint32_t watched_ = 0;
  std::uint32_t keep_alive_s_ = 0;
  std::vector<Address> addresses_;  // as they were when connecting began
  std::size_t tried_ = 0;
  std::string failure_;  // why open() cannot go on
  std::uint64_t connect_timeout_ms_, deadline_ns_ = 0;
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t account_ = 0;
  std::string out_;  // what the socket has not taken yet
  std::size_t out_at_ = 0;
  http_codec::ResponseReader reader_;
};

}  // namespace connector_http
