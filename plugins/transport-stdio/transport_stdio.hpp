// Serves one client on standard input and output. The client is usually the process that started
// the gateway. Each line is one message.
//
// Configuration: {"in_fd": 0, "out_fd": 1}. The program owns the descriptors, which may be pipes,
// sockets, terminals, files or /dev/null. They are non-blocking between listen() and stop(). stop()
// restores their flags, because a terminal shares them with the shell.
//
// Limits: A line of more than limits->message_bytes is skipped and answered with an error. Queued
// output is limited to limits->write_queue_bytes. If the client does not read queued output for
// limits->write_stall_ms, the session ends. With bh.host.flow/1, the host is notified when output
// is blocked, and the time-out applies only after the end of the input. Such a host may also hold
// the input (bh.flow/1).
//
// If the host's sessions outlive the process (bh.host.resume/1), the next process inherits the
// descriptors and resumes the session (carried.hpp). If a line was only partially written, the next
// process terminates it with a newline, so the client reads one invalid line. Input that was read
// but not delivered is delivered. If a partially read line exceeds the host's limit (256 KiB), the
// rest of the line is skipped.
#pragma once

#include <bulkhead/abi/ext/draft/flow.h>
#include <bulkhead/cpp/tables.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "stdio-lines/line_reader.hpp"
#include "stdio-lines/line_writer.hpp"
#include "transport-stdio/carried.hpp"

namespace transport_stdio {

class TransportStdio final : private stdio_lines::LineSink {
 public:
  static constexpr bh::Info info{
      .id = "transport-stdio",
      .name = "Client on standard input and output",
      .version = "0.1.0",
      .vendor = "Bulkhead",
      .config_schema = R"({"type":"object","additionalProperties":false,"properties":{
        "in_fd":{"type":"integer","minimum":0},"out_fd":{"type":"integer","minimum":0}}})",
      .provides = {BH_EXT_TRANSPORT, BH_EXT_FLOW}};

  // Approximate limit on the number of bytes read in one event loop iteration.
  static constexpr std::size_t read_budget = 1u << 20;
  // Time limits for writing the queue in stop(): without progress, and in total.
  static constexpr int last_stall_ms = 1'000;
  static constexpr std::uint64_t last_write_ms = 5'000;

  explicit TransportStdio(const bh_host *host);

  bh_status configure(bh_str json, bh_error *error);
  bh_status start(bh_error *error);
  void stop() noexcept;
  const void *get_ext(const char *id) noexcept;

  bh_status listen(bh_error *error);
  void stop_accepting() noexcept {}  // the only client is already connected
  bh_status send(const bh_outgoing &message);
  void session_ended(bh_session session, bh_str reason);
  bh_str endpoint() noexcept { return bh::str("stdio"); }
  void hold_input(bh_session session, bool hold);

 private:
  bool on_line(std::string_view line) override;
  bool on_too_long(std::string_view start) override;
  void on_read(std::string_view data) override { carried_.read(data); }
  void on_left(std::string_view left) override { carried_.left(left); }

  void begin();
  void watch_input();
  void resume_input();
  void open_session();
  void restore_streams();
  void on_input();
  void on_plain_input();
  void input_ended();
  void on_output_event();
  void on_stall_timer();
  void turn_end();
  void flush_later();
  stdio_lines::Flush flush();
  void after_flush(stdio_lines::Flush result);
  void set_blocked(bool blocked);
  void write_last() noexcept;
  void client_gone();
  void finish();
  void unwatch() noexcept;

  bh::Host host_;
  const bh_host_transport *const up_;
  const bh_host_flow *const flow_;  // null if the host does not support flow control
  Carried carried_;
  int in_ = 0, out_ = 1;
  bool own_out_ = false;                // out_ is a duplicate of in_
  int in_flags_ = -1, out_flags_ = -1;  // original flags; -1 if unchanged
  bh_watch in_watch_ = 0, out_watch_ = 0;
  bh_timer stall_timer_ = 0;
  std::uint64_t progress_ns_ = 0;  // time of the last write progress
  std::size_t waiting_before_ = 0;
  bh_session session_ = 0;  // 0 if there is no session
  bool blocked_ = false, deferred_ = false, end_session_ = false, finished_ = false;
  bool input_open_ = false, pipes_grown_ = false;
  bool held_ = false;  // the host holds the input
  bool resume_queued_ = false, plain_queued_ = false;
  std::unique_ptr<stdio_lines::Scratch> scratch_;
  stdio_lines::LineReader reader_{0};
  stdio_lines::LineWriter writer_{0};
};

}  // namespace transport_stdio
