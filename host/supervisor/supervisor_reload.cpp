// Applies a new profile to the compartments (hot reload).
#include <signal.h>

#include <algorithm>
#include <utility>

#include "compartment/status_archive.hpp"
#include "profile/difference.hpp"
#include "profile/protected_paths.hpp"
#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {
namespace {

bool same_plugins(const Slice &was, const Slice &is) {
  const auto same = [](const SlicePlugin &a, const SlicePlugin &b) {
    return a.kind == b.kind && same_use(a.use, b.use);
  };
  return was.privileges == is.privileges && was.prints == is.prints &&
         std::equal(was.plugins.begin(), was.plugins.end(), is.plugins.begin(), is.plugins.end(),
                    same);
}

// Returns true if servers must be restarted with new file-system views, because the gateway has
// more files that servers must not read or change.
bool needs_new_views(const Slice &was, const Slice &is) {
  return is.privileges.exec && protects_more(was.profile, is.profile);
}

ServerSettings settings_of(const Slice &slice) {
  return {slice.definitions, slice.profile.own_paths, slice.profile.programs};
}

bool may_run_twice(const SlicePlugin &plugin) {
  const bool kind = plugin.kind == PluginKind::tools || plugin.kind == PluginKind::service ||
                    plugin.kind == PluginKind::policy;
  return kind && !plugin.use.file.exclusive;
}

bool may_run_twice(const Slice &slice) {
  return !slice.router && !slice.service &&
         std::all_of(slice.plugins.begin(), slice.plugins.end(),
                     [](const SlicePlugin &plugin) { return may_run_twice(plugin); });
}

bool is_policy(const Slice &slice) {
  return std::any_of(slice.plugins.begin(), slice.plugins.end(),
                     [](const SlicePlugin &plugin) { return plugin.kind == PluginKind::policy; });
}

}  // namespace

void Supervisor::apply(std::vector<Slice> slices, ApplyMode mode,
                       std::function<void(Result<ApplyReport>)> done) {
  if (apply_done_ || has_candidate()) return done(fail(BH_E_LIMIT, "a reload is in progress"));
  if (stopping_) return done(fail(BH_E_LIMIT, "the gateway is stopping"));
  if (!all_ready_) return done(fail(BH_E_LIMIT, std::string(still_starting)));
  remove_ended();
  mode_ = mode;
  if (mode != ApplyMode::restore) stopped_former_ = false;
  if (mode == ApplyMode::swap) {
    if (std::string why = cannot_swap(slices); !why.empty()) {
      return done(fail(BH_E_LIMIT, std::move(why)));
    }
  }
  if (mode == ApplyMode::change) {
    if (std::string why = cannot_move_state(slices); !why.empty()) {
      return done(fail(BH_E_LIMIT, std::move(why)));
    }
  }
  apply_done_ = std::move(done);
  ++apply_number_;
  for (const auto &child : children_) child->wanted = child->new_views = false;
  for (Slice &slice : slices) {
    const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto &child) {
      return !child->leaving && child->slice.name == slice.name;
    });
    if (at != children_.end()) {
      apply_to(**at, std::move(slice));
      continue;
    }
    Child &made = *children_.emplace_back(new_child(std::move(slice)));
    if (auto started = start(made); !started) {
      log(LogLevel::error, made.slice.name, started.error().text);
      schedule(made);
    }
  }
  send_apply();
}

void Supervisor::apply_to(Child &child, Slice slice) {
  child.wanted = true;
  slice.epoch = child.slice.epoch;
  const bool new_views = needs_new_views(child.slice, slice);
  child.new_views = new_views && child.running();
  if (!new_views) keep_missing_folders(child.slice.profile, &slice.profile);
  if (child.new_views) {
    log(LogLevel::info, child.slice.name,
        "restarting its servers, because files that must be protected from them were added");
  }
  const bool same = !new_views && same_plugins(child.slice, slice);
  const bool swapped = !same && mode_ == ApplyMode::swap && !child.slice.router;
  if (!same && may_run_beside(child, slice)) {
    if (swapped) return start_candidate(child, std::move(slice));
    if (!is_policy(slice)) return start_beside(child, std::move(slice));
    // If a profile is restored, a policy must not decide by the rejected one any longer.
    if (mode_ == ApplyMode::change) return start_candidate(child, std::move(slice));
  } else if (swapped && child.running()) {
    slice.trial = true;
    return start_candidate(child, std::move(slice));
  }
  if (child.slice.router) {
    next_endpoint_ = std::make_unique<Slice>(std::move(slice));
    return;
  }
  const bool other_settings = settings_of(child.slice) != settings_of(slice);
  child.slice = std::move(slice);
  if (!same) child.telemetry = 0;  // the requirements of the new plugins are not known yet
  // Changed policies must take effect before the endpoint applies its part of the new profile.
  child.awaited = swapped || (!same && is_policy(child.slice));
  child.strict = swapped;
  const bool was_retired = std::exchange(child.retired, false);
  if (!child.running()) return restart_if_wanted(child, was_retired);
  if (child.ending) {
    child.replaced = true;
    return;
  }
  if (!same) {
    child.replaced = true;  // restarted with the new slice
    end(child);
  } else if (other_settings) {
    link::Frame frame;
    frame.kind = control::settings;
    frame.value = child.settings_asked = apply_number_;
    child.control->send(frame, to_bytes(settings_of(child.slice)));
    if (child.ready) set_deadline(child);
  }
}

