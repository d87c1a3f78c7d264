// Declares one function per command. Each function returns the process's exit code.
#pragma once

#include "command_line/arguments.hpp"

namespace bulkhead::program {

int run_serve(const Arguments &arguments);
int run_stdio(const Arguments &arguments);
int run_tools(const Arguments &arguments);
int run_resources(const Arguments &arguments);
int run_prompts(const Arguments &arguments);
int run_call(const Arguments &arguments);
int run_warm(const Arguments &arguments);
int run_aggregator(const Arguments &arguments);
int run_status(const Arguments &arguments);
int run_doctor(const Arguments &arguments);
int run_approve(const Arguments &arguments);
int run_revoke(const Arguments &arguments);
int run_approvals(const Arguments &arguments);
int run_approvals_watch(const Arguments &arguments);
int run_approvals_allow(const Arguments &arguments);
int run_approvals_deny(const Arguments &arguments);
int run_approvals_revoke(const Arguments &arguments);
int run_pins(const Arguments &arguments);
int run_pins_show(const Arguments &arguments);
int run_pins_approve(const Arguments &arguments);
int run_pins_forget(const Arguments &arguments);
int run_reload(const Arguments &arguments);
int run_import(const Arguments &arguments);
int run_mcp_list(const Arguments &arguments);
int run_mcp_add(const Arguments &arguments);
int run_mcp_remove(const Arguments &arguments);
int run_mcp_enable(const Arguments &arguments);
int run_mcp_disable(const Arguments &arguments);
int run_mcp_restart(const Arguments &arguments);
int run_logs(const Arguments &arguments);
int run_profile_show(const Arguments &arguments);
int run_plugin_new(const Arguments &arguments);
int run_plugin_check(const Arguments &arguments);
int run_plugin_list(const Arguments &arguments);
int run_plugin_add(const Arguments &arguments);
int run_plugin_remove(const Arguments &arguments);
int run_plugin_verify(const Arguments &arguments);
int run_plugin_log(const Arguments &arguments);
int run_plugin_swap(const Arguments &arguments);
int run_plugin_rollback(const Arguments &arguments);
int run_policy_check(const Arguments &arguments);
int run_policy_explain(const Arguments &arguments);
int run_policy_test(const Arguments &arguments);
int run_policy_replay(const Arguments &arguments);
int run_inspect(const Arguments &arguments);
int run_timeline(const Arguments &arguments);
int run_calls(const Arguments &arguments);
int run_audit_verify(const Arguments &arguments);

}  // namespace bulkhead::program
