// Serves the program that started the gateway as an aggregator subprocess, over standard input and
// output. docs/aggregator.md describes the protocol.
//
// The transport opens one session, performs the MCP handshake, and converts the protocol's methods
// to MCP requests. The first message and `refresh` define the servers. For this, the transport uses
// bh.host.control/1, which the profile must grant.
//
// Configuration: {"in_fd": 0, "out_fd": 1, "codec": "auto" | "ndjson" | "msgpack", "slow_commands":
// ["npx"], "slow_connect_ms": 120000}. SlowStarters describes the last two members. The program
// owns the descriptors. They are non-blocking between listen() and stop().
//
// Limits:
//  - 1 MiB per line, 16 MiB per MessagePack message
//  - max_open requests without a reply
//  - limits->message_bytes for requests that wait for the first servers or for a list
//  - limits->write_queue_bytes for queued replies, limits->write_stall_ms without write progress
//  - drain_ms for in-flight requests after the end of the input
#pragma once

#include <bulkhead/abi/ext/draft/control.h>

#include <bulkhead-aggregator/frames.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport-aggregator/definitions.hpp"
#include "transport-aggregator/out_queue.hpp"
#include "transport-aggregator/request.hpp"

namespace transport_aggregator {

class TransportAggregator {
 public:
  static constexpr bh::Info info{
      .id = "transport-aggregator",
      .name = "Aggregator for another program",
      .version = "0.1.0",
      .vendor = "Bulkhead",
      .config_schema = R"({"type":"object","additionalProperties":false,"properties":{
        "in_fd":{"type":"integer","minimum":0},"out_fd":{"type":"integer","minimum":0},
        "codec":{"enum":["auto","ndjson","msgpack"]},
        "slow_commands":{"type":"array","items":{"type":"string"}},
        "slow_connect_ms":{"type":"integer","minimum":0}}})",
      .provides = {BH_EXT_TRANSPORT}};

  static constexpr std::size_t read_size = 256u << 10;
  static constexpr std::size_t read_budget = 1u << 20;  // approximate, per event loop iteration
  static constexpr std::size_t max_open = 4096;
  // Time limit for in-flight requests after the end of the input. It is chosen so that the program
  // exits within two seconds, including the time to shut down its children.
  static constexpr std::uint64_t drain_ms = 800;
  static constexpr std::uint64_t retry_ms = 20;  // for a list that is not available yet
  static constexpr std::uint32_t max_skip_logs = 100;
  // Time limits for writing the queue in stop(): without progress, and in total.
  static constexpr int last_stall_ms = 300;
  static constexpr std::uint64_t last_write_ms = 1'000;

  explicit TransportAggregator(const bh_host *host);

  bh_status configure(bh_str json, bh_error *error);
  bh_status start(bh_error *error);
  void stop() noexcept;
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<TransportAggregator>() : nullptr;
  }

  bh_status listen(bh_error *error);
  void stop_accepting() noexcept {}  // the only client is already connected
  bh_status send(const bh_outgoing &message);
  void session_ended(bh_session session, bh_str reason);
  bh_str endpoint() noexcept { return bh::str("aggregator"); }

 private:
  enum class Phase : std::uint8_t {
    definitions,  // waiting for the first message
    connecting,   // the first servers are connecting
    serving,
    ended
  };
  // A request to the host whose response is pending.
  struct Open {
    std::uint64_t id;  // ID in the client's request
    Method method;
  };
  // A pending replacement of the servers. The host has a pointer to it.
  struct Replacing {
    TransportAggregator *self;
    std::uint64_t id;
    bool first;
  };
  static constexpr std::uint64_t handshake_stream = 1;

  // transport_aggregator.cpp: descriptors and shutdown
  void begin();
  void on_input();
  void on_plain_input();
  bool read_some();
  bool process_messages();
  void input_ended();
  void drain_over();
  void queue(std::string_view text);
  void queue_instead(std::string_view text, const char *why);
  void flush_later();
  void turn_end();
  void on_output_event();
  void after_flush(OutQueue::Flush result);
  void on_stall_timer();
  void client_gone();
  void end_if_drained();
  void end();
  void finish();
  void unwatch() noexcept;
  void write_last() noexcept;

  // requests.cpp: messages
  void open_session();
  void on_message(std::string_view message);
  void on_text(std::string_view text);
  void first_message(std::string_view text);
  void handle(std::string_view text);
  void run(const Request &request, std::string_view text);
  void wait(std::uint64_t id, std::string_view text);
  void run_waiting();
  void list(const Request &request, std::string_view text);
  void replace(std::uint64_t id, std::string_view servers, bool first);
  static void replaced(void *arg, bh_str report);
  void log_report(std::string_view report) const;
  void forward(const Request &request);
  void deliver(std::uint64_t stream, const std::string &message);
  void fail(std::uint64_t id, std::string_view why);
  void fail_all(std::string_view why);
  void shut_down(std::uint64_t id);
  void skipped(const char *why);

  std::size_t open_requests() const noexcept {
    return open_.size() + waiting_.size() + replacing_.size();
  }

  bh::Host host_;
  const bh_host_transport *const up_;
  const bh_host_control *const control_;
  int in_ = 0, out_ = 1;
  bool own_out_ = false;                // out_ is a duplicate of in_
  int in_flags_ = -1, out_flags_ = -1;  // original flags; -1 if unchanged
  bh_watch in_watch_ = 0, out_watch_ = 0;
  bh_timer stall_timer_ = 0, drain_timer_ = 0, retry_timer_ = 0;
  std::uint64_t progress_ns_ = 0;  // time of the last write progress
  std::size_t waiting_before_ = 0;
  bool blocked_ = false, deferred_ = false, disconnected_ = false, finished_ = false;
  bool input_open_ = false, draining_ = false;

  bh_session session_ = 0;  // 0 if there is no session
  bool initialized_ = false;
  Phase phase_ = Phase::definitions;
  std::uint64_t next_stream_ = handshake_stream;
  std::unordered_map<std::uint64_t, Open> open_;  // by stream
  struct Waiting {
    std::uint64_t id;
    std::string text;
  };
  std::deque<Waiting> waiting_;  // requests that wait for the first servers or for a list
  std::size_t waiting_bytes_ = 0;
  std::vector<std::unique_ptr<Replacing>> replacing_;
  std::uint32_t skip_logs_ = 0;

  SlowStarters slow_;
  bh::aggregator::Codec wanted_codec_ = bh::aggregator::Codec::automatic;
  bh::aggregator::FrameCutter cutter_{bh::aggregator::Codec::automatic};
  std::unique_ptr<char[]> buffer_;
  std::string scratch_;
  OutQueue queue_;
};

}  // namespace transport_aggregator