// Returns the number of former processes of a compartment that still finish their calls.
std::ptrdiff_t Supervisor::leaving(std::string_view name) const {
  return std::count_if(children_.begin(), children_.end(), [&](const auto &child) {
    return child->leaving && child->running() && child->slice.name == name;
  });
}

// Returns true if a new process may run while the process of `child` drains. A compartment may have
// at most two processes (with a policy, 1 + max_leaving_policies), and only if all of its plugins
// are tools, services or policies that are not exclusive.
bool Supervisor::may_run_beside(const Child &child, const Slice &next) const {
  const bool room = leaving(next.name) < (is_policy(next) ? max_leaving_policies : 1);
  return room && child.running() && child.ready && !child.ending && may_run_twice(child.slice) &&
         may_run_twice(next);
}

// Starts a new process that receives all new calls. The process of `child` only finishes its
// pending calls.
void Supervisor::start_beside(Child &child, Slice next) {
  Child &made = *children_.emplace_back(new_child(std::move(next)));
  made.restarts = child.restarts;
  child.leaving = true;
  child.wanted = false;
  restart(made);
  end(child);
}

// Returns why a compartment that has another file cannot be replaced, or an empty string. If two
// versions must not run at the same time, the new one is tried without being started, and the
// former one is then stopped.
std::string Supervisor::cannot_swap(const std::vector<Slice> &slices) const {
  for (const Slice &slice : slices) {
    const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto &child) {
      return !child->leaving && child->slice.name == slice.name;
    });
    if (slice.router || at == children_.end() || same_plugins((*at)->slice, slice)) continue;
    // Without a process that works, there is nothing to keep.
    if (!(*at)->ready || may_run_beside(**at, slice)) continue;
    const bool alone = !may_run_twice((*at)->slice) || !may_run_twice(slice);
    if (alone && !(*at)->ending && leaving(slice.name) == 0) continue;
    return "compartment \"" + slice.name +
           "\" cannot have another process at the moment: calls of an earlier version have not "
           "completed";
  }
  return {};
}

// Returns why a changed policy cannot have another process beside the current one, from which it
// takes over its state, or an empty string.
std::string Supervisor::cannot_move_state(const std::vector<Slice> &slices) const {
  for (const Slice &slice : slices) {
    const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto &child) {
      return !child->leaving && child->slice.name == slice.name;
    });
    if (!is_policy(slice) || at == children_.end() || same_plugins((*at)->slice, slice)) continue;
    const bool alone = !may_run_twice((*at)->slice) || !may_run_twice(slice);
    if (alone || !(*at)->ready || leaving(slice.name) < max_leaving_policies) continue;
    return "compartment \"" + slice.name +
           "\" cannot have another process at the moment: calls of earlier versions have not "
           "completed. Try again later";
  }
  return {};
}

// Returns true if there is a candidate (for this Child, or any if `former` is null).
bool Supervisor::has_candidate(const Child *former) const {
  return std::any_of(children_.begin(), children_.end(), [&](const auto &child) {
    return child->replaces != nullptr && (former == nullptr || child->replaces == former);
  });
}

// Returns true if there is a candidate with a policy. Its former process decides until the endpoint
// has moved its state and has accepted the change.
bool Supervisor::has_next_policy() const {
  return std::any_of(children_.begin(), children_.end(), [](const auto &child) {
    return child->replaces != nullptr && is_policy(child->slice);
  });
}

// Returns the slice with all policies and swapped plugins required; see Child::strict.
Slice Supervisor::strict(Slice slice) {
  for (SlicePlugin &plugin : slice.plugins) {
    if (plugin.kind == PluginKind::policy || !plugin.use.file.path.empty()) {
      plugin.use.required = true;
    }
  }
  return slice;
}

// Starts a process that replaces the one of `child` when it and all other candidates are ready.
void Supervisor::start_candidate(Child &child, Slice next) {
  Child &made = *children_.emplace_back(new_child(std::move(next)));
  made.restarts = child.restarts;
  made.replaces = &child;
  made.awaited = made.strict = true;
  auto started = start(made);
  if (started) return;
  made.failure = started.error().text;
  // apply() must return before the change is finished.
  made.timer = reactor_->timer_start(this, 0, bh::callback(&made, [](Child &it) {
                                       it.timer = 0;
                                       it.supervisor->drop(it, std::string(it.failure));
                                     }));
}

