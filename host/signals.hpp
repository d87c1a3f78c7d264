// Signals of the program. The library installs none; this is the only place that does.
#pragma once

namespace bulkhead {
class Host;
}

namespace bulkhead::program {

// SIGPIPE is ignored. SIGINT, SIGTERM and SIGHUP ask the current host to stop; the second SIGINT or
// SIGTERM ends the process at once with 130. A SIGHUP that was ignored before (nohup) stays so.
void install_signal_handlers();

// What signals call, async-signal-safe; null: nothing, and a signal ends the process.
void set_signalled(void (*stop)(void *), void *arg) noexcept;
// The host that signals stop, or null.
void set_signalled_host(Host *host) noexcept;

// Has a signal asked to stop?
bool stop_was_asked() noexcept;

// Raises the soft limit of open files to the hard one: 4096 sessions and 200 servers need more than
// the usual 1024. Children get the raised limit too.
void raise_file_limit() noexcept;

}  // namespace bulkhead::program
