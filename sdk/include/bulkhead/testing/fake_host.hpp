// A host for testing a plugin. The event loop (based on poll(2)), sockets, child processes (without
// a sandbox) and the storage folder (temporary) are real. Secrets, metrics and logs are in memory.
//
//   bh::testing::FakeHost host;
//   host.add_ext(BH_EXT_HOST_CONNECTOR, &table);  // its functions get the FakeHost as ctx
//   host.user = &what_the_test_records;
//   MyPlugin plugin(host.host());
//   ...
//   REQUIRE(host.run_until([&] { return answered; }, 5000));
//   plugin.stop();
//   REQUIRE(host.watches() == 0);
//   REQUIRE(host.faults().empty());
//
// The thread that created the host runs the event loop and may call [io] and [control] functions.
// post(), run_blocking() and log() may be called on any thread. faults() returns the violations of
// the ABI that the host has detected, such as calls on a wrong thread.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../abi/ext/draft/listen.h"
#include "../abi/host.h"
#include "../cpp/basics.hpp"
#include "fake_children.hpp"

namespace bh::testing {

// Returns limits that are low enough for tests. A test can change them.
inline bh_limits limits() noexcept {
  bh_limits l{};
  l.size = sizeof l;
  l.message_bytes = 4u << 20;
  l.header_bytes = 16u << 10;
  l.sessions = 8;
  l.session_idle_ms = 60'000;
  l.event_buffer_bytes = 64u << 10;
  l.write_queue_bytes = 1u << 20;
  l.write_stall_ms = 2'000;
  l.connect_timeout_ms = 5'000;
  l.request_read_ms = 2'000;
  l.shutdown_grace_ms = 300;
  l.in_flight_per_session = 256;
  return l;
}

class FakeHost {
 public:
  struct LogLine {
    std::int32_t level;
    std::string text;
  };

