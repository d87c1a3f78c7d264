// One connection of a guest: what it speaks, its session, and the bounds on both directions.
//
// The first bytes say what it is. Frames and lines are one session of the host, opened with the
// first message; anything else is given to the owner to be handed off. Thread: the reactor's.
#pragma once

#include <bulkhead/abi/ext/transport.h>
#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "mcp-frame/frame_reader.hpp"
#include "stdio-lines/line_reader.hpp"
#include "stdio-lines/line_writer.hpp"
#include "transport-vsock/config.hpp"
#include "transport-vsock/counters.hpp"
#include "transport-vsock/seldom.hpp"

namespace transport_vsock {

class Connection;

inline constexpr std::size_t max_unsent = 256u << 20;  // bytes, of all connections

// What all connections share.
class ConnectionOwner {
 public:
  ConnectionOwner(const bh::Host &plugin_host, const bh_host_transport *up, const Config &settings)
      : host(plugin_host), transport(up), config(settings), counters(plugin_host) {}

  const bh::Host &host;
  const bh_host_transport *const transport;
  const Config &config;
  const Counters counters;
  stdio_lines::Scratch scratch;  // what is received is used up before the handler returns
  std::size_t unsent = 0;        // bytes that wait for all guests together
  Seldom stalled, no_session;    // lines of the log about any of them

  // The connection has a session from now on.
  virtual void on_session(Connection &connection, bh_session session) = 0;
  // It is not MCP: take its descriptor, and what it has sent.
  virtual void on_other(Connection &connection, std::string_view bytes) = 0;
  // Call flush() at the end of this turn.
  virtual void on_unflushed(Connection &connection) = 0;
  // Destroy it in on_event_end() or at the end of this turn.
  virtual void on_doomed(Connection &connection) noexcept = 0;
  // `unsent` is more than max_unsent.
  virtual void on_too_much_unsent() = 0;
  // The end of a reactor event; the connection may be gone afterwards.
  virtual void on_event_end() = 0;
  // Something may be overdue: call check() of all connections now and then.
  virtual void want_checks() noexcept = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : private stdio_lines::LineSink {
 public:
  static constexpr std::size_t max_line = 1u << 20;     // bytes, of the older generation
  static constexpr std::size_t max_names = 256;         // of processes on one connection
  static constexpr std::size_t pause_bytes = 1u << 20;  // unsent: no more is taken meanwhile
  static constexpr std::size_t max_waiting = 8u << 20;  // unsent: it is disconnected
  // Requests that wait for a place among those under way, before no more is taken.
  static constexpr std::size_t max_parked = 1u << 20;  // bytes

  // Takes the descriptor over. `peer`: "cid:3".
  Connection(ConnectionOwner &owner, int fd, std::string peer);
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  bool start();                           // false: the host cannot watch it
  void received(std::string_view bytes);  // that were read before it was made

  bh_status send(const bh_outgoing &message);
  void session_ended() noexcept;  // by the host
  void flush();
  // Ends what is overdue. True: something may become so later.
  bool check(std::uint64_t now_ns);

  // The descriptor, not watched any more and the caller's; the connection is doomed.
  int release() noexcept;
  bh_session session() const noexcept { return session_; }
  bool doomed() const noexcept { return doomed_; }
  std::size_t unsent() const noexcept { return counted_; }
  void too_slow() noexcept { doom(owner_.counters.too_slow); }

  std::size_t index = 0;      // the owner's
  bool unflushed = false;     // the owner's
  bool from_dialer = false;   // the owner's
  std::uint32_t peer_id = 0;  // the owner's

 private:
  enum class Mode : std::uint8_t { sniffing, frames, lines };
  struct Parked {
    std::uint64_t stream;
    std::string message;
    bool awaited;
  };
  struct Name {
    std::string raw, clean;  // as it stands in frames; for logs and policies
  };

  static void on_event(void *arg, std::int32_t fd, std::uint32_t events) noexcept;
  void on_readable();
  void input_ended();
  void tell_input_ended();
  void doom(bh_metric why) noexcept;
  void update_events();
  void after_flush(stdio_lines::Flush result);
  template <class Add>
  bool queue(Add add);
  void count_unsent() noexcept;

  void sniff_all(std::string_view all);
  void consume(std::string_view in);
  void consume_frames(std::string_view in);
  void consume_lines(std::string_view in);
  bool pauses(std::string_view rest);
  void resume();
  void on_frame(const mcp_frame::Frame &frame);
  void on_bad_frame(std::uint32_t stream, mcp_frame::Fault fault);
  bool on_line(std::string_view line) override;
  bool on_too_long(std::string_view start) override;
  bool take_unanswered(std::string_view message);

  bool name_process(std::string_view name);
  void use_name(std::size_t known);
  bool open_session();
  void deliver_in_turn(std::uint64_t stream, std::string_view message, bool awaited);
  void deliver_parked();
  void park(std::uint64_t stream, std::string_view message, bool awaited);
  bool full() const noexcept;
  void deliver(std::uint64_t stream, std::string_view message, bool awaited);
  bool send_frame(std::uint32_t stream, std::string_view name, std::span<const bh_str> parts);
  bh_status send_as_frame(const bh_outgoing &message);
  bh_status send_too_large(std::uint32_t stream, std::string_view name,
                           std::span<const bh_str> parts);

  ConnectionOwner &owner_;
  int fd_;
  const std::string peer_;
  bh_watch watch_ = 0;
  std::uint32_t events_ = BH_FD_READ;
  Mode mode_ = Mode::sniffing;
  bool doomed_ = false, input_ended_ = false, blocked_ = false;
  bool in_event_ = false;    // flush() comes at its end
  bool introduced_ = false;  // a metadata line has come, and nothing behind it: it may wait
  bool duplex_ = false;      // the guest takes messages that answer nothing
  bh_session session_ = 0;
  std::uint32_t last_stream_ = 0;
  std::uint32_t open_ = 0;  // messages whose answer is awaited
  std::deque<Parked> parked_;
  std::size_t parked_bytes_ = 0;
  std::vector<Name> names_;
  std::size_t name_ = 0;  // of names_, of the newest frame
  // While sniffing: of the connection, or of what follows the metadata line; blocked: the last
  // progress.
  std::uint64_t since_ns_;
  std::size_t waiting_before_ = 0;
  std::string undecided_;    // what has come while sniffing
  bool paused_ = false;      // what waits for the guest must go first
  std::string held_;         // has been received, and is taken after the pause
  std::size_t counted_ = 0;  // of the owner's unsent
  mcp_frame::FrameReader frames_;
  stdio_lines::LineReader lines_;
  const std::size_t bound_, pause_at_;  // of what waits for the guest
  stdio_lines::LineWriter writer_;
};

}  // namespace transport_vsock
