// One tool call. The request runs on the reactor thread; then a thread of the host's pool converts
// the result.
//
// A cancelled call is answered immediately, even while a pool thread converts its page. The object
// is deleted when that thread has finished.
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
  // Callbacks of a call. They run on the reactor thread, but never inside start() or cancel().
  class Owner {
   public:
    virtual void answer(std::uint64_t id, std::string &&result) = 0;  // called once, with JSON
    virtual void gone(std::uint64_t id) noexcept = 0;                 // may delete the Call
    virtual void record(std::uint64_t id, const std::string &event) = 0;
    // Called every second, with increasing `done`.
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

  // deadline_ns is the deadline of the call, or 0 if there is none. The configured time-out also
  // applies.
  void start(std::uint64_t deadline_ns, bool wants_progress);

  // Answers the call with an error at the end of the current event loop iteration.
  void cancel();

  // Suppresses the answer.
  void stop() noexcept;

  // Returns true while a pool thread uses this object.
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
