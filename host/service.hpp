// What can be asked of a running gateway through its service socket, and by SIGHUP:
//
//   GET    /status               the snapshot that `bulkhead status` shows
//   POST   /reload-config        reads the profile again and makes it the one that runs
//   GET    /mcp/connectors       the servers of the profile, with where they come from
//   POST   /mcp/connectors       adds one to the user layer, and reloads
//   DELETE /mcp/connectors/ID    takes one of the user layer away, and reloads
//
// Errors are {"error":"..."}. Changes are made one after the other; beyond max_waiting, 503. Files
// are read and written on a thread of the reactor's pool.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "control_server.hpp"
#include "host.hpp"
#include "profile_source.hpp"

namespace bulkhead::program {

// The gateway behind the service. All are called on the loop's thread.
struct ServiceBackend {
  // JSON of GET /status; `done` once, now or later.
  std::function<void(std::function<void(std::string)> done)> snapshot;
  // Makes it the running profile; `done` once, from the loop, now or later.
  std::function<void(LoadedProfile next, std::function<void(Result<ApplyReport>)> done)> apply;
  // How the gateway is now; `done` once, now or later.
  std::function<void(std::function<void(const HostStatus &)> done)> look;
  std::function<void(LogLevel level, std::string_view text)> log;
};

class Service {
 public:
  static constexpr std::size_t max_waiting = 8;
  // A reload is answered when it is over, or after this.
  static constexpr std::uint64_t settle_ms = 10'000;

  // Opens the socket in the first folder of control_dirs() that can be used; none: the reason is
  // logged, and everything but the socket works. `arguments` are those that the profile was loaded
  // with.
  Service(Reactor &reactor, Arguments arguments, Transports transports, ServiceBackend backend);
  ~Service();  // waits for a file that is being written
  Service(const Service &) = delete;
  Service &operator=(const Service &) = delete;

  // Empty: there is none.
  std::string socket_path() const { return server_ != nullptr ? server_->path() : ""; }
  // As POST /reload-config; the result is logged.
  void reload();

 private:
  struct Job;
  using Reply = ControlServer::Reply;
  enum class What : std::uint8_t { reload, add, remove };

  void open();
  void handle(const ControlRequest &request, Reply reply);
  void handle_connectors(const ControlRequest &request, Reply reply);
  void list_connectors(Reply reply);
  void enqueue(What what, std::string text, Reply reply);
  void start_next();
  void prepared(Job &job);
  void applied(Job &job, Result<ApplyReport> report);
  void wait_quiet();
  void looked(const HostStatus &status);
  void finish(ControlAnswer answer);

  Reactor &reactor_;
  const Arguments arguments_;
  const Transports transports_;
  const ServiceBackend backend_;
  std::unique_ptr<ControlServer> server_;
  std::deque<std::unique_ptr<Job>> jobs_;  // the first is under way
  bool running_ = false;                   // it is on a thread of the pool
  bool stopping_ = false;
  std::uint64_t timer_ = 0;
  // An apply that ends when the service has gone finds this expired.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bulkhead::program