// The plugins of `candidate` can be loaded and configured, but must not run beside their former
// versions. Stops those, and then starts a process with the slice of `candidate`.
void Supervisor::end_trial(Child &candidate) {
  Child &former = *std::exchange(candidate.replaces, nullptr);
  Slice next = candidate.slice;
  next.trial = false;
  candidate.wanted = candidate.awaited = false;
  candidate.leaving = true;
  end(candidate);
  log(LogLevel::info, former.slice.name, "stopping the former version of a plugin");
  former.slice = std::move(next);
  former.telemetry = 0;  // the requirements of the new version are not known yet
  former.given_up = false;
  former.failed_starts = 0;
  stopped_former_ = true;
  former.awaited = former.strict = true;
  if (former.running()) {
    former.replaced = true;  // restarted with the new slice
    end(former);
  } else if (former.timer == 0) {
    restart(former);
  }
}

// From now on, the process of `candidate` receives the calls.
void Supervisor::put_into_use(Child &candidate) {
  Child &former = *std::exchange(candidate.replaces, nullptr);
  former.leaving = true;
  former.wanted = false;
  reactor_->timer_cancel(std::exchange(former.timer, 0));
  const bool swapped = mode_ == ApplyMode::swap;
  log(LogLevel::info, candidate.slice.name,
      swapped ? "a new version of a plugin is in use" : "the policy has its new configuration");
  if (!is_policy(candidate.slice)) join(candidate);  // send_apply() has connected policies
  end(former, true);
  if (!candidate.running()) schedule(candidate);
}

// Called when the process of `candidate` has exited before it was put into use. No candidate is put
// into use.
void Supervisor::drop(Child &candidate, const std::string &reason) {
  if (mode_ != ApplyMode::swap) log(LogLevel::warn, candidate.slice.name, reason);
  reject(reason);
}

// Finishes the change without putting the candidates into use.
void Supervisor::reject(std::string reason) {
  if (mode_ == ApplyMode::swap) {
    reason = "the new version was not put into use: " + reason;
    for (const auto &child : children_) {
      if (child->replaces != nullptr) log(LogLevel::warn, child->slice.name, reason);
    }
  }
  for (const auto &child : children_) {
    child->awaited = false;
    Child *former = std::exchange(child->replaces, nullptr);
    if (former == nullptr) continue;
    child->wanted = false;
    child->leaving = true;
    reactor_->timer_cancel(std::exchange(child->timer, 0));
    if (child->ready) {
      end(*child);
    } else if (child->running()) {
      ::kill(child->pid, SIGKILL);
    }
    // It may have exited while the endpoint's answer was awaited.
    if (!former->running() && former->timer == 0 && !former->given_up) schedule(*former);
  }
  finish_apply(fail(BH_E_INVALID, reason));
}

void Supervisor::remove_ended() {
  std::erase_if(children_, [this](const auto &child) {
    const bool asks = std::any_of(secret_jobs_.begin(), secret_jobs_.end(),
                                  [&](const SecretJob &job) { return job.child == child.get(); });
    if (!child->leaving || child->running() || asks) return false;
    for (const std::uint64_t timer : {child->timer, child->kill_timer, child->trunk_timer}) {
      reactor_->timer_cancel(timer);
    }
    return true;
  });
}

// Called if the compartment has no process. Starts one if the compartment was not part of the
// previous profile or was given up. If a restart is already scheduled, the new process will use the
// new slice. A control compartment that was given up is not started, because clients can no longer
// reach it.
void Supervisor::restart_if_wanted(Child &child, bool was_retired) {
  if (child.given_up ? child.slice.service : !was_retired) return;
  child.given_up = false;
  child.failed_starts = 0;
  restart(child);
}

void Supervisor::on_settings_taken(Child &child, std::uint64_t number) {
  if (child.settings_asked == 0 || child.settings_asked != number) return;
  child.settings_asked = 0;
  set_deadline(child);
  send_apply();
}

// Called when a policy process that the reload is waiting for is ready or has failed.
void Supervisor::on_awaited(Child &child, const std::string &failure) {
  if (!std::exchange(child.awaited, false)) return;
  if (failure.empty()) return child.slice.trial ? end_trial(child) : send_apply();
  reject(failure);
}

// From now on, the endpoint is started with the new profile.
void Supervisor::use_endpoint_slice() {
  if (next_endpoint_ == nullptr) return;
  Slice &slice = children_.front()->slice;
  next_endpoint_->epoch = slice.epoch;
  slice = std::move(*std::exchange(next_endpoint_, nullptr));
}

