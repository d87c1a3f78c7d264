// One function per command; each returns the process's exit code.
#pragma once

#include "command_line/arguments.hpp"

namespace bulkhead::program {

int run_gateway(const Arguments &arguments);  // serve, stdio
int run_list(const Arguments &arguments);     // tools, resources, prompts
int run_call(const Arguments &arguments);
int run_warm(const Arguments &arguments);
int run_aggregator(const Arguments &arguments);
int run_status(const Arguments &arguments);
int run_doctor(const Arguments &arguments);
int run_approve(const Arguments &arguments);
int run_revoke(const Arguments &arguments);
int run_approvals(const Arguments &arguments);
int run_pins(const Arguments &arguments);
int run_reload(const Arguments &arguments);
int run_import(const Arguments &arguments);
int run_mcp(const Arguments &arguments);  // mcp list, add, remove
int run_profile_show(const Arguments &arguments);
int run_plugin_list(const Arguments &arguments);
int run_policy(const Arguments &arguments);  // policy check, explain, test
int run_policy_replay(const Arguments &arguments);
int run_inspect(const Arguments &arguments);
int run_timeline(const Arguments &arguments);
int run_calls(const Arguments &arguments);
int run_audit_verify(const Arguments &arguments);

}  // namespace bulkhead::program
