// Serializes the profile that the supervisor sends to its compartments (see base/archive.hpp).
#pragma once

#include "base/archive.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

template <class Ar>
void archive(Ar &ar, Origin &v) {
  auto &[layer, file, line] = v;
  ar(layer, file, line);
}

template <class Ar>
void archive(Ar &ar, SandboxRules &v) {
  auto &[mode, read, write, network, memory_bytes, processes, cache_bytes, host_ipc] = v;
  ar(mode, read, write, network, memory_bytes, processes, cache_bytes, host_ipc);
}

template <class Ar>
void archive(Ar &ar, KeptList &v) {
  auto &[caps, text] = v;
  ar(caps, text);
}

template <class Ar>
void archive(Ar &ar, KeptLists &v) {
  auto &[definition, lists] = v;
  ar(definition, lists);
}

template <class Ar>
void archive(Ar &ar, ListNews &v) {
  auto &[server, definition, list] = v;
  ar(server, definition, list);
}

template <class Ar>
void archive(Ar &ar, ServerDef &v) {
  auto &[name, type, disabled, disabled_reason, unmet, command, args, env, cwd, sandbox, lazy,
         idle_stop_ms, pool_size, pool_safe_tools, url, headers, allow_tools, deny_tools,
         timeout_ms, tool_timeouts_ms, connect_timeout_ms, protocol, session, roots, root_folders,
         max_in_flight, compartment, origin, source, extra, kept, restarts] = v;
  ar(name, type, disabled, disabled_reason, unmet, command, args, env, cwd, sandbox, lazy,
     idle_stop_ms, pool_size, pool_safe_tools, url, headers, allow_tools, deny_tools, timeout_ms,
     tool_timeouts_ms, connect_timeout_ms, protocol, session, roots, root_folders, max_in_flight,
     compartment, origin, source, extra, kept, restarts);
}

template <class Ar>
void archive(Ar &ar, Isolation &v) {
  auto &[require] = v;
  ar(require);
}

template <class Ar>
void archive(Ar &ar, Approvers &v) {
  auto &[elicitation, api] = v;
  ar(elicitation, api);
}

template <class Ar>
void archive(Ar &ar, PinRules &v) {
  auto &[mode, accept_new] = v;
  ar(mode, accept_new);
}

template <class Ar>
void archive(Ar &ar, ToolPin &v) {
  auto &[server, tool, hash, shape, seen, seen_shape, renamed_from] = v;
  ar(server, tool, hash, shape, seen, seen_shape, renamed_from);
}

template <class Ar>
void archive(Ar &ar, PinNews &v) {
  auto &[pin, definition] = v;
  ar(pin, definition);
}

template <class Ar>
void archive(Ar &ar, Naming &v) {
  auto &[separator, prefix, scheme, shorten, max_length, strict_names, bad_names_error, aliases] =
      v;
  ar(separator, prefix, scheme, shorten, max_length, strict_names, bad_names_error, aliases);
}

template <class Ar>
void archive(Ar &ar, Expose &v) {
  auto &[tools, resources, prompts, logging, completions, list_changed, subscribe] = v;
  ar(tools, resources, prompts, logging, completions, list_changed, subscribe);
}

template <class Ar>
void archive(Ar &ar, Limits &v) {
  auto &[message_bytes, header_bytes, sessions, session_idle_ms, event_buffer_bytes,
         write_queue_bytes, write_stall_ms, request_read_ms, shutdown_grace_ms, connect_timeout_ms,
         call_timeout_ms, request_timeout_ms, timeout_ceiling_ms, ask_timeout_ms,
         first_list_wait_ms, grace_ms, drain_ms, retry_min_ms, retry_max_ms, in_flight_per_session,
         queued_per_server, asks_per_session, subscriptions_per_session, listens_per_client,
         task_lifetime_ms, items_per_server, list_bytes_per_server, page_items, idle_view_ms,
         policy_timeout_ms, policy_waiting_bytes, approval_timeout_ms, approvals_waiting,
         approvals_per_session, approvals_bytes, plugin_init_ms, stderr_bytes] = v;
  ar(message_bytes, header_bytes, sessions, session_idle_ms, event_buffer_bytes, write_queue_bytes,
     write_stall_ms, request_read_ms, shutdown_grace_ms, connect_timeout_ms, call_timeout_ms,
     request_timeout_ms, timeout_ceiling_ms, ask_timeout_ms, first_list_wait_ms, grace_ms, drain_ms,
     retry_min_ms, retry_max_ms, in_flight_per_session, queued_per_server, asks_per_session,
     subscriptions_per_session, listens_per_client, task_lifetime_ms, items_per_server,
     list_bytes_per_server, page_items, idle_view_ms, policy_timeout_ms, policy_waiting_bytes,
     approval_timeout_ms, approvals_waiting, approvals_per_session, approvals_bytes, plugin_init_ms,
     stderr_bytes);
}

template <class Ar>
void archive(Ar &ar, PluginFile &v) {
  auto &[mark, exclusive, path, sha256, change, is_program_copy] = v;
  ar(mark, exclusive, path, sha256, change, is_program_copy);
}

template <class Ar>
void archive(Ar &ar, PluginTrust &v) {
  auto &[trusted_keys, require_signatures, revoked_keys, revoked_digests, quarantined,
         program_dir] = v;
  ar(trusted_keys, require_signatures, revoked_keys, revoked_digests, quarantined, program_dir);
}

template <class Ar>
void archive(Ar &ar, PluginUse &v) {
  auto &[id, plugin, config_json, sha256, required, watch, compartment, grants, file, origin] = v;
  ar(id, plugin, config_json, sha256, required, watch, compartment, grants, file, origin);
}

template <class Ar>
void archive(Ar &ar, Profile::Shown &v) {
  auto &[path, value, origin] = v;
  ar(path, value, origin);
}

template <class Ar>
void archive(Ar &ar, Identity &v) {
  auto &[profile, user] = v;
  ar(profile, user);
}

template <class Ar>
void archive(Ar &ar, ProfileHold &v) {
  auto &[path, forbids, says] = v;
  ar(path, forbids, says);
}

template <class Ar>
void archive(Ar &ar, PolicyMark &v) {
  auto &[generation, digest, rules, changes] = v;
  ar(generation, digest, rules, changes);
}

template <class Ar>
void archive(Ar &ar, Profile &v) {
  auto &[servers, transports, tools, policies, telemetry, services, connectors, connector_files,
         plugin_dirs, plugin_trust, naming, expose, limits, isolation, approval, pins, identity,
         server_name, metrics_listen, unknown_params, state_dir, own_paths, programs,
         fixed_own_paths, fixed_programs, left_paths, protected_folders, notes, server_holds,
         pinned, policy_mark, shown] = v;
  ar(servers, transports, tools, policies, telemetry, services, connectors, connector_files,
     plugin_dirs, plugin_trust, naming, expose, limits, isolation, approval, pins, identity,
     server_name, metrics_listen, unknown_params, state_dir, own_paths, programs, fixed_own_paths,
     fixed_programs, left_paths, protected_folders, notes, server_holds, pinned, policy_mark,
     shown);
}

}  // namespace bulkhead
