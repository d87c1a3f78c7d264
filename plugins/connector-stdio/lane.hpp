// Runs one child process and exchanges messages with it.
//
// Lifecycle: open -> (send, messages)* -> maybe down (reported once) -> close -> finished. The host
// starts and kills the process (bh.host.spawn/1). The lane watches the process through its pidfd.
//
// Owned by ConnectorStdio. Runs on the reactor thread. The host functions message() and lane_down()
// may call close() or send() on the same lane before they return.
#pragma once

#include <bulkhead/abi/ext/connector.h>
#include <bulkhead/abi/ext/draft/spawn.h>
#include <bulkhead/cpp/host.hpp>

#include <memory>
#include <string>
#include <vector>

#include "connector-stdio/definition.hpp"
#include "connector-stdio/hidden.hpp"
#include "connector-stdio/stderr_log.hpp"
#include "stdio-lines/line_reader.hpp"
#include "stdio-lines/line_writer.hpp"

namespace connector_stdio {

class Lane;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// State shared by all lanes of a plugin instance.
class Shared {
 public:
  Shared(const bh::Host &h, const bh_host_connector *u) noexcept : host(h), up(u) {}
  Shared(const Shared &) = delete;
  Shared &operator=(const Shared &) = delete;

  // Calls lane.flush() at the end of the current event loop iteration.
  virtual void flush_later(Lane &lane) = 0;
  // Called once, as the lane's last callback. The owner then destroys the lane and reports
  // lane_closed, at the end of the event loop iteration or later.
  virtual void finished(Lane &lane) = 0;
  // Returns the log file with this path. All lanes with the same path share one object.
  virtual std::shared_ptr<RotatedFile> stderr_file(const std::string &path,
                                                   std::uint64_t bound) = 0;
  virtual void count_noise() = 0;

  const bh::Host &host;
  const bh_host_connector *const up;
  const bh_host_spawn *children = nullptr;  // set before the first lane is created
  stdio_lines::Scratch scratch;

 protected:
  ~Shared() = default;
};

class Lane final : private stdio_lines::LineSink {
 public:
  // Approximate limits on the bytes of a child's standard output and standard error that are read
  // in one reactor event.
  static constexpr std::size_t read_budget = 1u << 20;
  static constexpr std::size_t stderr_budget = 64u << 10;
  // If a child has printed text but no message, its lane is reported as down at most this long
  // before the host's time-out for the first response. The reported reason can then contain the
  // text.
  static constexpr std::uint64_t banner_margin_ms = 500;
  // How long to wait for the exit status of a child that has closed its standard output or input.
  static constexpr std::uint64_t exit_wait_ms = 200;

  Lane(Shared &shared, bh_lane handle);
  ~Lane();
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  // Starts the child. May return before the child runs; if the child then fails to start, lane_down
  // reports the failure. If open() itself fails, all resources are released.
  bh_status open(const bh_lane_info &info, bh_error *error);
  bh_status send(const bh_lane_message &message, bh_error *error);
  void flush();
  void close();

  // For stop(). kill() sends a signal to the child, and reap() waits until it has exited or
  // `deadline_ns` is reached.
  void kill(int signal) const noexcept;
  bool reap(std::uint64_t deadline_ns);

  bh_lane handle() const noexcept { return handle_; }
  bool closing() const noexcept { return closing_; }

  bool flush_queued = false;  // used only by the owner
  std::size_t index = 0;      // position in the owner's list

 private:
  struct Watched {
    int fd = -1;
    bh_watch watch = 0;
  };
  enum class Wait { nothing, exit_after_end, exit_after_close, exit_after_term, exit_after_kill };
  bh_status start_child(const Definition &definition, bh_str json, const std::string &program,
                        bh_error *error);
  bh_status watch_child(bh_error *error);

  bool on_line(std::string_view line) override;
  bool on_too_long(std::string_view start) override;
  void on_noise(std::string_view line);
  void on_banner_timer();
  // Returns "; it printed ..." if the child has printed text but no message.
  std::string describe_banner() const;

  void on_output();
  void on_input_writable();
  void on_stderr();
  void on_exit();
  void on_timer();
  void output_ended();
  void input_broken();
  void after_flush(stdio_lines::Flush result);
  void wait_for(Wait what, std::uint64_t ms);
  void grow_pipe(int fd, bool *grown);
  bool read_stderr();
  void keep_stderr(std::string_view masked);
  // Appends the text to the server's log file, if it has one.
  void write_log(std::string_view masked);
  void drain();
  void report_down(bh_status code, const std::string &what);
  std::string describe_exit() const;
  std::string quoted() const { return "server \"" + server_ + "\""; }
  void release(Watched *watched);

  Shared &shared_;
  const bh_lane handle_;
  std::string server_;

  bh_child_id child_ = 0;  // 0 before the start and after the child was reaped
  bh_child_end end_{};     // exit status
  bh_error start_error_ = bh::make_error();
  Watched in_, out_, err_, process_;  // the child's stdin, stdout, stderr and pidfd
  stdio_lines::LineReader reader_;
  stdio_lines::LineWriter writer_;
  std::shared_ptr<RotatedFile> stderr_file_;
  StreamMask mask_;  // masks configured values in logs and errors
  Tail tail_;
  bh_timer timer_ = 0, banner_timer_ = 0;
  std::uint64_t connect_timeout_ms_ = 0, opened_ns_ = 0;
  bool has_sent_message_ = false;
  std::string banner_;  // first line that is not a message, sanitized
  Wait wait_ = Wait::nothing;
  bool down_ = false, closing_ = false, done_ = false;
  bool noise_logged_ = false, in_grown_ = false, out_grown_ = false;
};

}  // namespace connector_stdio
