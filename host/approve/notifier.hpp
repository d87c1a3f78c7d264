// Desktop notifications for pending approvals, shown by notify-send. A notification names the tool,
// server, client and rule, and never the arguments.
//
// Thread: one.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "approve/approvals_view.hpp"

namespace bulkhead::program {

// The text of a notification. Notification servers interpret markup, so its characters are escaped.
std::string notification_text(const SeenQuestion &question);

class Notifier {
 public:
  static constexpr std::size_t max_running =
      4;  // processes of notify-send; further ones are skipped
  static constexpr std::size_t max_known = 10'000;

  Notifier() = default;
  ~Notifier();
  Notifier(const Notifier &) = delete;
  Notifier &operator=(const Notifier &) = delete;

  // Notifies about questions that were not among those of earlier calls. Never waits for
  // notify-send. Returns the error the first time that it cannot be started; empty: none.
  std::string show(const std::vector<SeenQuestion> &questions);

 private:
  void reap();

  std::set<std::string> known_;
  std::vector<pid_t> running_;
  bool failed_ = false;
};

}  // namespace bulkhead::program
