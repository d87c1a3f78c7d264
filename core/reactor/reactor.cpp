#include "reactor/reactor.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/slots.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "reactor/blocking_pool.hpp"
#include "reactor/poller.hpp"

namespace bulkhead {
namespace {

struct Watch {
  const void *owner = nullptr;
  int fd = -1;
  std::uint32_t events = 0;
  FdCallback fn = nullptr;
  void *arg = nullptr;
};

struct Timer {
  const void *owner = nullptr;
  Callback fn = nullptr;
  void *arg = nullptr;
};

struct Due {
  std::uint64_t at_ns;
  std::uint64_t timer;
  // reversed, so that the earliest timer is on top of the heap
  bool operator<(const Due &other) const { return at_ns > other.at_ns; }
};

struct Task {
  const void *owner = nullptr;
  Callback fn = nullptr;
  void *arg = nullptr;
  bool from_pool = false;
  Callback drop = nullptr;  // frees `arg` if fn is never called
};

}  // namespace

struct Reactor::State {
  std::unique_ptr<Poller> poller;
  std::vector<Poller::Ready> ready;  // ready descriptors of this iteration
  std::atomic<bool> stopping{false};
  std::atomic<std::thread::id> loop_thread{};
  std::uint64_t now = bh::monotonic_ns();

  Slots<Watch> watches;
  Slots<Timer> timers;
  std::vector<Due> heap;
  std::vector<Task> deferred;
  std::vector<Task> running;  // tasks of this iteration; forget() clears these too

  mutable std::mutex posted_mutex;
  std::vector<Task> posted;
  // submitted jobs whose `done` has not been run; guarded by posted_mutex
  std::uint32_t blocking = 0;
  std::vector<const void *> blocking_owners;

  std::unique_ptr<BlockingPool> pool;

  void (*rest)() noexcept = nullptr;
  bool idle_reported = true;  // the idle handler has run in this idle period, or is not set
  std::uint64_t idle_after_ns = first_idle_ms * 1'000'000u;
  std::uint64_t last_event = 0;

  ~State() { pool.reset(); }  // jobs use the other members

  bh_status push(const Task &task, bool bounded) {
    {
      const std::lock_guard lock(posted_mutex);
      if (bounded && posted.size() >= max_posted) return BH_E_LIMIT;
      posted.push_back(task);
    }
    if (loop_thread.load(std::memory_order_relaxed) != std::this_thread::get_id()) poller->wake();
    return BH_OK;
  }

  int wait_ms(int timeout_ms) {
    {
      const std::lock_guard lock(posted_mutex);
      if (!posted.empty()) return 0;
    }
    if (!deferred.empty() || stopping.load(std::memory_order_relaxed)) return 0;
    if (!idle_reported) timeout_ms = until_idle(timeout_ms);
    drop_stale_due();
    if (heap.empty()) return timeout_ms;
    const std::uint64_t at = heap.front().at_ns;
    now = bh::monotonic_ns();
    if (at <= now) return 0;
    const std::uint64_t ms = (at - now + 999'999) / 1'000'000;
    const int due_ms = static_cast<int>(std::min<std::uint64_t>(ms, 3'600'000));
    return timeout_ms < 0 ? due_ms : std::min(timeout_ms, due_ms);
  }

  int until_idle(int timeout_ms) const {
    const std::uint64_t quiet = now - last_event;
    const std::uint64_t left = quiet < idle_after_ns ? idle_after_ns - quiet : 0;
    const int idle_ms = static_cast<int>(left / 1'000'000u) + 1;
    return timeout_ms < 0 ? idle_ms : std::min(timeout_ms, idle_ms);
  }
  void look_at_pause(bool event) {
    if (event) {
      last_event = now;
      idle_reported = rest == nullptr;
    } else if (!idle_reported && now - last_event >= idle_after_ns) {
      idle_reported = true;
      idle_after_ns = next_idle_ms * 1'000'000u;
      rest();
    }
  }

  void drop_stale_due() {
    while (!heap.empty() && timers.get(heap.front().timer) == nullptr) pop_due();
  }
  void pop_due() {
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }

  void run_timers() {
    // Run only timers that are due now. The number of calls is limited, because a timer may restart
    // itself with a delay of 0.
    const std::uint64_t limit = now;
    std::size_t left = heap.size();
    while (!heap.empty() && heap.front().at_ns <= limit && left-- > 0) {
      const Due due = heap.front();
      pop_due();
      Timer *timer = timers.get(due.timer);
      if (timer == nullptr) continue;
      const Timer copy = *timer;
      timers.erase(due.timer);
      copy.fn(copy.arg);
    }
  }

  void run_events() {
    for (const Poller::Ready &event : ready) {
      // Look up the watch for each event, because an earlier handler may have removed it.
      const Watch *watch = watches.get(event.handle);
      if (watch == nullptr) continue;
      const std::uint32_t events = event.events & (watch->events | BH_FD_ERROR);
      if (events != 0) watch->fn(watch->arg, watch->fd, events);
    }
  }

  void run_tasks(std::vector<Task> &tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Task task = tasks[i];
      tasks[i].drop = nullptr;  // cleared first, because the task may call forget()
      if (task.from_pool) pool_done(task.owner);
      if (task.fn != nullptr) task.fn(task.arg);
    }
    tasks.clear();
  }

