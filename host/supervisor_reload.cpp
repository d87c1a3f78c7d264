// Another profile while the compartments run.
#include <algorithm>
#include <utility>

#include "compartment/status_archive.hpp"
#include "profile/difference.hpp"
#include "supervisor_child.hpp"

namespace bulkhead::program {
namespace {

bool same_plugins(const Slice &was, const Slice &is) {
  const auto same = [](const SlicePlugin &a, const SlicePlugin &b) {
    return a.kind == b.kind && same_use(a.use, b.use);
  };
  return was.privileges == is.privileges && std::equal(was.plugins.begin(), was.plugins.end(),
                                                       is.plugins.begin(), is.plugins.end(), same);
}

}  // namespace

void Supervisor::apply(std::vector<Slice> slices, std::function<void(Result<ApplyReport>)> done) {
  if (apply_done_) return done(fail(BH_E_LIMIT, "a reload is under way"));
  if (stopping_ || !all_ready_) return done(fail(BH_E_UNAVAILABLE, "the gateway is not running"));
  apply_done_ = std::move(done);
  for (const auto &child : children_) child->wanted = false;
  for (Slice &slice : slices) {
    const auto at = std::find_if(children_.begin(), children_.end(), [&](const auto &child) {
      return child->slice.name == slice.name;
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
  if (definitions_awaited_ == 0) send_apply();
}

void Supervisor::apply_to(Child &child, Slice slice) {
  child.wanted = true;
  slice.epoch = child.slice.epoch;
  const bool same = same_plugins(child.slice, slice);
  const bool other_servers = child.slice.definitions != slice.definitions;
  child.slice = std::move(slice);
  if (child.slice.router) return;
  if (std::exchange(child.retired, false)) {  // an earlier profile had no use for it
    if (child.running()) {
      child.replaced = true;
    } else if (!child.given_up) {
      start_again(child);
    }
    return;
  }
  if (!child.running()) return;  // it is started again with what it is now
  link::Frame frame;
  if (!same) {
    frame.kind = control::stop;  // it is started again with what it is now
    child.replaced = true;
    child.control->send(frame);
  } else if (other_servers) {
    frame.kind = control::definitions;
    child.taking_definitions = true;
    ++definitions_awaited_;
    child.control->send(frame, to_bytes(child.slice.definitions));
  }
}

void Supervisor::send_apply() {
  Child &endpoint = *children_.front();
  if (!endpoint.running()) {
    return finish_apply(fail(BH_E_UNAVAILABLE,
                             "the endpoint is being started again, and starts "
                             "with the new profile"));
  }
  link::Frame frame;
  frame.kind = control::apply;
  endpoint.control->send(frame, to_bytes(Apply{endpoint.slice.profile, endpoint.slice.remote}));
}

// What nobody needs any more ends in good order, after the endpoint has let go of it.
void Supervisor::finish_apply(Result<ApplyReport> result) {
  if (!apply_done_) return;
  for (const auto &child : children_) {
    if (child->wanted) continue;
    reactor_->timer_cancel(child->timer);
    child->timer = 0;
    child->retired = true;
    if (!child->running()) continue;
    link::Frame frame;
    frame.kind = control::stop;
    child->control->send(frame);
  }
  std::exchange(apply_done_, nullptr)(std::move(result));
}

}  // namespace bulkhead::program