  FakeHost() : thread_(std::this_thread::get_id()) {
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    table_.size = sizeof table_;
    table_.abi_minor = BH_ABI_MINOR;
    table_.ctx = this;
    table_.name = str("fake-host");
    table_.version = str("0");
    table_.get_ext = [](void *c, const char *id) { return self(c).get_ext(id); };
    table_.log = [](void *c, std::int32_t level, bh_str text) { self(c).log(level, view(text)); };
    table_.log_enabled = [](void *, std::int32_t) -> std::int32_t { return 1; };
    make_executor();
    make_fd();
    make_secrets();
    make_metrics();
    make_store();
    make_listen();
    make_spawn();
  }
  ~FakeHost() {
    join_threads();
    ::close(epoll_);
    ::close(wake_);
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  FakeHost(const FakeHost &) = delete;
  FakeHost &operator=(const FakeHost &) = delete;

  const bh_host *host() const noexcept { return &table_; }
  static FakeHost &self(void *ctx) noexcept { return *static_cast<FakeHost *>(ctx); }

  // Data for the functions in the tables that the test adds. These functions receive this FakeHost
  // as ctx.
  void *user = nullptr;
  // If false, get_ext returns NULL for all IDs, like a host without extensions.
  bool offer_extensions = true;
  // If this is true, run_blocking() immediately runs `work` on the calling thread. `done` still
  // runs in the event loop.
  bool blocking_inline = false;

  // Adds a table, which must remain valid for the lifetime of the host. The table replaces any
  // table with the same ID, even a built-in one. If `table` is null, the extension is removed.
  void add_ext(const char *id, const void *table) { extensions_[id] = table; }

  // Runs the event loop until done() returns true or timeout_ms has passed. Returns false if the
  // time runs out first.
  bool run_until(const std::function<bool()> &done, int timeout_ms) {
    const std::uint64_t end = clock_ns() + static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
    for (;;) {
      if (done()) return true;
      const std::uint64_t now = clock_ns();
      if (now >= end) return false;
      // Sleeps only briefly, because done() may depend on an event that does not wake the loop.
      turn(static_cast<int>(std::min<std::uint64_t>((end - now + 999'999) / 1'000'000, 20)));
    }
  }
  void run_for(int ms) {
    run_until([] { return false; }, ms);
  }

  // Runs one event loop iteration: descriptors, due timers, posted functions, deferred functions.
  // Waits for at most timeout_ms if there is nothing to do.
  void turn(int timeout_ms) {
    // The test may have called functions that deferred work since the last iteration.
    if (run_deferred()) timeout_ms = 0;
    in_turn_ = true;
    now_ = clock_ns();
    ++turns_;
    poll_descriptors(sleep_ms(timeout_ms));
    now_ = clock_ns();
    run_timers();
    run_posted();
    run_deferred();
    in_turn_ = false;
  }

  // Drops all posted and deferred functions, as a host does after stop() has returned.
  void forget() {
    deferred_.clear();
    const std::lock_guard lock(mutex_);
    posted_.clear();
  }

  // The numbers of resources that the plugin still holds. All of them must be 0 after a correct
  // stop().
  std::size_t watches() const noexcept { return watches_.size(); }
  std::size_t timers() const noexcept { return timers_.size(); }
  std::size_t children() const noexcept { return children_.size(); }
  std::size_t deferred() const noexcept { return deferred_.size(); }
  std::size_t posted() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(posted_.begin(), posted_.end(), [](const Call &c) { return !c.from_pool; }));
  }
  std::size_t blocking() const {
    const std::lock_guard lock(mutex_);
    return blocking_;
  }
  std::uint64_t turns() const noexcept { return turns_; }

  std::vector<LogLine> logs() const {
    const std::lock_guard lock(mutex_);
    return logs_;
  }
  bool logged(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(logs_.begin(), logs_.end(),
                       [&](const LogLine &l) { return l.text.find(part) != std::string::npos; });
  }
  std::vector<std::string> faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }

  std::uint64_t metric(const std::string &name) const {
    const auto it = std::find(metric_names_.begin(), metric_names_.end(), name);
    return it == metric_names_.end() ? 0 : metric_values_[it - metric_names_.begin()];
  }
  std::map<std::string, std::string> secrets;

  void log(std::int32_t level, std::string_view text) {
    const std::lock_guard lock(mutex_);
    logs_.push_back({level, std::string(text.substr(0, 4096))});
  }

 private:
  struct Call {
    void (*fn)(void *);
    void *arg;
    bool from_pool = false;  // `done` of a job, which the plugin cannot cancel
  };
  struct Watch {
    int fd;
    std::uint32_t events;
    void (*fn)(void *, std::int32_t, std::uint32_t);
    void *arg;
  };
  struct Timer {
    std::uint64_t due_ns;
    Call call;
  };

  static std::uint64_t clock_ns() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }

  const void *get_ext(const char *id) const {
    if (!offer_extensions || id == nullptr) return nullptr;
    const auto it = extensions_.find(id);
    return it == extensions_.end() ? nullptr : it->second;
  }

  void fault(std::string text) {
    const std::lock_guard lock(mutex_);
    faults_.push_back(std::move(text));
  }
  void on_loop_thread(const char *what) {
    if (std::this_thread::get_id() != thread_) fault(std::string(what) + " off the loop's thread");
  }

  int sleep_ms(int limit) const {
    if (!deferred_.empty() || has_posted()) return 0;
    std::uint64_t ms = limit < 0 ? 0 : static_cast<std::uint64_t>(limit);
    for (const auto &[id, timer] : timers_) {
      const std::uint64_t left = timer.due_ns > now_ ? timer.due_ns - now_ : 0;
      ms = std::min(ms, (left + 999'999) / 1'000'000);
    }
    return static_cast<int>(ms);
  }

  void poll_descriptors(int timeout_ms) {
    std::vector<pollfd> polled{{wake_, POLLIN, 0}};
    std::vector<bh_watch> ids{0};
    for (const auto &[id, w] : watches_) {
      const int events = ((w.events & BH_FD_READ) != 0 ? POLLIN : 0) |
                         ((w.events & BH_FD_WRITE) != 0 ? POLLOUT : 0);
      polled.push_back({w.fd, static_cast<short>(events), 0});
      ids.push_back(id);
    }
    if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
    std::uint64_t drained = 0;
    if (polled[0].revents != 0 && ::read(wake_, &drained, sizeof drained) < 0) return;
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) report(ids[i], polled[i]);
    }
  }

  void report(bh_watch id, const pollfd &p) {
    const auto it = watches_.find(id);
    if (it == watches_.end()) return;  // an earlier callback has removed the watch
    if ((p.revents & POLLNVAL) != 0) {
      fault("descriptor " + std::to_string(p.fd) + " was closed while watched");
      watches_.erase(it);
      return;
    }
    std::uint32_t events = 0;
    if ((p.revents & POLLIN) != 0) events |= BH_FD_READ;
    if ((p.revents & POLLOUT) != 0) events |= BH_FD_WRITE;
    if ((p.revents & (POLLERR | POLLHUP)) != 0) events |= BH_FD_ERROR;
    const Watch w = it->second;
    w.fn(w.arg, w.fd, events & (w.events | BH_FD_ERROR));
  }

  void run_timers() {
    std::vector<std::pair<std::uint64_t, bh_timer>> due;
    for (const auto &[id, timer] : timers_) {
      if (timer.due_ns <= now_) due.emplace_back(timer.due_ns, id);
    }
    std::sort(due.begin(), due.end());
    for (const auto &[when, id] : due) {
      const auto it = timers_.find(id);
      if (it == timers_.end()) continue;  // an earlier timer has cancelled it
      const Call call = it->second.call;
      timers_.erase(it);
      call.fn(call.arg);
    }
  }

  void run_posted() {
    std::vector<Call> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(posted_);
    }
    for (const Call &c : calls) c.fn(c.arg);
  }

