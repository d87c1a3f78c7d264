// Executes one tool call. Sends the HTTP request on the reactor thread, then converts the response
// on a thread of the host's pool.
//
// A cancelled call is completed immediately, even if a pool thread is converting its response. In
// that case, the Call is deleted when the conversion has finished.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <atomic>
#include <memory>
#include <string>

#include "builtin-http/fetcher.hpp"
#include "builtin-http/tool.hpp"

namespace builtin_http {

class Call final : private Fetcher::User {
 public:
  // Callbacks of a call. They run on the reactor thread. Only record() can run within start(), and
  // none runs within cancel().
  class Owner {
   public:
    // Called once, unless stop() is called first. `result` is JSON.
    virtual void answer(std::uint64_t id, std::string &&result) = 0;
    virtual void gone(std::uint64_t id) noexcept = 0;  // the Call is unused and may be deleted
    virtual void record(std::uint64_t id, const std::string &event) = 0;
    // If progress is wanted, called every second. `done` increases with each call.
    virtual void progress(std::uint64_t id, double done, double total,
                          const std::string &message) = 0;

   protected:
    ~Owner() = default;
  };

  // All references must outlive the Call.
  Call(const bh::Host &host, const bh_host_http &http, const Config &config, Cache &cache,
       Owner &owner, std::uint64_t id, std::unique_ptr<Task> task)
      : host_(host),
        config_(config),
        owner_(owner),
        id_(id),
        task_(std::move(task)),
        fetcher_(host, http, config, cache, *this) {}
  ~Call() { stop(); }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  // `deadline_ns` is the call's deadline on the monotonic clock, or 0 if there is none. The
  // configured time limit applies as well.
  void start(std::uint64_t deadline_ns, bool wants_progress);

  // Completes the call with an error. Owner::answer() runs at the end of the current event loop
  // iteration.
  void cancel();

  // Stops the call without completing it.
  void stop() noexcept;

  // Returns true while a pool thread is using this object. During that time, the owner must not
  // delete it.
  bool is_converting() const noexcept { return converting_; }

 private:
  void fetched(const std::string &problem) override;
  void record(const std::string &event) override { owner_.record(id_, event); }
  void convert();
  void converted();
  void tick();
  void watch();
  void finish(std::string &&result);

  const bh::Host &host_;
  const Config &config_;
  Owner &owner_;
  const std::uint64_t id_;
  const std::unique_ptr<Task> task_;
  Fetcher fetcher_;
  std::string result_;
  bh_timer timer_ = 0;
  unsigned seconds_ = 0;
  bool converting_ = false;
  bool stopped_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace builtin_http