// Puts the change into use, because the endpoint has accepted it or will be started with it.
void Supervisor::commit() {
  use_endpoint_slice();
  for (const auto &child : children_) {
    if (child->replaces != nullptr) put_into_use(*child);
  }
}

// Once the running compartments have acknowledged their new settings and the changed policies are
// ready, sends the endpoint these policies and its part of the reload.
void Supervisor::send_apply() {
  const bool waits = std::any_of(children_.begin(), children_.end(), [](const auto &child) {
    return child->settings_asked != 0 || child->awaited;
  });
  if (!apply_done_ || apply_timer_ != 0 || waits) return;
  Child &endpoint = *children_.front();
  if (stopping_ && endpoint.running()) return;
  if (endpoint.running() && !endpoint.ready) return;  // called again when it is ready or has exited
  const bool moves = has_next_policy();
  if (!endpoint.running() && moves) {
    // The next endpoint process is started with the former profile, so that it can move the states.
    if (stopping_) reject("the gateway is stopping");
    return;
  }
  if (!moves && (mode_ == ApplyMode::swap || !endpoint.running())) commit();
  for (const auto &child : children_) {
    if (child->replaces == nullptr) continue;
    // If the former process has exited, it must not be restarted and connected after this one.
    reactor_->timer_cancel(std::exchange(child->replaces->timer, 0));
    if (!connect(*child)) return reject("no file descriptor is available");
  }
  if (!endpoint.running()) {
    return finish_apply(
        fail(BH_E_UNAVAILABLE, "the endpoint is being restarted and will use the new profile"));
  }
  link::Frame frame;
  frame.kind = control::apply;
  frame.value = apply_number_;
  const Slice &next = next_endpoint_ == nullptr ? endpoint.slice : *next_endpoint_;
  // The endpoint reports pins and lists of the new profile before it answers.
  pins_->set_profile(next.profile);
  lists_->set_profile(next.profile);
  endpoint.control->send(frame, to_bytes(Apply{next.profile, next.remote}));
  apply_timer_ = reactor_->timer_start(
      this, max_apply_ms, bh::callback(this, [](Supervisor &self) {
        if (self.has_next_policy()) {
          // It is not known which policies decide. A restarted endpoint has the former ones.
          ::kill(self.children_.front()->pid, SIGKILL);
          return self.reject("timed out waiting for the endpoint to confirm the new profile");
        }
        self.commit();
        self.finish_apply(fail(BH_E_UNAVAILABLE,
                               "timed out waiting for the endpoint to confirm the new profile"));
      }));
}

void Supervisor::on_applied(const link::Frame &frame, std::string_view payload) {
  if (apply_timer_ == 0 || frame.value != apply_number_) return;
  const auto status = static_cast<bh_status>(frame.code);
  ApplyReport report;
  if (status == BH_E_INVALID) {
    return reject(std::string(payload.substr(0, control::max_log_bytes)));
  }
  commit();
  if (status != BH_OK) {
    return finish_apply(fail(status, std::string(payload.substr(0, control::max_log_bytes))));
  }
  if (!from_bytes(payload, &report)) {
    return finish_apply(fail(BH_E_INTERNAL, "the endpoint sent an invalid report"));
  }
  finish_apply(std::move(report));
}

// Completes the reload. Stops the compartments that are not part of the new profile; the endpoint
// has already released them. If the profile was rejected, keeps them, because the caller applies
// the former profile again.
void Supervisor::finish_apply(Result<ApplyReport> result) {
  if (!apply_done_) return;
  reactor_->timer_cancel(std::exchange(apply_timer_, 0));
  if (mode_ == ApplyMode::restore) use_endpoint_slice();
  next_endpoint_.reset();  // still set if the change was rejected
  pins_->set_profile(children_.front()->slice.profile);
  lists_->set_profile(children_.front()->slice.profile);
  const bool rejected =
      !result && result.error().code == BH_E_INVALID && mode_ != ApplyMode::restore;
  for (const auto &child : children_) {
    if (result && child->new_views) {
      result->settings.emplace_back("protected files (stdio servers restart)");
      break;
    }
  }
  for (const auto &child : children_) {
    if (child->wanted) continue;
    if (rejected) {
      const bool known = child->retired || child->leaving || child->given_up;
      if (known || child->running() || child->timer != 0) continue;
      log(LogLevel::error, child->slice.name, "the compartment exited during the reload");
      ++child->restarts;
      child->retired = true;  // so that it is started again
      continue;
    }
    reactor_->timer_cancel(child->timer);
    child->timer = 0;
    child->retired = true;
    end(*child);
  }
  std::exchange(apply_done_, nullptr)(std::move(result));
}

}  // namespace bulkhead::program
