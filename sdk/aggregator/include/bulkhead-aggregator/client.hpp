// A client that starts `bulkhead aggregator` as a child process and sends requests to it. Header
// only; C++20, Linux; link with -pthread.
//
//   bh::aggregator::Options options;
//   options.definitions = R"([{"name":"files","command":"mcp-files","args":["/srv"]}])";
//   bh::aggregator::Client client(options);
//   const bh::aggregator::Reply tools = client.list_tools();
//   const auto reply = client.call_tool("files__read", R"({"path":"a.txt"})");
//   if (reply.ok()) use(reply.text);        // the tool's result, JSON
//
// The first request starts the process. The destructor terminates the process and all of its
// children. If the process exits, all pending requests fail immediately; if Options::restart is
// true, the next request starts it again with the last accepted definitions.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "child.hpp"
#include "frames.hpp"

namespace bh::aggregator {

struct Options {
  std::string program = "bulkhead";
  std::vector<std::string> arguments = {"aggregator"};
  std::string definitions = "[]";  // a JSON array of server definitions
  Codec codec = Codec::msgpack;    // ndjson is for debugging; it limits messages to 1 MiB
  int error_fd = STDERR_FILENO;    // the process's standard error
  bool restart = true;
  // Minimum time between two starts of the process. A request that would restart the process
  // earlier fails.
  std::uint32_t restart_pause_ms = 1'000;
  std::uint32_t timeout_ms = 310'000;  // per request; longer than the aggregator's own timeouts
  std::uint32_t end_ms = 3'000;        // time between the shutdown request and SIGKILL
  std::size_t max_pending = 4'096;     // requests without a reply
  std::size_t max_queued = 64u << 20;  // bytes that the process has not read
};

struct Reply {
  enum class Kind : std::uint8_t {
    ok,
    refused,   // the aggregator replied with an error
    not_sent,  // not executed, because it could not be sent
    lost,      // sent, but the process exited; the request may have been executed
    late,      // no reply arrived in time; the request may have been, or may yet be, executed
    garbled    // the format of the reply is unknown
  };
  Kind kind = Kind::ok;
  std::string text;  // the requested data as JSON if kind is ok, and an error message otherwise
  bool ok() const noexcept { return kind == Kind::ok; }
};

// Thread-safe. The callback passed to send() is called on the client's own thread, inside send() if
// the request cannot be sent, or inside shutdown() if that kills the process. A callback may call
// send(), but must not wait for a reply and must not destroy the client.
class Client {
 public:
  using Callback = std::function<void(Reply)>;

  explicit Client(Options options) : options_(std::move(options)) {
    wake_ = detail::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = std::thread([this] { run(); });
  }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;
  ~Client() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake();
    thread_.join();
  }

  // Returns the process ID, or -1 if there is no process.
  pid_t pid() const {
    const std::lock_guard lock(mutex_);
    return child_.pid();
  }

  // Returns the number of requests without a reply.
  std::size_t pending() const {
    const std::lock_guard lock(mutex_);
    return pending_.size();
  }

