#include "check/rules.hpp"

#include <algorithm>
#include <array>

namespace bulkhead::check {
namespace {

constexpr std::array rules{
    RuleText{Rule::trusted_files, "only root and the current user can change the plugin's files",
             "chmod go-w on the library, its manifest and their folder; use no symbolic links"},
    RuleText{Rule::complete_library, "the file is a complete shared library for this machine",
             "build the library for this machine, and copy it again if it is truncated"},
    RuleText{Rule::manifest, "the manifest is valid and has the id of the file",
             "build the plugin with bh_add_plugin(), which writes the manifest"},
    RuleText{Rule::only_entry_exported, "bh_plugin_entry_v1 is the only exported symbol",
             "build the plugin with bh_add_plugin(), or use its version script"},
    RuleText{
        Rule::no_unique_symbols, "no symbol is STB_GNU_UNIQUE",
        "compile with -fno-gnu-unique: a unique symbol is shared by all versions of the plugin"},
    RuleText{Rule::no_static_tls, "thread-local variables do not use the initial-exec model",
             "do not compile with -ftls-model=initial-exec: the space for it is limited, so the "
             "library may fail to load"},
    RuleText{Rule::safe_segments,
             "no segment is writable and executable, and the code needs no relocation",
             "compile with -fPIC, and link with -z noexecstack"},
    RuleText{
        Rule::no_origin_path, "no library is searched relative to the plugin",
        "link statically, or use system libraries: plugins are mapped through a descriptor, so "
        "$ORIGIN and relative paths find nothing"},
    RuleText{Rule::no_process_functions,
             "the code does not call functions that change the whole process",
             "remove the call: signal handlers, environment, working folder and user belong to the "
             "host"},

    RuleText{Rule::loads, "the library can be mapped",
             "link all libraries that the plugin needs (-z defs reports what is missing)"},
    RuleText{
        Rule::silent_constructors,
        "mapping the library starts no thread, opens no file and changes nothing in the process",
        "move the work from static constructors to start"},
    RuleText{Rule::entry, "bh_plugin_entry_v1 returns one valid entry",
             "return a pointer to a static bh_entry with all functions and its size"},
    RuleText{Rule::descriptor,
             "the descriptors are valid and match the manifest and the schema section",
             "make PROVIDES in CMake equal to the descriptor's, and use BH_SCHEMA_SECTION for the "
             "schema"},
    RuleText{Rule::init, "init and deinit return, and can be called more than once",
             "count the calls if the library has global state"},
    RuleText{Rule::unknown_id, "create returns BH_E_NOT_FOUND for an unknown id",
             "compare the whole id with those of the descriptors"},

    RuleText{Rule::instance_table, "create returns an instance with all functions",
             "set size, self and all functions of bh_plugin"},
    RuleText{Rule::extensions,
             "get_ext returns complete tables for the provided extensions, and NULL for other ids",
             "compare the whole id, and return the same table each time"},
    RuleText{Rule::configure, "configure and start succeed, or return an error with a text",
             "return a negative status, and set the error's code and text"},
    RuleText{Rule::bad_configuration, "a wrong configuration is rejected without a crash",
             "check the types of all values: the schema may be missing from an old host"},
    RuleText{Rule::fewer_extensions, "a host without extensions causes an error, not a crash",
             "check what get_ext returns before using it"},
    RuleText{Rule::error_buffers, "error buffers are written only within their size",
             "accept error == NULL, and check BH_HAS(bh_error, error, text) before writing"},
    RuleText{Rule::releases_everything,
             "after stop, no timer, watch, function, pool job or thread remains, and after destroy "
             "no descriptor",
             "release in stop what start and calls have acquired; close descriptors at the latest "
             "in destroy"},
    RuleText{Rule::host_rules, "the host's functions are called only where they are allowed",
             "in init, create and destroy, use only log, log_enabled and get_ext; call [io] "
             "functions on the reactor thread only"},
    RuleText{Rule::two_instances, "two instances can exist at the same time",
             "keep state in the instance instead of global variables"},
    RuleText{Rule::no_growth,
             "loading and retiring 50 times leaves no memory, descriptor or thread",
             "free in destroy what create and configure have allocated"},
    RuleText{Rule::newer_host, "a host with larger structs and unknown members is accepted",
             "compare sizes with BH_HAS instead of ==, and accept a newer abi_minor"},
    RuleText{Rule::process_unchanged,
             "signal handlers, environment, working folder, umask and locale are unchanged",
             "do not change state of the whole process; other plugins share it"},
    RuleText{Rule::clean_exit, "the process can exit after the plugin was retired",
             "do not access destroyed state in exit handlers and static destructors"},
    RuleText{Rule::instances_on_threads,
             "instances on several threads can start and stop at the same time",
             "protect data that instances share with a mutex, or keep it in the instance"},

    RuleText{Rule::lists, "list returns valid items, or BH_E_UNSUPPORTED",
             "return a JSON array whose items have unique names, and tools an inputSchema of type "
             "object"},
    RuleText{Rule::completes_once, "each call is completed exactly once with a valid result",
             "call complete() inside call_begin and return BH_OK, or return BH_PENDING and call it "
             "later, or return an error and never call it"},
    RuleText{Rule::unknown_tool, "a call with an unknown name returns an error",
             "compare the whole name, and return BH_E_NOT_FOUND"},
    RuleText{Rule::hostile_arguments, "unexpected arguments cause an error, not a crash",
             "check the type of each argument: the host does not validate the inputSchema"},
    RuleText{Rule::cancel, "a cancelled call is still completed, and unknown calls are ignored",
             "call complete() for a cancelled call, at the latest when its work has ended"},
    RuleText{Rule::stop_during_calls, "stop with calls in flight releases everything",
             "cancel the calls' timers, watches and jobs in stop; complete() is not needed"},
    RuleText{Rule::rejected_completion,
             "a rejected completion (BH_STALE, BH_E_LIMIT) is not repeated endlessly",
             "treat BH_STALE as done; the host frees the result in any case"},
    RuleText{Rule::does_not_block, "no function blocks the reactor thread",
             "use run_blocking() for work that takes longer than a few milliseconds"},
    RuleText{Rule::drain_calls, "calls in flight are still completed after drain",
             "complete the calls in flight after drain, or complete them with an error in drain"},
    RuleText{
        Rule::stop_at_once, "stop does not wait for the reactor, and pool jobs survive it",
        "let pool jobs use only data that exists until they end, and set a flag that ends them"},
    RuleText{Rule::contents, "listed resources and prompts are returned, or an error",
             "complete resources/read with contents, and prompts/get with messages"},
    RuleText{Rule::unknown_content, "an unknown resource or prompt returns an error",
             "compare the method and the whole name, and return BH_E_NOT_FOUND"},
    RuleText{Rule::subscriptions,
             "features returns the same known bits, and subscribing can be repeated",
             "return only BH_TOOLS_... bits, and complete repeated requests with {}"},

    RuleText{Rule::policy_needs, "needs returns the same known bits each time",
             "return only BH_POLICY_... bits, and do not change them until configure"},
    RuleText{Rule::verdicts, "decide returns a known verdict with valid strings",
             "set size, verdict and, for REWRITE, arguments with valid JSON"},
    RuleText{Rule::hostile_requests, "unexpected requests cause a verdict or an error, not a crash",
             "check for empty and large values"},
    RuleText{Rule::result_verdicts, "observe returns ALLOW, BLOCK or REWRITE",
             "a result cannot be asked about; set valid JSON for REWRITE"},
    RuleText{Rule::pending_decisions, "each pending decision is completed exactly once",
             "call decided() or filtered() once for each BH_PENDING, and never otherwise"},
    RuleText{Rule::reconfigure, "reconfigure accepts the configuration in use and rejects others",
             "parse the new configuration completely before replacing the old one"},
    RuleText{Rule::unknown_event, "a message of an unknown kind is not allowed",
             "reject events that are not listed in policy.h"},
    RuleText{Rule::stop_during_decisions,
             "pending decisions are reported after drain, and stop releases them",
             "report pending decisions after drain, and cancel their timers and jobs in stop"},
    RuleText{Rule::moved_state, "another instance accepts the exported state, but no other state",
             "import what export_state returns, and compare the schema and the version"},

    RuleText{Rule::telemetry_needs, "needs returns the same known bits each time",
             "return only BH_TELEMETRY_... bits, and do not change them until configure"},
    RuleText{Rule::batches, "batch accepts at most the records that it was given, without blocking",
             "return the number of accepted records, and queue instead of waiting"},
    RuleText{Rule::hostile_records, "unknown kinds and large or empty texts cause no crash",
             "ignore unknown kinds, and limit what is stored"},
    RuleText{Rule::commits, "committed reports increasing numbers of records that were accepted",
             "call it only with BH_TELEMETRY_COMMITS, with the last stored number + 1"},
    RuleText{Rule::drain_records, "records that were accepted are committed after drain",
             "store the accepted records after drain, at the latest in stop"},

    RuleText{Rule::lanes_close, "each opened lane is reported as closed exactly once",
             "call lane_closed() once after lane_close, and lane_down() only before it"},
    RuleText{Rule::lane_messages, "messages and unknown exchanges cause no crash and do not block",
             "queue what cannot be sent, and ignore exchanges that are not in flight"},
    RuleText{Rule::hostile_definitions, "an unexpected definition is rejected with a text",
             "check the type of each member of the definition"},
    RuleText{Rule::stop_with_lanes, "open lanes work after drain, and stop releases them",
             "keep the lanes in the instance, and release all of them in stop"},

    RuleText{Rule::listening, "listen and stop_accepting work or return an error with a text",
             "return a negative status with a text if the address cannot be used"},
    RuleText{Rule::unknown_handles, "messages for unknown sessions and streams are rejected",
             "return BH_STALE for a session or stream that is closed"},
};

}  // namespace

std::span<const RuleText> all_rules() noexcept {
  return rules;
}

const RuleText &text_of(Rule rule) noexcept {
  return *std::find_if(rules.begin(), rules.end(),
                       [&](const RuleText &text) { return text.rule == rule; });
}

std::string id_of(Rule rule) {
  return "BH" + std::to_string(static_cast<unsigned>(rule));
}

std::optional<Rule> rule_of(std::uint32_t number) noexcept {
  for (const RuleText &text : rules) {
    if (static_cast<std::uint32_t>(text.rule) == number) return text.rule;
  }
  return std::nullopt;
}

}  // namespace bulkhead::check
