/* Checks the sizes and offsets of ABI types on 64-bit targets. abi/check_slots.sh checks names and
 * prototypes. */
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/control.h"
#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/abi/ext/draft/explain.h"
#include "bulkhead/abi/ext/draft/flow.h"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/ext/draft/listen.h"
#include "bulkhead/abi/ext/draft/mask.h"
#include "bulkhead/abi/ext/draft/resume.h"
#include "bulkhead/abi/ext/draft/spawn.h"
#include "bulkhead/abi/ext/draft/state.h"
#include "bulkhead/abi/ext/draft/wire.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/abi/plugin.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
#define AT(type, member, bytes) \
  _Static_assert(offsetof(type, member) == (bytes), #type "." #member " has moved")

_Static_assert(sizeof(void *) == 8, "the ABI is for 64-bit targets");
_Static_assert(sizeof(double) == 8, "double is IEEE 754 binary64");

SIZE(bh_str, 16);
AT(bh_str, n, 8);
SIZE(bh_buf, 32);
AT(bh_buf, owner, 16);
AT(bh_buf, release, 24);
SIZE(bh_header, 32);
AT(bh_header, value, 16);
SIZE(bh_error, 496);
AT(bh_error, code, 4);
AT(bh_error, text, 16);

SIZE(bh_host, 72);
AT(bh_host, ctx, 8);
AT(bh_host, name, 16);
AT(bh_host, get_ext, 48);
AT(bh_host, log_enabled, 64);
SIZE(bh_host_executor, 56);
AT(bh_host_executor, now_ns, 8);
AT(bh_host_executor, run_blocking, 48);
SIZE(bh_host_fd, 32);
SIZE(bh_host_secrets, 24);
SIZE(bh_host_metrics, 24);
SIZE(bh_host_store, 16);
SIZE(bh_limits, 96);
AT(bh_limits, message_bytes, 8);
AT(bh_limits, shutdown_grace_ms, 80);

SIZE(bh_plugin, 72);
AT(bh_plugin, self, 8);
AT(bh_plugin, configure, 16);
AT(bh_plugin, get_ext, 64);
SIZE(bh_descriptor, 88);
AT(bh_descriptor, id, 8);
AT(bh_descriptor, config_schema, 72);
SIZE(bh_entry, 56);
AT(bh_entry, abi_major, 4);
AT(bh_entry, abi_minor_needed, 12);
AT(bh_entry, init, 16);
AT(bh_entry, count, 32);
AT(bh_entry, abi_rc, 36);
AT(bh_entry, create, 48);

SIZE(bh_list_info, 32);
AT(bh_list_info, session, 8);
AT(bh_list_info, principal, 16);
SIZE(bh_call_info, 136);
AT(bh_call_info, arguments, 40);
AT(bh_call_info, session, 64);
AT(bh_call_info, principal, 72);
AT(bh_call_info, request_state, 120);
SIZE(bh_cancel, 24);
AT(bh_cancel, text, 8);
SIZE(bh_progress, 40);
AT(bh_progress, total, 16);
AT(bh_progress, message, 24);
SIZE(bh_result, 40);
SIZE(bh_tools, 40);
AT(bh_tools, features, 32);
SIZE(bh_host_tools, 40);
AT(bh_host_tools, resource_updated, 32);

SIZE(bh_policy_request, 288);
AT(bh_policy_request, exchange, 8);
AT(bh_policy_request, definition_hash, 168);
AT(bh_policy_request, definition, 184);
AT(bh_policy_request, pin, 216);
AT(bh_policy_request, event, 220);
AT(bh_policy_request, argument, 224);
AT(bh_policy_request, extra, 256);
AT(bh_policy_request, claimed_name, 272);
SIZE(bh_verdict, 64);
AT(bh_verdict, flags, 56);
SIZE(bh_policy, 48);
SIZE(bh_host_policy, 32);

SIZE(bh_peer, 88);
AT(bh_peer, claims, 80);
SIZE(bh_delivery, 16);
SIZE(bh_outgoing, 40);
AT(bh_outgoing, stream, 16);
AT(bh_outgoing, parts, 32);
SIZE(bh_transport, 48);
SIZE(bh_incoming, 64);
AT(bh_incoming, session, 8);
AT(bh_incoming, message, 24);
AT(bh_incoming, headers, 40);
AT(bh_incoming, header_count, 48);
AT(bh_incoming, peer, 56);
SIZE(bh_host_transport, 72);
AT(bh_host_transport, deliver, 24);
AT(bh_host_transport, session_open, 16);

SIZE(bh_lane_info, 48);
SIZE(bh_lane_message, 56);
AT(bh_lane_message, headers, 40);
AT(bh_lane_message, header_count, 48);
AT(bh_lane_message, exchange, 8);
AT(bh_lane_message, parts, 32);
SIZE(bh_lane_failure, 48);
AT(bh_lane_failure, error, 8);
AT(bh_lane_failure, challenges, 16);
AT(bh_lane_failure, scope, 32);
SIZE(bh_connector, 48);
SIZE(bh_host_connector, 48);

SIZE(bh_record, 368);
AT(bh_record, duration_ns, 32);
AT(bh_record, error, 184);
AT(bh_record, number, 200);
AT(bh_record, params_bytes, 256);
AT(bh_record, trace_id, 296);
AT(bh_record, kind, 312);
AT(bh_record, detail, 328);
AT(bh_record, claimed_name, 344);
AT(bh_record, client_revision, 360);
AT(bh_record, server_revision, 364);
SIZE(bh_telemetry, 24);
SIZE(bh_host_telemetry, 16);
SIZE(bh_host_event, 16);
SIZE(bh_host_mask, 16);

SIZE(bh_http_header, 32);
SIZE(bh_http_handler, 40);
SIZE(bh_http_request, 96);
AT(bh_http_request, body, 56);
SIZE(bh_host_http, 24);

SIZE(bh_spawn, 96);
AT(bh_spawn, argv, 56);
AT(bh_spawn, cwd, 80);
SIZE(bh_child, 32);
AT(bh_child, pidfd, 16);
SIZE(bh_child_end, 24);
SIZE(bh_host_spawn, 32);
SIZE(bh_wire, 24);
AT(bh_wire, lane_hold, 16);
SIZE(bh_host_wire, 24);
AT(bh_host_wire, lane_full, 16);
SIZE(bh_flow, 16);
SIZE(bh_host_flow, 16);

SIZE(bh_host_control, 32);

SIZE(bh_host_listen, 40);

SIZE(bh_carried, 40);
AT(bh_carried, last_stream, 8);
SIZE(bh_host_resume, 64);

SIZE(bh_explain, 16);

SIZE(bh_state_blob, 56);
AT(bh_state_blob, schema, 8);
AT(bh_state_blob, bytes, 24);
AT(bh_state_blob, fds, 40);
AT(bh_state_blob, fd_count, 48);
SIZE(bh_state, 24);

int abi_layout_is_checked;
