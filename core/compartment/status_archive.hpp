// Serializes the endpoint's status, which it sends to the supervisor.
#pragma once

#include "base/archive.hpp"
#include "host.hpp"
#include "profile/archive.hpp"

namespace bulkhead {

template <class Ar>
void archive(Ar &ar, ServerStatus &v) {
  auto &[name, type, protocol, state, reason, tools, resources, prompts, restarts, in_flight,
         connections, requested_roots, unapproved_tools, unapproved_hidden] = v;
  ar(name, type, protocol, state, reason, tools, resources, prompts, restarts, in_flight,
     connections, requested_roots, unapproved_tools, unapproved_hidden);
}

template <class Ar>
void archive(Ar &ar, PluginStatus &v) {
  auto &[id, plugin, path, version, state, provides, generation, swapped, watched] = v;
  ar(id, plugin, path, version, state, provides, generation, swapped, watched);
}

template <class Ar>
void archive(Ar &ar, ClientStatus &v) {
  auto &[claimed_name, process_name, transport, protocol, sessions, calls] = v;
  ar(claimed_name, process_name, transport, protocol, sessions, calls);
}

template <class Ar>
void archive(Ar &ar, HostStatus &v) {
  auto &[servers, plugins, endpoints, collisions, servers_missing, counters, clients, sessions,
         in_flight, calls, settled, drained, policy_mark] = v;
  ar(servers, plugins, endpoints, collisions, servers_missing, counters, clients, sessions,
     in_flight, calls, settled, drained, policy_mark);
}

template <class Ar>
void archive(Ar &ar, ApplyReport &v) {
  auto &[added, changed, removed, adjusted, unchanged, policy, settings, files, needs_restart,
         policy_mark] = v;
  ar(added, changed, removed, adjusted, unchanged, policy, settings, files, needs_restart,
     policy_mark);
}

}  // namespace bulkhead
