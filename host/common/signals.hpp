// Installs the program's signal handlers. The core library does not install any.
#pragma once

#include <string>

#include "bulkhead/cpp/callback.hpp"

namespace bulkhead {
class Host;
class Reactor;
}  // namespace bulkhead

namespace bulkhead::program {

// Installs the handlers:
// - SIGPIPE is ignored.
// - SIGINT and SIGTERM stop the current host. If a second one arrives, the process terminates
//   immediately with exit code 130.
// - SIGHUP requests a reload. If watch_reload_signal() was not called or the terminal was closed,
//   SIGHUP stops the host instead. If SIGHUP was ignored at startup (nohup), it remains ignored.
void install_signal_handlers();

// Registers a socket file that is removed if a signal terminates this process immediately. At most
// 64 files can be registered. remove_file_on_kill() and unregister_file() must be called on the
// same thread.
void remove_file_on_kill(const std::string &path) noexcept;
void unregister_file(const std::string &path) noexcept;

// Sets the function that the signal handlers call to stop the program. `stop` must be
// async-signal-safe. If `stop` is empty, the first signal terminates the process.
void set_signalled(bh::Callback stop) noexcept;
// Sets the host that a signal stops, or null if there is none.
void set_signalled_host(Host *host) noexcept;

// After each SIGHUP that requests a reload, `on_signal` is called from the loop. Several signals
// that arrive before the loop runs cause only one call. The calls stop when the reactor is
// destroyed or Reactor::forget() is called with on_signal.arg. Must be called only once per
// process.
void watch_reload_signal(Reactor &reactor, bh::Callback on_signal);

bool stop_requested() noexcept;

// Raises the soft limit on open files to the hard limit, but to no more than 65,536. The usual soft
// limit of 1024 is too low for 4096 sessions and 200 servers. Child processes inherit the limit.
void raise_file_limit() noexcept;

}  // namespace bulkhead::program
