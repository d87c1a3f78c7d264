// Reads requests from one client connection and writes the responses. Limits both input and output.
// The connection handles the framing (RequestFeed) and the order; its owner handles the requests.
//
// One request is processed at a time. Pipelined requests wait, up to a limit, and are answered in
// order. Runs on the reactor thread.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "bulkhead/cpp/host.hpp"
#include "http-codec/byte_buffer.hpp"
#include "http-codec/request_feed.hpp"

namespace transport_http {

using http_codec::ByteBuffer;
using http_codec::Field;
using http_codec::Method;
using http_codec::RequestFeed;
using http_codec::RequestHead;

class Connection;
struct Session;

// Limits for each connection. Set once, before the first connection.
struct ConnectionBounds {
  http_codec::FeedLimits feed;
  std::uint64_t queue_bytes = 80ull << 20;  // unsent output
  // A peer that reads nothing for stall_ns is disconnected.
  std::uint64_t stall_ns = 60'000'000'000;
  std::uint64_t request_ns = 30'000'000'000;      // time limit for receiving a complete request
  std::uint64_t keep_alive_ns = 300'000'000'000;  // an idle connection is closed after this time
  std::uint64_t quiet_ns = 25'000'000'000;  // after this time without output, on_quiet is called
  std::uint64_t linger_ns = 2'000'000'000;  // time for the peer to read the last response
};

class ConnectionOwner {
 public:
  // Returns a receive buffer that is shared by all connections. The bytes received into it are
  // consumed before the event handler returns.
  virtual std::span<char> scratch() noexcept = 0;
  // Called when the head of a request is complete, but not its body. Returns false if the owner has
  // rejected the request and sent a response.
  virtual bool on_head(Connection &connection, const RequestFeed &feed) = 0;
  virtual void on_request(Connection &connection, const RequestFeed &feed) = 0;
  // Called if the framing is invalid or the request arrives too slowly. The owner must respond with
  // this status and close the connection.
  virtual void on_refused(Connection &connection, int status) = 0;
  // Called if a response is pending, but nothing has been written for quiet_ns.
  virtual void on_quiet(Connection &connection) = 0;
  // Called if the connection is unusable. The owner must destroy it at the end of the event.
  virtual void on_doomed(Connection &connection, bool too_slow) noexcept = 0;
  // Called if the connection has become idle but has already received the next request's bytes. The
  // owner must call resume() at the end of the event.
  virtual void on_ready(Connection &connection) noexcept = 0;
  // Called at the end of a reactor event. The owner may destroy connections here.
  virtual void on_event_end() = 0;
  // Requests that check() be called at about this time. Earlier calls are harmless.
  virtual void want_check(std::uint64_t at_ns) noexcept = 0;

 protected:
  ~ConnectionOwner() = default;
};

// The data from a request that is still needed for its response after the bytes of the request have
// been released.
struct ReplyContext {
  bool admitted = false;   // the head has passed the guard
  bool body_less = false;  // true for HEAD
  bool persistent = true;  // the connection may be reused after the response
  bool chunkable = true;   // HTTP/1.1
  bool primed = false;     // event streams start with an empty event (since revision 2025-11-25)
  std::string origin;      // an allowed Origin for Access-Control-Allow-Origin
};

// The stream to which the current request belongs.
struct Attachment {
  enum class Role : std::uint8_t { none, post, general, http_sse, sessionless };
  Role role = Role::none;
  Session *session = nullptr;
  std::uint64_t stream = 0;
};

class Connection {
 public:
  static constexpr std::size_t max_backlog = 64u << 10;

  Connection(ConnectionOwner &owner, const bh::Host &host, const ConnectionBounds &bounds, int fd,
             std::string_view peer);
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  // Registers the descriptor with the host. Returns false on failure.
  bool start() noexcept;
  // Processes bytes that were pipelined after the completed request.
  void resume();
  // Enforces time-outs. Returns the time at which check() must be called next.
  std::uint64_t check(std::uint64_t now_ns);

  // Writes as much as possible and queues the rest. Returns false if the connection must be
  // destroyed.
  bool write(iovec *parts, std::size_t count);
  // Called when a response is complete. The next request may follow.
  void finish_answer();
  // Begins a response that is sent in several writes.
  void begin_stream() noexcept { mode_ = Mode::streaming; }
  bool streaming() const noexcept { return mode_ == Mode::streaming; }
  bool doomed() const noexcept { return doomed_; }
  void doom(bool too_slow = false) noexcept;
  // What the connection is currently used for. Closing a `silent` connection does the least harm;
  // closing an `answering` connection does the most.
  enum class Use : std::uint8_t {
    silent,     // no complete head has arrived, or the last response was sent
    idle,       // between two requests
    receiving,  // a body or another head is arriving
    answering   // a response is pending; closed only if one peer has several
  };
  Use use() const noexcept;
  // Returns the time at which the current use started.
  std::uint64_t since_ns() const noexcept { return since_ns_; }
  std::uint64_t unsent() const noexcept { return queue_.size() - sent_; }
  std::string_view peer() const noexcept { return peer_; }

  ReplyContext reply;
  Attachment attached;
  std::size_t index = 0;  // position in the owner's list
  std::string peer_key;   // set by the owner

 private:
  enum class Mode : std::uint8_t { reading, busy, streaming, closing, lingering };

  void on_event(std::uint32_t events) noexcept;
  void on_readable();
  void received(std::string_view bytes);
  void consume(std::string_view in);
  void on_partial();
  void hand_out();
  void stash(std::string_view bytes);
  void flush();
  void linger() noexcept;
  void set_events(std::uint32_t events) noexcept;

  ConnectionOwner &owner_;
  const bh::Host &host_;
  const ConnectionBounds &bounds_;
  int fd_;
  std::uint32_t events_ = 0;
  bh_watch watch_ = 0;
  RequestFeed feed_;
  ByteBuffer backlog_;  // pipelined bytes after the current request
  ByteBuffer queue_;    // unwritten output from index sent_
  std::size_t sent_ = 0;
  std::uint64_t since_ns_ = 0;  // start of the mode or of the arriving request
  std::uint64_t last_write_ns_ = 0;
  Mode mode_ = Mode::reading;
  bool doomed_ = false;
  bool timed_ = false;   // since_ns_ is the start of an unfinished request
  bool served_ = false;  // has received a request
  std::string peer_;
};

}  // namespace transport_http
