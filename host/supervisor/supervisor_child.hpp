// Defines the supervisor's state for one compartment. Included only by the supervisor.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "supervisor/sign_budget.hpp"
#include "supervisor/supervisor.hpp"

namespace bulkhead::program {

struct Supervisor::Child {
  // When the process exits, its two sockets may close in either order. A closed socket does not
  // prove that the process has exited; only the pidfd does.
  struct ControlEnd final : link::Channel::Receiver {
    Child *child = nullptr;
    void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
               OwnedFd) override {
      child->supervisor->on_frame(*child, frame, payload);
    }
    void closed(link::Channel &, std::string_view) override {
      child->supervisor->set_deadline(*child);
    }
  };
  struct RequestEnd final : link::Channel::Receiver {
    Child *child = nullptr;
    void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
               OwnedFd fd) override {
      if (child->slice.service) {
        return child->supervisor->on_service_request(*child, frame, payload, fd);
      }
      child->supervisor->on_request(*child, frame, payload);
    }
    void closed(link::Channel &, std::string_view) override {}
  };

  Supervisor *supervisor = nullptr;
  Slice slice;
  ControlEnd control_end;
  RequestEnd request_end;
  std::unique_ptr<link::Channel> control, request;
  OwnedFd log_socket, pidfd;
  pid_t pid = 0;  // 0 if no process is running
  bool ready = false, ever_ready = false;
  bool finished = false;
  bool given_up = false;
  bool wanted = true;  // the profile contains this compartment
  // The process is being replaced: when it has exited, a new one is started with the changed slice.
  bool replaced = false;
  // The process only finishes its pending calls. New calls are sent to another Child with the same
  // name.
  bool leaving = false;
  // Until the process is ready, a failure of a policy or of a swapped plugin is a failure of the
  // process, also if the profile does not require the plugin.
  bool strict = false;
  // The Child with the same name that receives the calls until this process is put into use. Null
  // if this Child does not wait to replace another one.
  Child *replaces = nullptr;
  // The profile does not contain this compartment, and its process is stopping or has exited.
  bool retired = false;
  bool secret_pending = false;
  SignBudget sign_budget;  // shared by consecutive processes of the compartment
  bool ending = false;     // the process has received a stop request
  bool awaited = false;    // a reload waits until the new process is ready
  bool new_views = false;  // the current or last reload restarts its stdio servers
  // The number of the last reload whose settings the process has not acknowledged yet, or 0 if
  // there is none.
  std::uint64_t settings_asked = 0;
  std::string failure;  // the failure that the process reported before it exited
  bool hung = false;    // the failure is that a plugin did not return from loading
  std::uint32_t restarts = 0, failed_starts = 0, quick_ends = 0;
  std::uint64_t started_ns = 0, timer = 0, pid_watch = 0, log_watch = 0;
  std::uint64_t trunk = 0, lost_trunk = 0, trunk_timer = 0;
  std::uint64_t grace_ms = 0, kill_timer = 0;  // for the current process
  // Number of consecutive pings without a response.
  std::uint32_t unanswered = 0;
  std::uint64_t log_bytes = 0, log_since_ns = 0, dropped_lines = 0;  // rate limit for log lines
  control::Ready enforced;
  std::vector<std::string> servers_missing;  // protections that its servers lack
  std::uint32_t telemetry = 0;               // BH_TELEMETRY_... flags last reported for this slice
  std::uint32_t questions = 0;               // number of pending requests of the service API
  // Expires when the process exits, so that results that arrive later are recognized and ignored.
  std::shared_ptr<const pid_t> life;

  bool running() const noexcept { return pid != 0; }
};

// Reads or writes a secret, or signs a checkpoint. Runs on a pool thread because the disk may be
// slow.
struct Supervisor::SecretJob {
  Child *child;
  std::weak_ptr<const pid_t> life;  // of the process that sent the request
  std::uint16_t kind;
  std::uint64_t exchange;
  std::string state_dir;
  control::Secret secret;
  Result<std::string> outcome;

  void work();
};

}  // namespace bulkhead::program
