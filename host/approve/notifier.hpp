// Desktop notifications for pending approvals, shown with notify-send. A notification contains the
// tool, server, client and rule, but never the arguments.
//
// Used on one thread.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "approve/approvals_view.hpp"

namespace bulkhead::program {

// Returns the text of a notification. Notification servers interpret markup, so its characters are
// escaped.
std::string notification_text(const SeenQuestion &question);

class Notifier {
 public:
  static constexpr std::size_t max_running =
      4;  // notify-send processes; if there are more, notifications are skipped
  static constexpr std::size_t max_known = 10'000;

  Notifier() = default;
  ~Notifier();
  Notifier(const Notifier &) = delete;
  Notifier &operator=(const Notifier &) = delete;

  // Shows a notification for each question that is new since the last call. Never waits for
  // notify-send. Returns an error the first time that notify-send cannot be started, and an empty
  // string otherwise.
  std::string show(const std::vector<SeenQuestion> &questions);

 private:
  void reap();

  std::set<std::string> known_;
  std::vector<pid_t> running_;
  bool failed_ = false;
};

}  // namespace bulkhead::program