  void pool_done(const void *owner) {
    const std::lock_guard lock(posted_mutex);
    const auto it = std::find(blocking_owners.begin(), blocking_owners.end(), owner);
    if (it != blocking_owners.end()) blocking_owners.erase(it);
  }

  void run_posted() {
    {
      const std::lock_guard lock(posted_mutex);
      if (posted.empty()) return;
      running.swap(posted);
    }
    run_tasks(running);
  }

  void run_deferred() {
    // Deferred tasks may defer more tasks. After a few rounds, the remaining tasks are left for the
    // next iteration of the event loop.
    for (int round = 0; round < 4 && !deferred.empty(); ++round) {
      running.swap(deferred);
      run_tasks(running);
    }
  }
};

Reactor::Reactor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reactor::~Reactor() {
  state_->pool.reset();  // the pool's threads post to this reactor
  for (const std::vector<Task> *tasks : {&state_->deferred, &state_->running, &state_->posted}) {
    for (const Task &task : *tasks)
      if (task.drop != nullptr) task.drop(task.arg);
  }
}

Result<std::unique_ptr<Reactor>> Reactor::create() {
  auto poller = Poller::create();
  if (!poller.has_value()) return std::unexpected(poller.error());
  auto state = std::make_unique<State>();
  state->poller = std::move(*poller);
  State *raw = state.get();
  state->pool = std::make_unique<BlockingPool>(
      max_blocking_threads, max_blocking_waiting, [raw](const BlockingPool::Job &job) {
        raw->push({job.owner, job.done, job.arg, true}, false);
      });
  return std::unique_ptr<Reactor>(new Reactor(std::move(state)));
}

void Reactor::run() {
  while (!state_->stopping.load(std::memory_order_relaxed)) poll(-1);
  state_->stopping.store(false);
}

void Reactor::poll(int timeout_ms) {
  State &s = *state_;
  s.loop_thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
  const bool event = s.poller->wait(s.wait_ms(timeout_ms), s.ready);
  s.now = bh::monotonic_ns();
  s.run_timers();
  s.run_events();
  s.run_posted();
  s.run_deferred();
  s.look_at_pause(event);
}

void Reactor::set_idle_handler(void (*fn)() noexcept) noexcept {
  state_->rest = fn;
  state_->idle_reported = fn == nullptr;
  state_->last_event = state_->now;
}

void Reactor::stop() noexcept {
  state_->stopping.store(true);
  state_->poller->wake();
}

void Reactor::wake() noexcept {
  state_->poller->wake();
}

std::uint64_t Reactor::now_ns() const noexcept {
  return state_->now;
}

bh_status Reactor::post(const void *owner, Callback fn, void *arg, Callback drop) {
  return state_->push({owner, fn, arg, false, drop}, true);
}

void Reactor::defer(const void *owner, Callback fn, void *arg) {
  state_->deferred.push_back({owner, fn, arg, false});
}

std::uint64_t Reactor::timer_start(const void *owner, std::uint64_t delay_ms, Callback fn,
                                   void *arg) {
  State &s = *state_;
  const std::uint64_t handle = s.timers.insert({owner, fn, arg});
  const std::uint64_t delay_ns = std::min<std::uint64_t>(delay_ms, 1ull << 40) * 1'000'000u;
  s.heap.push_back({s.now + delay_ns, handle});
  std::push_heap(s.heap.begin(), s.heap.end());
  // Cancelled timers stay in the heap until they are on top of it. They are removed earlier if they
  // greatly outnumber the active timers.
  if (s.heap.size() > 64 && s.heap.size() > 4 * s.timers.size()) {
    std::erase_if(s.heap, [&](const Due &due) { return s.timers.get(due.timer) == nullptr; });
    std::make_heap(s.heap.begin(), s.heap.end());
  }
  return handle;
}

bh_status Reactor::timer_cancel(std::uint64_t timer) {
  return state_->timers.erase(timer) ? BH_OK : BH_STALE;
}

bh_status Reactor::watch(const void *owner, int fd, std::uint32_t events, FdCallback fn, void *arg,
                         std::uint64_t *out) {
  State &s = *state_;
  const std::uint64_t handle = s.watches.insert({owner, fd, events, fn, arg});
  const bh_status status = s.poller->add(handle, fd, events);
  if (status != BH_OK) {
    s.watches.erase(handle);
    return status;
  }
  *out = handle;
  return BH_OK;
}

bh_status Reactor::modify(std::uint64_t handle, std::uint32_t events) {
  Watch *watch = state_->watches.get(handle);
  if (watch == nullptr) return BH_STALE;
  if (watch->events == events) return BH_OK;
  watch->events = events;
  return state_->poller->modify(handle, watch->fd, events);
}

bh_status Reactor::unwatch(std::uint64_t handle) {
  const Watch *watch = state_->watches.get(handle);
  if (watch == nullptr) return BH_STALE;
  state_->poller->remove(handle, watch->fd);
  state_->watches.erase(handle);
  return BH_OK;
}

bh_status Reactor::run_blocking(const void *owner, Callback work, Callback done, void *arg) {
  {
    const std::lock_guard lock(state_->posted_mutex);
    state_->blocking_owners.push_back(owner);
  }
  const bh_status status = state_->pool->submit({owner, work, done, arg});
  if (status != BH_OK) state_->pool_done(owner);
  return status;
}

Reactor::Held Reactor::held(const void *owner) const {
  Held held;
  state_->watches.for_each(
      [&](std::uint64_t, const Watch &w) { held.watches += w.owner == owner; });
  state_->timers.for_each([&](std::uint64_t, const Timer &t) { held.timers += t.owner == owner; });
  const std::lock_guard lock(state_->posted_mutex);
  for (const void *o : state_->blocking_owners) held.blocking += o == owner;
  for (const Task &task : state_->posted) {
    if (task.owner != owner) continue;
    if (task.from_pool) {
      held.blocking -= held.blocking != 0;  // the work is complete
    } else {
      ++held.posted;
    }
  }
  return held;
}

void Reactor::forget(const void *owner) {
  State &s = *state_;
  s.watches.for_each([&](std::uint64_t handle, const Watch &w) {
    if (w.owner == owner) unwatch(handle);
  });
  s.timers.for_each([&](std::uint64_t handle, const Timer &t) {
    if (t.owner == owner) s.timers.erase(handle);
  });
  std::vector<Task> dropped;
  const auto silence = [&](std::vector<Task> &tasks) {
    for (Task &task : tasks) {
      if (task.owner != owner) continue;
      if (task.drop != nullptr) dropped.push_back(task);
      task.fn = task.drop = nullptr;
    }
  };
  silence(s.deferred);
  silence(s.running);
  {
    const std::lock_guard lock(s.posted_mutex);
    silence(s.posted);
  }
  for (const Task &task : dropped) task.drop(task.arg);
}

}  // namespace bulkhead
