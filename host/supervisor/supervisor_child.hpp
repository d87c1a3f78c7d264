// What the supervisor knows of one compartment. For the supervisor's own files.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "supervisor/sign_budget.hpp"
#include "supervisor/supervisor.hpp"

namespace bulkhead::program {

// One compartment: what it is to be, and the process that is it now.
struct Supervisor::Child {
  // The two sockets end in the same process; whichever says so first, the pidfd has the last word.
  struct ControlEnd final : link::Channel::Receiver {
    Child *child = nullptr;
    void frame(link::Channel &, const link::Frame &frame, std::string_view payload,
               OwnedFd) override {
      child->supervisor->on_frame(*child, frame, payload);
    }
    void closed(link::Channel &, std::string_view) override {
      child->supervisor->watch_over(*child);
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
  pid_t pid = 0;  // 0: not running
  bool ready = false, ever_ready = false;
  bool finished = false;
  bool given_up = false;
  bool wanted = true;     // by the profile
  bool replaced = false;  // it ends because it is to start with another slice
  bool leaving = false;   // its calls end beside another child of that name, which has all others
  bool retired = false;   // it ends, or has ended, because no profile wanted it
  bool secret_pending = false;
  SignBudget sign_budget;               // of all its processes
  bool ending = false;                  // this process was told to end
  bool awaited = false;                 // a reload waits for its next process to be ready
  std::uint64_t definitions_asked = 0;  // number of those it has not answered yet; 0: none
  std::string failure;                  // what it said before it ended
  std::uint32_t restarts = 0, failed_starts = 0, quick_ends = 0;
  std::uint64_t started_ns = 0, timer = 0, pid_watch = 0, log_watch = 0;
  std::uint64_t trunk = 0, lost_trunk = 0, trunk_timer = 0;
  std::uint64_t grace_ms = 0, kill_timer = 0;                         // of this process
  std::uint32_t unanswered = 0;                                       // pings, of this process
  std::uint64_t log_bytes = 0, log_since_ns = 0, lines_left_out = 0;  // of its log lines of late
  control::Ready enforced;
  std::vector<std::string> servers_missing;  // of the sandboxes of its servers
  std::uint32_t telemetry = 0;               // BH_TELEMETRY_..., as it has last said; of this slice
  std::uint32_t questions = 0;               // of the service API, not answered yet
  std::shared_ptr<const pid_t> life;         // of the process; what comes too late finds it gone

  bool running() const noexcept { return pid != 0; }
};

// A secret on its way to or from the disk, which may be slow: on a thread of the pool.
struct Supervisor::SecretJob {
  Child *child;
  std::weak_ptr<const pid_t> life;  // of the process that has asked
  std::uint16_t kind;
  std::uint64_t exchange;
  std::string state_dir;
  control::Secret secret;
  Result<std::string> outcome;

  void work();
};

}  // namespace bulkhead::program
