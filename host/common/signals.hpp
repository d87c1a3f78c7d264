// Installs the signal handlers of the program. The core library installs none.
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
// - SIGINT and SIGTERM stop the current host. The second of these signals terminates the process
//   immediately with exit code 130.
// - SIGHUP requests a reload. If watch_reload_signal() was not called or the terminal was closed,
// it
//   stops the host instead. If SIGHUP was ignored at startup (nohup), it remains ignored.
void install_signal_handlers();

// Registers a socket file that is removed if a signal terminates this process immediately. A
// process can register at most 64 files. Both functions must be called on the same thread.
void remove_file_on_kill(const std::string &path) noexcept;
void unregister_file(const std::string &path) noexcept;

// Sets the function that the signal handlers call to stop the program. It must be
// async-signal-safe. If `stop` is {}, the first signal terminates the process.
void set_signalled(bh::Callback stop) noexcept;
// Sets the host that a signal stops. Null for none.
void set_signalled_host(Host *host) noexcept;

// Calls `on_signal` from the loop after each SIGHUP that requests a reload. Signals that arrive
// before the loop runs are merged. The calls stop when the reactor is destroyed or
// Reactor::forget() is called with on_signal.arg. Call this function once per process.
void watch_reload_signal(Reactor &reactor, bh::Callback on_signal);

bool stop_requested() noexcept;

// Raises the soft limit of open files to the hard limit, but to at most 65,536. The usual soft
// limit of 1024 is too low for 4096 sessions and 200 servers. Child processes inherit the limit.
void raise_file_limit() noexcept;

}  // namespace bulkhead::program
