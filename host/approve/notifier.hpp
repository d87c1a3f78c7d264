// Uses notify-send to show desktop notifications for pending approval requests. A notification
// names the tool, server, client and rule, but never contains the arguments.
//
// Used on one thread.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "approve/approvals_view.hpp"

namespace bulkhead::program {

// Returns the text of a notification. Characters that notification servers interpret as markup are
// escaped.
std::string notification_text(const SeenQuestion &question);

class Notifier {
 public:
  // Maximum number of notify-send processes that run at the same time. Further notifications are
  // skipped.
  static constexpr std::size_t max_running = 4;
  static constexpr std::size_t max_known = 10'000;

  Notifier() = default;
  ~Notifier();
  Notifier(const Notifier &) = delete;
  Notifier &operator=(const Notifier &) = delete;

  // Shows a notification for each request that was not passed to an earlier call. Does not wait
  // for notify-send. If notify-send cannot be started, returns an error message once and shows no
  // more notifications. Otherwise, returns an empty string. Beyond max_known requests, all are
  // forgotten and may be shown again.
  std::string show(const std::vector<SeenQuestion> &questions);

 private:
  void reap();

  std::set<std::string> known_;
  std::vector<pid_t> running_;
  bool failed_ = false;
};

}  // namespace bulkhead::program