  // Sends a request. `params` is a JSON object or empty. If timeout_ms is 0, Options::timeout_ms
  // applies. Calls `done` exactly once.
  void send(std::string_view method, std::string_view params, Callback done,
            std::uint32_t timeout_ms = 0) {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (enqueue(method, params, timeout_ms, &done, &why)) {
        wake();
        return;
      }
    }
    done({Reply::Kind::not_sent, std::move(why)});
  }

  // Sends a request and waits for the reply. Must not be called from a callback.
  Reply request(std::string_view method, std::string_view params = {},
                std::uint32_t timeout_ms = 0) {
    std::promise<Reply> promise;
    std::future<Reply> reply = promise.get_future();
    send(method, params, [&promise](Reply r) { promise.set_value(std::move(r)); }, timeout_ms);
    return reply.get();
  }

  Reply list_servers() { return request("list_servers"); }
  Reply list_tools() { return request("list_tools"); }
  Reply list_resources() { return request("list_resources"); }
  Reply list_prompts() { return request("list_prompts"); }
  // `arguments` is a JSON object or empty.
  Reply call_tool(std::string_view name, std::string_view arguments = {},
                  std::uint32_t timeout_ms = 0) {
    return request("call_tool", named("name", name, arguments), timeout_ms);
  }
  Reply read_resource(std::string_view uri) {
    return request("read_resource", named("uri", uri, {}));
  }
  Reply get_prompt(std::string_view name, std::string_view arguments = {}) {
    return request("get_prompt", named("name", name, arguments));
  }
  // Replaces all server definitions with `servers`, a JSON array. If the aggregator accepts them,
  // they are also used when it is restarted.
  Reply refresh(std::string_view servers) {
    Reply reply = request("refresh", "{\"servers\":" + std::string(servers) + "}");
    if (reply.ok()) {
      const std::lock_guard lock(mutex_);
      options_.definitions = servers;
    }
    return reply;
  }
  // Shuts the process down and waits until it has exited. Kills it after Options::end_ms. If
  // Options::restart is true, the next request starts it again.
  Reply shutdown() {
    Reply reply = request("shutdown");
    Failures failures;
    {
      std::unique_lock lock(mutex_);
      const auto bound = std::chrono::milliseconds(options_.end_ms);
      const bool gone = ended_.wait_for(lock, bound, [this] { return !child_.running(); });
      if (!gone) ended(&failures);
    }
    call(failures);
    return reply;
  }

  // Returns {"KEY":"NAME","arguments":ARGUMENTS}.
  static std::string named(std::string_view key, std::string_view name,
                           std::string_view arguments) {
    std::string out = "{";
    json::append_quoted(&out, key);
    out += ':';
    json::append_quoted(&out, name);
    if (!arguments.empty()) out.append(",\"arguments\":").append(arguments);
    return out + "}";
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    Callback done;
    Clock::time_point deadline;
    std::uint64_t end;  // offset in the process's input at which the request ends
  };
  using Failures = std::vector<std::pair<Callback, Reply>>;

  void wake() const noexcept {
    const std::uint64_t one = 1;
    // If the write fails (EAGAIN), the thread has already been woken.
    if (::write(wake_.get(), &one, sizeof one) < 0) return;
  }

  // ---- functions that are called with the mutex locked ----------------------------------------

  bool enqueue(std::string_view method, std::string_view params, std::uint32_t timeout_ms,
               Callback *done, std::string *why) {
    if (ending_) return no(why, "the client is being destroyed");
    if (pending_.size() >= options_.max_pending) return no(why, "too many requests are pending");
    if (out_.size() - written_ > options_.max_queued) {
      return no(why, "the aggregator does not read its requests");
    }
    if (!child_.running() && !start(why)) return false;
    const std::uint64_t id = next_id_++;
    std::string message = "{\"id\":" + std::to_string(id) + ",\"method\":";
    json::append_quoted(&message, method);
    if (!params.empty()) message.append(",\"params\":").append(params);
    message += '}';
    // The message is validated here because NDJSON contains the caller's JSON unchanged.
    const char *problem = json::valid(message) ? append(message) : "its params are not valid JSON";
    if (problem != nullptr) return no(why, std::string("the request cannot be sent: ") + problem);
    const auto wait = std::chrono::milliseconds(timeout_ms != 0 ? timeout_ms : options_.timeout_ms);
    const Clock::time_point deadline = Clock::now() + wait;
    pending_.emplace(id, Pending{std::move(*done), deadline, flushed_ + out_.size()});
    deadlines_.emplace(deadline, id);
    return true;
  }

  static bool no(std::string *why, std::string text) {
    *why = std::move(text);
    return false;
  }

  const char *append(std::string_view message) {
    return append_message(options_.codec, message, &out_);
  }

  bool start(std::string *why) {
    const Clock::time_point now = Clock::now();
    if (started_once_) {
      if (!options_.restart) return no(why, "the aggregator has ended");
      if (now - started_ < std::chrono::milliseconds(options_.restart_pause_ms)) {
        return no(why, "the aggregator has ended and cannot be restarted yet");
      }
    }
    out_.clear();
    written_ = 0;
    flushed_ = 0;
    if (!json::valid(options_.definitions)) return no(why, "the definitions are not JSON");
    if (const char *problem = append(options_.definitions)) {
      return no(why, std::string("the definitions cannot be sent: ") + problem);
    }
    cutter_ = FrameCutter(options_.codec);
    started_ = now;
    started_once_ = true;
    return child_.start(options_.program, options_.arguments, options_.error_fd, why);
  }

  void write_out() {
    while (written_ < out_.size()) {
      const ssize_t n = ::write(child_.input(), out_.data() + written_, out_.size() - written_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;  // full or closed; the client's thread detects a closed pipe
      written_ += static_cast<std::size_t>(n);
    }
    if (written_ < out_.size() && written_ < out_.size() / 2) return;
    out_.erase(0, written_);
    flushed_ += written_;
    written_ = 0;
  }

  // Reads replies. Returns true if no more can be read: the output is closed or invalid.
  bool read_in(std::vector<std::string> *replies) {
    char piece[65'536];
    for (;;) {
      const ssize_t n = ::read(child_.output(), piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno != EAGAIN;
      if (n == 0) return true;
      cutter_.add({piece, static_cast<std::size_t>(n)});
      for (;;) {
        const FrameCutter::Next next = cutter_.next();
        if (next == FrameCutter::Next::broken) return true;
        if (next == FrameCutter::Next::more) break;
        if (next == FrameCutter::Next::message) replies->emplace_back(cutter_.message());
      }
    }
  }

  Callback take(std::uint64_t id) {
    const auto at = pending_.find(id);
    if (at == pending_.end()) return {};
    Callback done = std::move(at->second.done);
    deadlines_.erase({at->second.deadline, id});
    pending_.erase(at);
    return done;
  }

  void expire(Failures *out) {
    const Clock::time_point now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      out->emplace_back(take(deadlines_.begin()->second),
                        Reply{Reply::Kind::late, "the aggregator did not reply in time"});
    }
  }

  // Terminates the process and fails all pending requests.
  void ended(Failures *out) {
    child_.end();
    ended_.notify_all();
    for (auto &[id, pending] : pending_) {
      const bool sent = pending.end <= flushed_ + written_;
      out->emplace_back(
          std::move(pending.done),
          sent ? Reply{Reply::Kind::lost, "the aggregator ended before it replied"}
               : Reply{Reply::Kind::not_sent, "the aggregator ended before the request was sent"});
    }
    pending_.clear();
    deadlines_.clear();
    out_.clear();
    written_ = 0;
  }

  // ---- functions of the client's thread -------------------------------------------------------

  void run() {
    sigset_t set;  // with SIGPIPE blocked, writing to an exited process fails with EPIPE
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    while (turn()) {
    }
    Failures failures;
    {
      const std::lock_guard lock(mutex_);
      ended(&failures);
    }
    call(failures);
  }

  static void call(Failures &failures) {
    for (auto &[done, reply] : failures) done(std::move(reply));
  }

  // Waits for an event and handles it. Returns false if the client is being destroyed.
  bool turn() {
    std::array<pollfd, 4> watched{};
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) break_off();
      if (ending_ && !child_.running()) return false;
      watched = {pollfd{wake_.get(), POLLIN, 0}, pollfd{child_.output(), POLLIN, 0},
                 pollfd{child_.ended(), POLLIN, 0}, pollfd{-1, POLLOUT, 0}};
      if (written_ < out_.size()) watched[3].fd = child_.input();
      timeout = until_deadline();
    }
    ::poll(watched.data(), watched.size(), timeout);
    std::vector<std::string> replies;
    Failures failures;
    {
      const std::lock_guard lock(mutex_);
      std::uint64_t count = 0;
      if (watched[0].revents != 0 && ::read(wake_.get(), &count, sizeof count) < 0) count = 0;
      if (child_.running()) {
        write_out();
        // Also reads output that was written before the process exited.
        bool over = read_in(&replies);
        over = over || (watched[2].revents != 0 && child_.wait(0));
        if (over) settle(replies, &failures);
      }
      expire(&failures);
    }
    for (const std::string &reply : replies) deliver(reply);
    call(failures);
    return true;
  }

  // Terminates the process. Fails all pending requests whose replies are not in `replies`.
  void settle(const std::vector<std::string> &replies, Failures *failures) {
    std::map<std::uint64_t, Pending> answered;
    for (const std::string &reply : replies) {
      std::string scratch;
      std::string_view text;
      if (decode_message(options_.codec, reply, &scratch, &text) != nullptr) continue;
      if (auto node = pending_.extract(id_of(text))) answered.insert(std::move(node));
    }
    ended(failures);
    pending_ = std::move(answered);
    for (const auto &[id, pending] : pending_) deadlines_.emplace(pending.deadline, id);
  }

  // Runs while the destructor waits for the process. Requests a shutdown, and kills the process if
  // it does not exit within Options::end_ms.
  void break_off() {
    if (!child_.running()) return;
    if (end_by_ == Clock::time_point{}) {
      end_by_ = Clock::now() + std::chrono::milliseconds(options_.end_ms);
      append(R"({"id":0,"method":"shutdown"})");
      write_out();
    }
    if (written_ == out_.size()) child_.close_input();
    if (Clock::now() >= end_by_) child_.end();
  }

  int until_deadline() const {
    Clock::time_point first = Clock::time_point::max();
    if (!deadlines_.empty()) first = deadlines_.begin()->first;
    if (ending_) first = std::min(first, end_by_);
    if (first == Clock::time_point::max()) return -1;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
  }

  static std::uint64_t id_of(std::string_view text) {
    const std::string_view token = json::member(text, "id");
    std::uint64_t id = 0;
    std::from_chars(token.data(), token.data() + token.size(), id);
    return id;
  }

  void deliver(const std::string &message) {
    std::string scratch;
    std::string_view text;
    if (decode_message(options_.codec, message, &scratch, &text) != nullptr) return;
    Callback done;
    {
      const std::lock_guard lock(mutex_);
      done = take(id_of(text));
    }
    if (done) done(reply_of(text));
  }

  static Reply reply_of(std::string_view text) {
    const std::string_view error = json::member(text, "error");
    if (error.starts_with('"')) return {Reply::Kind::refused, json::unquote(error)};
    for (const char *name : {"result", "servers", "tools", "resources", "prompts", "ok"}) {
      const std::string_view value = json::member(text, name);
      if (!value.empty()) return {Reply::Kind::ok, std::string(value)};
    }
    return {Reply::Kind::garbled, "the aggregator's reply has an unknown format"};
  }

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  detail::Child child_;
  detail::Fd wake_;
  std::string out_;            // bytes for the process's input
  std::size_t written_ = 0;    // number of bytes of out_ that have been written
  std::uint64_t flushed_ = 0;  // number of bytes that were written and removed from out_
  FrameCutter cutter_{Codec::ndjson};
  std::map<std::uint64_t, Pending> pending_;
  std::set<std::pair<Clock::time_point, std::uint64_t>> deadlines_;
  std::uint64_t next_id_ = 1;
  Clock::time_point started_{}, end_by_{};
  bool started_once_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace bh::aggregator