  bool run_deferred() {
    const bool any = !deferred_.empty();
    while (!deferred_.empty()) {
      const std::vector<Call> calls = std::exchange(deferred_, {});
      for (const Call &c : calls) c.fn(c.arg);
    }
    return any;
  }

  bool has_posted() const {
    const std::lock_guard lock(mutex_);
    return !posted_.empty();
  }

  bh_status post(void (*fn)(void *), void *arg, bool from_pool = false) {
    {
      const std::lock_guard lock(mutex_);
      if (posted_.size() >= 65'536) return BH_E_LIMIT;
      posted_.push_back({fn, arg, from_pool});
    }
    const std::uint64_t one = 1;
    return ::write(wake_, &one, sizeof one) == sizeof one || errno == EAGAIN ? BH_OK : BH_E_IO;
  }

  bh_status run_blocking(void (*work)(void *), void (*done)(void *), void *arg) {
    if (blocking_inline) {
      work(arg);
      return post(done, arg, true);
    }
    const std::lock_guard lock(mutex_);
    if (blocking_ >= 256) return BH_E_LIMIT;
    ++blocking_;
    threads_.emplace_back([this, work, done, arg] {
      work(arg);
      post(done, arg, true);
      const std::lock_guard inner(mutex_);
      --blocking_;
    });
    return BH_OK;
  }

  void join_threads() {
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread &t : threads) t.join();
  }

