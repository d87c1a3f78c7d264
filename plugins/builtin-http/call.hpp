// One call of a tool: the request on the reactor's thread, then the result on the host's pool.
//
// A call that is cancelled is answered at once, whatever the pool's thread is doing; the object
// lives until that thread has left it.
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
  // Hears of what a call does; on the reactor's thread, never inside start() or cancel().
  class Owner {
   public:
    virtual void answer(std::uint64_t id, std::string &&result) = 0;  // once; JSON
    virtual void gone(std::uint64_t id) noexcept = 0;  // the Call may be deleted inside
    virtual void record(std::uint64_t id, const std::string &event) = 0;
    // Every second; done grows.
    virtual void progress(std::uint64_t id, double done, double total,
                          const std::string &message) = 0;

   protected:
    ~Owner() = default;
  };

  // host, http, config, cache and owner outlive the Call.
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

  // deadline_ns: of the call; 0: none. The configured time-out counts, too.
  void start(std::uint64_t deadline_ns, bool wants_progress);

  // The answer comes in this turn of the loop, and says so.
  void cancel();

  // No answer any more.
  void stop() noexcept;

  // Is a thread of the pool using this object?
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
