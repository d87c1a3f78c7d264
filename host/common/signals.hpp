// Signals of the program. The library installs none; this is the only place that does.
#pragma once

#include <string>

namespace bulkhead {
class Host;
class Reactor;
}  // namespace bulkhead

namespace bulkhead::program {

// SIGPIPE is ignored. SIGINT and SIGTERM ask the current host to stop; the second one ends the
// process at once with 130. SIGHUP is a wish to reload where somebody watches for it and the
// terminal is still there, else it stops as well. A SIGHUP that was ignored before (nohup) stays
// so.
void install_signal_handlers();

// A socket's file that is to go when this process is ended at once; at most 64 of them, of one
// process. was_removed(): it is gone. One thread.
void remove_when_killed(const std::string &path) noexcept;
void was_removed(const std::string &path) noexcept;

// What signals call, async-signal-safe; null: nothing, and a signal ends the process.
void set_signalled(void (*stop)(void *), void *arg) noexcept;
// The host that signals stop, or null.
void set_signalled_host(Host *host) noexcept;

// Calls fn(arg) from the loop for each SIGHUP (several at once are one) that does not mean that the
// terminal has gone, until the reactor forgets `arg` or goes. Once a process.
void watch_reload_signal(Reactor &reactor, void *arg, void (*fn)(void *arg));

// Has a signal asked to stop?
bool stop_was_asked() noexcept;

// Raises the soft limit of open files to the hard one: 4096 sessions and 200 servers need more than
// the usual 1024. Children get the raised limit too.
void raise_file_limit() noexcept;

}  // namespace bulkhead::program
