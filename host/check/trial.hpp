// Runs the plugin's code in a child process that may crash, hang or be killed.
//
// The child is confined like a compartment before it maps the library: it has no access to files
// except system libraries, the plugin and one empty folder, and no network access unless the
// plugin's kind needs it. The child's reports are untrusted, because the plugin's code runs in the
// same process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "check/process_state.hpp"
#include "check/report.hpp"
#include "check/trial_listeners.hpp"
#include "plugin/loader.hpp"

namespace bulkhead::check {

// The child's side: reports to the parent. Reports may be sent on several threads at the same time;
// a crash then violates the rule of the last step of any thread.
class Trial {
 public:
  explicit Trial(int fd) noexcept : fd_(fd) {}

  // The plugin's code runs next. If it crashes, exits or does not return within the time limit,
  // `rule` is violated. `what` completes the sentence "it crashed in ...".
  void step(Rule rule, std::string_view what);
  void violated(Rule rule, std::string_view what);
  void checked(Rule rule);  // the rule was checked; it is satisfied unless violated
  // The remaining rules of this trial cannot be checked.
  void not_checked(std::string_view why);
  void note(std::string_view what);
  // All code of the plugin has run, except exit handlers. A child that ends without this report
  // violates the rule of its last step.
  void finished();

  const ProcessView &process() const noexcept { return process_; }
  // The sockets for a transport, if TrialOptions::listeners is set.
  const TrialListeners &listeners() const noexcept { return listeners_; }
  void open_listeners(const std::string &folder) { listeners_ = TrialListeners(folder); }

 private:
  void send(char kind, unsigned number, std::string_view text);
  int fd_;
  ProcessView process_;  // opened before the process is confined
  TrialListeners listeners_;
};

struct TrialOptions {
  std::uint64_t step_timeout_ms = 5'000;    // for each step
  std::uint64_t total_timeout_ms = 60'000;  // for the whole child
  bool network = false;
  bool listeners = false;  // whether a transport can get listening sockets
  std::string folder;      // an existing folder that the child may write to; its TMPDIR
};

// Runs body() in a child, and adds what the child reports, and how it ended, to *report. Returns
// false if the child crashed, was killed, or ended before Trial::finished(), and an error if it
// cannot be started.
Result<bool> run_trial(const CheckedLibrary &library, const TrialOptions &options,
                       const std::function<void(Trial &)> &body, Report *report);

}  // namespace bulkhead::check
