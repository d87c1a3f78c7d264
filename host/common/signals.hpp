// The program's signal handlers. The core library does not install any.
#pragma once

#include <string>

#include "bulkhead/cpp/callback.hpp"

namespace bulkhead {
class Host;
class Reactor;
}  // namespace bulkhead

namespace bulkhead::program {

// Ignores SIGPIPE. SIGINT and SIGTERM stop the current host; the second of these signals ends the
// process immediately with exit code 130. SIGHUP requests a reload if a watcher is installed and
// the terminal still exists; otherwise it stops the host. If SIGHUP was ignored at start (nohup),
// it remains ignored.
void install_signal_handlers();

// Registers a socket file, which is removed if a signal ends this process immediately. At most 64
// files per process. unregister_file() unregisters it. Used on one thread.
void remove_file_on_kill(const std::string &path) noexcept;
void unregister_file(const std::string &path) noexcept;

// Sets the function that signal handlers call; it must be async-signal-safe. If `stop` is {}, a
// signal ends the process.
void set_signalled(bh::Callback stop) noexcept;
// Sets the host that signals stop, or null.
void set_signalled_host(Host *host) noexcept;

// For each SIGHUP that does not report a closed terminal, calls on_signal from the loop until
// Reactor::forget() is called for its object or the reactor is destroyed. Pending signals are
// merged. Call this function once per process.
void watch_reload_signal(Reactor &reactor, bh::Callback on_signal);

// Returns true if a signal has requested a stop.
bool stop_requested() noexcept;

// Raises the soft limit of open files to the hard limit, at most 65,536, because 4096 sessions and
// 200 servers need more than the usual 1024. Children inherit the limit.
void raise_file_limit() noexcept;

}  // namespace bulkhead::program