  bh_status watch(const Watch &w, bh_watch *out) {
    on_loop_thread("watch");
    if ((w.events & ~static_cast<std::uint32_t>(BH_FD_READ | BH_FD_WRITE)) != 0) {
      fault("watch with unsupported events");
      return BH_E_INVALID;
    }
    for (const auto &[id, other] : watches_) {
      if (other.fd != w.fd) continue;
      fault("descriptor " + std::to_string(w.fd) + " is watched twice");
      return BH_E_INVALID;
    }
    // A real host uses epoll, which rejects some descriptors that poll(2) accepts (regular files,
    // /dev/null). To test for this, the descriptor is first added to an epoll instance.
    epoll_event none{};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, w.fd, &none) != 0) {
      return errno == EPERM ? BH_E_UNSUPPORTED : BH_E_IO;
    }
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, w.fd, nullptr);
    *out = ++last_id_;
    watches_.emplace(*out, w);
    return BH_OK;
  }

  bh_status unwatch(bh_watch id) {
    on_loop_thread("unwatch");
    return watches_.erase(id) == 1 ? BH_OK : BH_STALE;
  }

  bh_status modify(bh_watch id, std::uint32_t events) {
    on_loop_thread("modify");
    const auto it = watches_.find(id);
    if (it == watches_.end()) return BH_STALE;
    it->second.events = events;
    return BH_OK;
  }

  bh_timer timer_start(std::uint64_t delay_ms, Call call) {
    on_loop_thread("timer_start");
    timers_.emplace(++last_id_, Timer{now_ns() + delay_ms * 1'000'000, call});
    return last_id_;
  }

  std::uint64_t now_ns() const noexcept { return in_turn_ ? now_ : clock_ns(); }

  void make_executor() {
    executor_.size = sizeof executor_;
    executor_.now_ns = [](void *c) { return self(c).now_ns(); };
    executor_.post = [](void *c, void (*fn)(void *), void *arg) { return self(c).post(fn, arg); };
    executor_.defer = [](void *c, void (*fn)(void *), void *arg) {
      self(c).on_loop_thread("defer");
      self(c).deferred_.push_back({fn, arg});
    };
    executor_.timer_start = [](void *c, std::uint64_t ms, void (*fn)(void *), void *arg) {
      return self(c).timer_start(ms, {fn, arg});
    };
    executor_.timer_cancel = [](void *c, bh_timer timer) -> bh_status {
      self(c).on_loop_thread("timer_cancel");
      return self(c).timers_.erase(timer) == 1 ? BH_OK : BH_STALE;
    };
    executor_.run_blocking = [](void *c, void (*work)(void *), void (*done)(void *), void *arg) {
      return self(c).run_blocking(work, done, arg);
    };
    add_ext(BH_EXT_HOST_EXECUTOR, &executor_);
  }

  void make_fd() {
    fd_.size = sizeof fd_;
    fd_.watch = [](void *c, std::int32_t fd, std::uint32_t events,
                   void (*fn)(void *, std::int32_t, std::uint32_t), void *arg,
                   bh_watch *out) { return self(c).watch({fd, events, fn, arg}, out); };
    fd_.modify = [](void *c, bh_watch w, std::uint32_t e) { return self(c).modify(w, e); };
    fd_.unwatch = [](void *c, bh_watch w) { return self(c).unwatch(w); };
    add_ext(BH_EXT_HOST_FD, &fd_);
  }

  void make_secrets() {
    secrets_.size = sizeof secrets_;
    secrets_.get = [](void *c, bh_str name, char *to, std::uint64_t cap,
                      std::uint64_t *n) -> bh_status {
      const auto it = self(c).secrets.find(std::string(view(name)));
      if (it == self(c).secrets.end()) return BH_E_NOT_FOUND;
      *n = it->second.size();
      if (*n > cap) return BH_E_LIMIT;
      it->second.copy(to, it->second.size());
      return BH_OK;
    };
    secrets_.put = [](void *c, bh_str name, bh_str value) -> bh_status {
      if (value.n > 65'536) return BH_E_LIMIT;
      if (value.n == 0) {
        self(c).secrets.erase(std::string(view(name)));
      } else {
        self(c).secrets[std::string(view(name))] = view(value);
      }
      return BH_OK;
    };
    add_ext(BH_EXT_HOST_SECRETS, &secrets_);
  }

  void make_metrics() {
    metrics_.size = sizeof metrics_;
    metrics_.counter = [](void *c, bh_str name) -> bh_metric {
      FakeHost &h = self(c);
      const std::string wanted(view(name));
      const auto it = std::find(h.metric_names_.begin(), h.metric_names_.end(), wanted);
      if (it != h.metric_names_.end()) {
        return static_cast<bh_metric>(it - h.metric_names_.begin() + 1);
      }
      if (h.metric_names_.size() >= 256) return 0;
      h.metric_names_.push_back(wanted);
      h.metric_values_.push_back(0);
      return static_cast<bh_metric>(h.metric_names_.size());
    };
    metrics_.add = [](void *c, bh_metric metric, std::uint64_t n) {
      FakeHost &h = self(c);
      if (metric != 0 && metric <= h.metric_values_.size()) h.metric_values_[metric - 1] += n;
    };
    add_ext(BH_EXT_HOST_METRICS, &metrics_);
  }

  void make_listen() {
    listen_.size = sizeof listen_;
    listen_.open = [](void *, const void *address, std::uint32_t size, bh_str as_configured,
                      std::int32_t *fd, bh_error *error) -> bh_status {
      return open_listener(address, size, as_configured, 0600, fd, error);
    };
    listen_.open_for_all = [](void *, const void *address, std::uint32_t size, bh_str as_configured,
                              std::int32_t *fd, bh_error *error) -> bh_status {
      return open_listener(address, size, as_configured, 0666, fd, error);
    };
    make_dial();
    extensions_[BH_EXT_HOST_LISTEN] = &listen_;
  }
  // `mode` is the file mode of a Unix socket.
  static bh_status open_listener(const void *address, std::uint32_t size, bh_str as_configured,
                                 mode_t mode, std::int32_t *fd, bh_error *error) {
    const auto *raw = static_cast<const sockaddr *>(address);
    const int made = ::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (raw->sa_family != AF_UNIX) ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (made < 0 || ::bind(made, raw, size) != 0 || ::listen(made, 64) != 0) {
      const std::string why = std::strerror(errno);
      if (made >= 0) ::close(made);
      return fail(error, BH_E_IO,
                  "cannot listen on " + std::string(view(as_configured)) + ": " + why);
    }
    if (raw->sa_family == AF_UNIX) {
      ::chmod(reinterpret_cast<const sockaddr_un *>(raw)->sun_path, mode);
    }
    *fd = made;
    return BH_OK;
  }
  void make_dial() {
    listen_.will_dial = [](void *, const void *, std::uint32_t, bh_error *) -> bh_status {
      return BH_OK;
    };
    listen_.dial = [](void *, const void *address, std::uint32_t size, std::int32_t *fd,
                      bh_error *error) -> bh_status {
      const auto *raw = static_cast<const sockaddr *>(address);
      const int made = ::socket(raw->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (made < 0 || (::connect(made, raw, size) != 0 && errno != EINPROGRESS)) {
        const std::string why = std::strerror(errno);
        if (made >= 0) ::close(made);
        return fail(error, BH_E_UNAVAILABLE, "connect: " + why);
      }
      *fd = made;
      return BH_OK;
    };
  }
  void make_store() {
    store_.size = sizeof store_;
    store_.folder = [](void *c) {
      FakeHost &h = self(c);
      if (h.folder_.empty()) {
        std::string name = (std::filesystem::temp_directory_path() / "bulkhead-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) h.folder_ = name;
      }
      return str(h.folder_);
    };
    add_ext(BH_EXT_HOST_STORE, &store_);
  }

  void make_spawn() {
    spawn_.size = sizeof spawn_;
    spawn_.spawn = [](void *c, const bh_spawn *request, bh_child *out, bh_error *error) {
      self(c).on_loop_thread("spawn");
      return self(c).children_.spawn(*request, out, error);
    };
    spawn_.kill = [](void *c, bh_child_id child, std::int32_t signal) {
      return self(c).children_.kill(child, signal);
    };
    spawn_.reap = [](void *c, bh_child_id child, bh_child_end *out) {
      return self(c).children_.reap(child, out);
    };
    add_ext(BH_EXT_HOST_SPAWN, &spawn_);
  }

  bh_host table_{};
  bh_host_executor executor_{};
  bh_host_fd fd_{};
  bh_host_secrets secrets_{};
  bh_host_metrics metrics_{};
  bh_host_store store_{};
  bh_host_listen listen_{};
  bh_host_spawn spawn_{};
  FakeChildren children_;
  std::map<std::string, const void *, std::less<>> extensions_;

  const std::thread::id thread_;
  int wake_ = -1, epoll_ = -1;
  bool in_turn_ = false;
  std::uint64_t now_ = 0, turns_ = 0,
                last_id_ = 0;  // IDs are not reused, so stale IDs are detected
  std::map<bh_watch, Watch> watches_;
  std::map<bh_timer, Timer> timers_;
  std::vector<Call> deferred_;
  std::vector<std::string> metric_names_;
  std::vector<std::uint64_t> metric_values_;
  std::string folder_;

  mutable std::mutex mutex_;  // guards the following members
  std::vector<Call> posted_;
  std::vector<std::thread> threads_;
  std::size_t blocking_ = 0;
  std::vector<LogLine> logs_;
  std::vector<std::string> faults_;
};

}  // namespace bh::testing
