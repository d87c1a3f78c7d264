#include "command_line/arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <sstream>

#include "command_line/add_command.hpp"
#include "command_line/commands.hpp"
#include "command_line/common_options.hpp"
#include "command_line/completion.hpp"
#include "command_line/help_formatter.hpp"
#include "command_line/plugin_arguments.hpp"
#include "command_line/usage_errors.hpp"
#include "common/console.hpp"
#include "common/listen_address.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "relay/options.hpp"
#include "route/approval.hpp"

#ifndef BULKHEAD_VERSION
#error "BULKHEAD_VERSION comes from the build"
#endif

namespace bulkhead::program {
namespace {

constexpr const char *folder_type = "DIR";
constexpr const char *uses_running =
    "\n\nUses the servers of a running gateway with the same configuration. If none is running,\n"
    "starts the configured servers and stops them afterwards.";
// Ends the help of the three commands that approve something.
constexpr const char *approval_commands =
    "\n\n`bulkhead approve` approves the servers of a project file, `bulkhead approvals allow` a\n"
    "waiting call, and `bulkhead pins approve` tool definitions that have changed.";
constexpr const char *codec_type = "auto|ndjson|msgpack";
constexpr const char *level_type = "debug|info|warn|error";

std::string approval_help(const char *text) {
  return std::string(text) + approval_commands;
}

int print_completion(const Arguments &) {
  return write_stdout(bash_completion(command_tree())) ? exit_ok : exit_failed;
}

void add_plugin_dir(CLI::App &app, Arguments &to) {
  app.add_option("--plugin-dir", to.plugin_dirs, "Plugin folder (repeatable)")
      ->type_name(folder_type)
      ->allow_extra_args(false);
}

}  // namespace

void add_profile_options(CLI::App &app, Arguments &to) {
  app.add_option("-c,--config", to.config,
                 "Profile, TOML or JSON (default: ~/.config/bulkhead/profile.toml if it exists)")
      ->type_name(file_type);
  app.add_option("--project", to.project,
                 "Project file; its servers require `bulkhead approve` (default: .bulkhead.toml or "
                 ".mcp.json in the working directory)")
      ->type_name(file_type);
  app.add_flag("--no-project", to.no_project, "Ignore project files");
  add_plugin_dir(app, to);
  app.add_option("--log-level", to.log_level, "Log level of the log file (default: info)")
      ->type_name(level_type)
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}).description(""));
  app.add_flag("-v,--verbose", to.verbose, "Also print log lines to standard error");
}

void add_json(CLI::App &app, Arguments &to) {
  app.add_flag("--json", to.json, "Print JSON");
}

namespace {

void add_own(CLI::App &app, Arguments &to) {
  app.add_flag("--own", to.own, "Start the servers even if a running gateway can be used");
}

// Rejects an invalid address before anything is started. An empty address is rejected by
// empty_option().
std::string check_listen(const std::string &text) {
  if (text.empty() || is_listen_address(text)) return {};
  return "\"" + printable(text) +
         "\" is not a valid address: use 127.0.0.1:8808, [::1]:8808, 0.0.0.0:8808 or "
         "unix:/path/to/socket";
}

void add_gateways(CLI::App &app, Arguments &to) {
  auto *serve = add_command(app, to, "serve", "Serve MCP over HTTP, at /mcp", run_serve);
  add_profile_options(*serve, to);
  serve
      ->add_option("-l,--listen", to.listen,
                   "Listen address (default: 127.0.0.1:8808); port 0 selects a free port")
      ->type_name("HOST:PORT")
      ->check(CLI::Validator(check_listen, "", "address"));
  serve
      ->add_flag("--no-listen", to.no_listen,
                 "Do not listen on any address; serve only `bulkhead stdio`, `tools`, `resources`, "
                 "`prompts` and `call`")
      ->excludes("--listen");
  serve
      ->add_option("--parent-pid", to.parent_pid,
                   "Exit when the parent process with this PID exits (default: none)")
      ->type_name("PID")
      ->check(CLI::PositiveNumber.description(""));
  serve->add_flag("--single-process", to.single_process,
                  "Run in one process, without compartments");
  serve->footer(
      "Example:\n  bulkhead serve --config ~/.cursor/mcp.json --listen 127.0.0.1:9000\n\n"
      "Prints the address, the servers and client configurations to standard error.\n"
      "Ctrl-C or SIGTERM stops the gateway and its servers.");
  auto *stdio = add_command(app, to, "stdio", "Serve MCP on standard input and output", run_stdio);
  add_profile_options(*stdio, to);
  add_own(*stdio, to);
  stdio->add_flag("--single-process", to.single_process,
                  "Run in one process, without compartments; implies --own");
  stdio->footer(
      "Example, in a client's configuration:\n"
      "  { \"mcpServers\": { \"bulkhead\": { \"command\": \"bulkhead\", \"args\": [\"stdio\"] } } "
      "}\n\n"
      "If a gateway with the same configuration is running (bulkhead serve), its servers are used\n"
      "and none are started. If the configurations differ, standard error lists the differences.");
}

void add_lists(CLI::App &app, Arguments &to) {
  const auto add = [&](const char *name, const char *what, const char *example, RunCommand run) {
    auto *command = add_command(app, to, name, what, run);
    add_profile_options(*command, to);
    command->add_option("-s,--server", to.server, "Start and list only this server")
        ->type_name("NAME");
    add_own(*command, to);
    add_json(*command, to);
    command->footer(std::string("Example:\n  ") + example + uses_running +
                    " With --server, only that server\nis started.");
  };
  add("tools", "List the tools that the servers offer", "bulkhead tools --server github --json",
      run_tools);
  add("resources", "List resources and resource templates", "bulkhead resources --config mcp.json",
      run_resources);
  add("prompts", "List prompts", "bulkhead prompts", run_prompts);
  auto *call = add_command(app, to, "call", "Call one tool and print its result", run_call);
  add_profile_options(*call, to);
  call->add_option("name", to.name, "Tool name as listed by `bulkhead tools`")
      ->required()
      ->type_name("NAME");
  call->add_option("arguments", to.call_arguments,
                   "Arguments as a JSON object; - reads standard input (default: {})")
      ->type_name("JSON");
  add_own(*call, to);
  add_json(*call, to);
  call->footer(
      std::string("Example:\n  bulkhead call files__file_read '{\"path\":\"README.md\"}'") +
      uses_running +
      "\nA tool cannot ask for input: the command supports neither elicitation nor sampling."
      "\nExit code 1 if the tool returns an error.");
}

void add_warm(CLI::App &app, Arguments &to) {
  auto *warm = add_command(app, to, "warm",
                           "Start each server once to download its program and store its tool list",
                           run_warm);
  warm->add_option("names", to.names, "Servers (default: all)")->type_name("NAME");
  add_profile_options(*warm, to);
  add_json(*warm, to);
  warm->footer(
      "Example:\n  bulkhead warm github\n\n"
      "Each server runs in its sandbox with private package caches (npx, uvx, pipx, bunx) for at\n"
      "most ten minutes and is stopped after it lists its tools. A gateway then starts without a\n"
      "download and lists the server's tools immediately.\n"
      "Exit code 1 if a server did not start.");
}

void add_approvals(CLI::App &app, Arguments &to) {
  auto *approve = add_command(app, to, "approve",
                              "Review and approve the servers of a project file", run_approve);
  approve->add_option("names", to.names, "Servers (default: all in the file)")->type_name("NAME");
  add_profile_options(*approve, to);
  approve->add_flag("-y,--yes", to.yes, "Approve without prompting");
  approve->add_option("--hash", to.hash, "Approve NAME only if its definition has this SHA-256")
      ->type_name("SHA256");
  approve->add_flag("--tools", to.tools,
                    "After approval, start each server and scan its tools for suspicious text");
  approve->add_flag("--list", to.list, "List the approvals of all project files");
  add_json(*approve, to);
  approve->footer(approval_help(
      "Example:\n  bulkhead approve weather --project ./.mcp.json\n\n"
      "Until a server is approved, it is not started and its variables are not expanded. Changing\n"
      "a server's definition revokes its approval. Exit code 1 if a server is not approved."));
  auto *revoke =
      add_command(app, to, "revoke", "Revoke approvals of project file servers", run_revoke);
  revoke->add_option("names", to.names, "Servers (default: all in the file)")->type_name("NAME");
  revoke->add_option("--project", to.project, "Project file (default: as for approve)")
      ->type_name(file_type);
  revoke->add_flag("--all", to.all, "Revoke the approvals of all project files");
  revoke->footer("Example:\n  bulkhead revoke weather");
}

void add_questions(CLI::App &app, Arguments &to) {
  auto *command =
      add_command(app, to, "approvals",
                  "List calls that require human approval; approve or deny them", run_approvals);
  add_json(*command, to);
  command->require_subcommand(0, 1);
  command->footer(
      "Example:\n  bulkhead approvals watch\n\n"
      "Also lists approvals in force that cover more than one call. CLAIMED is the name that the\n"
      "client reports; it is not verified.\n"
      "A call waits for approval only while an approval surface is available: a terminal with\n"
      "`bulkhead approvals watch`, the client, or the service API ([approval] in the profile).\n"
      "Exit code 3 if no gateway is running.");
  auto *watch =
      add_command(*command, to, "watch", "Show pending approvals live; approve or deny with a key",
                  run_approvals_watch);
  watch->add_flag("--notify", to.notify,
                  "Show a desktop notification for each new approval request (notify-send)");
  add_json(*watch, to);
  watch->footer(
      "Example:\n  bulkhead approvals watch\n\n"
      "Keys: a allows once, s allows this call with these arguments for the session, t allows\n"
      "this tool with any arguments for the session, at most 10 minutes, d denies, arrows or j\n"
      "and k select, q quits. If standard output is not a terminal, prints one line (--json: one\n"
      "object) for each new approval request; decide with `approvals allow` and `deny`.");
  auto *allow = add_command(*command, to, "allow", "Allow a pending call", run_approvals_allow);
  auto *deny = add_command(*command, to, "deny", "Deny a pending call", run_approvals_deny);
  auto *revoke =
      add_command(*command, to, "revoke", "Revoke an approval in force", run_approvals_revoke);
  for (CLI::App *one : {allow, deny, revoke}) {
    one->add_option("id", to.question,
                    "ID of the approval request, or a prefix of at least 4 characters")
        ->required()
        ->type_name("ID");
  }
  auto *session = allow->add_flag("--session", to.for_session,
                                  "Also allow the same call until the client's session ends");
  allow
      ->add_option("--minutes", to.for_minutes,
                   "Also allow the same call from this client for N minutes (1 to 1440)")
      ->type_name("N")
      ->check(CLI::Range(1u, ApprovalScope::max_minutes).description(""))
      ->excludes(session);
  allow->add_flag("--tool", to.for_tool,
                  "With --session or --minutes (1 to 60): allow this tool with any arguments");
  allow->footer(approval_help(
      "Examples:\n  bulkhead approvals allow 3f9c --minutes 10\n"
      "  bulkhead approvals allow 3f9c --tool --minutes 10\n\n"
      "Without --tool, the approval applies to calls with exactly these arguments. With --tool,\n"
      "it applies to calls to this tool of this server in the client's session, and ends early if\n"
      "the rules or the definition of the tool change. Exit code 1 if no such request is\n"
      "pending."));
  deny->footer("Example:\n  bulkhead approvals deny 3f9c");
  revoke->footer(
      "Example:\n  bulkhead approvals revoke 3f9c\n\n"
      "`bulkhead approvals` lists approvals in force. Exit code 1 if none has this ID.");
}

void add_aggregator(CLI::App &app, Arguments &to) {
  auto *command = add_command(
      app, to, "aggregator",
      "Run as an aggregator subprocess: NDJSON or MessagePack on stdin and stdout", run_aggregator);
  command
      ->add_option("-c,--config", to.config,
                   "Profile with limits and other settings (default: none)")
      ->type_name(file_type);
  add_plugin_dir(*command, to);
  command->add_option("--log-level", to.log_level, "Log level of --verbose (default: info)")
      ->type_name(level_type)
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}).description(""));
  command->add_flag("-v,--verbose", to.verbose,
                    "Print all log lines to standard error, not only warnings");
  command
      ->add_option("--codec", to.codec,
                   "Message format (default: auto, detected from the first byte)")
      ->type_name(codec_type)
      ->check(CLI::IsMember({"auto", "ndjson", "msgpack"}).description(""));
  command
      ->add_option(
          "--parent-pid", to.parent_pid,
          "Exit when the parent process with this PID exits (default: the actual parent; 0: none)")
      ->type_name("PID")
      ->check(CLI::NonNegativeNumber.description(""));
  command
      ->add_option("--lock-path", to.lock_path,
                   "Exit with code 0 if another instance holds a lock on this file")
      ->type_name(file_type);
  command->footer(
      "Example:\n  printf '%s\\n' '[{\"name\":\"files\",\"command\":\"mcp-files\"}]' \\\n"
      "    '{\"id\":1,\"method\":\"list_tools\"}' | bulkhead aggregator\n\n"
      "The first message defines the servers; docs/aggregator.md describes the protocol.");
}

// Declares `relay` only so that it appears in the help and in completions. The relay parses its own
// command line.
void add_relay(CLI::App &app) {
  auto *command = app.add_subcommand(
      "relay", "Connect an MCP client in a virtual machine to the gateway on its host");
  for (const relay::OptionText &option : relay::option_texts()) {
    command->add_option(option.name, option.help)->type_name(option.type);
  }
  command->add_subcommand("doctor", "Check the connection to the gateway and explain failures");
}

void add_pins(CLI::App &app, Arguments &to) {
  auto *pins =
      add_command(app, to, "pins", "Review tool definitions that changed since approval", run_pins);
  add_profile_options(*pins, to);
  pins->add_flag("--all", to.all, "Include approved tools");
  add_json(*pins, to);
  pins->footer("Example:\n  bulkhead pins\n\ndocs/pins.md describes what is compared, and when.");
  const auto add = [&](const char *name, const char *help, RunCommand run, const char *example,
                       const std::string &more = {}) {
    auto *command = add_command(*pins, to, name, help, run);
    command->add_option("server", to.server, "Server")->required()->type_name("SERVER");
    command->add_option("tool", to.names, "Tool names on the server (default: all)")
        ->type_name("TOOL");
    add_profile_options(*command, to);
    command->footer(std::string("Example:\n  ") + example + more);
    return command;
  };
  constexpr const char *applies =
      "\n\nRunning gateways that use this server are reloaded to apply the change.";
  add_json(*add("show", "Show the approved and the current definition, and the differences",
                run_pins_show, "bulkhead pins show github"),
           to);
  add("approve", "Approve the current definitions", run_pins_approve,
      "bulkhead pins approve github list_issues", approval_help(applies))
      ->add_option(
          "--hash", to.hash,
          "Approve only if the tool's hash begins with these digits (at least 8; one tool)")
      ->type_name("HASH");
  add("forget", "Delete pins; without TOOL, the server's next tool list is approved automatically",
      run_pins_forget, "bulkhead pins forget github", applies);
}

void add_policy(CLI::App &app, Arguments &to) {
  auto *policy = app.add_subcommand("policy", "Validate, explain and test policy rules");
  auto *check = add_command(*policy, to, "check", "Validate policy rules", run_policy_check);
  // The positional argument and --config set the same value, so they exclude each other.
  auto *file = check->add_option("file", to.config, "Profile with the rules")->type_name(file_type);
  add_profile_options(*check, to);
  file->excludes(check->get_option("--config"));
  check->footer(
      "Example:\n  bulkhead policy check gateway.toml\n\n"
      "Also reports whether a running gateway with this profile has the same rules in force.");
  auto *explain =
      add_command(*policy, to, "explain", "Explain a policy decision", run_policy_explain);
  explain
      ->add_option("call", to.policy_file,
                   "File with the call as a JSON object, or - for standard input")
      ->required()
      ->type_name(file_type);
  add_profile_options(*explain, to);
  add_json(*explain, to);
  explain->footer(
      "Example:\n  echo "
      "'{\"server\":\"files\",\"name\":\"read\",\"arguments\":{\"path\":\"/etc\"}}'"
      " |\n    bulkhead policy explain -\n\nNo tool is called. docs/policy.md describes the input "
      "fields.");
  auto *test = add_command(*policy, to, "test", "Run policy test cases", run_policy_test);
  test->add_option("cases", to.policy_file, "Test cases, one per line; - reads standard input")
      ->required()
      ->type_name(file_type);
  add_profile_options(*test, to);
  test->footer(
      "Example:\n  bulkhead policy test rules.cases\n\n"
      "Format: {\"call\": {...}, \"expect\": \"block\", \"rule\": \"no-etc\"}\n"
      "Exit code 1 if a case fails.");
  auto *replay = add_command(*policy, to, "replay",
                             "Replay recorded calls against the current rules", run_policy_replay);
  replay->add_option("--since", to.records.since, "Start time: 30s, 10m, 2h or 1d ago, or RFC 3339")
      ->required()
      ->type_name("TIME");
  replay
      ->add_option("--file", to.records.file,
                   "Session database file (default: the files in the profile's state_dir)")
      ->type_name(file_type);
  add_profile_options(*replay, to);
  add_json(*replay, to);
  replay->footer(
      "Example:\n  bulkhead policy replay --since 7d --config next.toml\n\n"
      "Lists calls that the current rules would decide differently. No tool is called.");
  policy->require_subcommand(1);
  policy->footer("Example:\n  bulkhead policy check gateway.toml");
}

void add_others(CLI::App &app, Arguments &to) {
  auto *status =
      add_command(app, to, "status", "Show running gateways and their servers", run_status);
  status->add_flag("-v,--verbose", to.verbose,
                   "Also show compartments, their confinement, and the service socket");
  add_json(*status, to);
  status->footer(
      "Examples:\n  bulkhead status\n  bulkhead status --json | jq '.gateways[].servers[]'\n\n"
      "Exit code 3 if no gateway is running.");
  auto *doctor =
      add_command(app, to, "doctor",
                  "Check the system, configuration and servers; explain failures", run_doctor);
  add_profile_options(*doctor, to);
  add_json(*doctor, to);
  doctor->footer(
      "Example:\n  bulkhead doctor --config ~/.cursor/mcp.json\n\n"
      "Starts the configured servers briefly. Exit code 1 if a check FAILs.\n"
      "In a virtual machine, use `bulkhead-relay doctor`.");
  auto *reload =
      add_command(app, to, "reload", "Reload the configuration of running gateways", run_reload);
  add_json(*reload, to);
  reload->footer(
      "Example:\n  bulkhead reload\n\n"
      "Clients and unchanged servers stay connected. If the configuration has an error, nothing\n"
      "is changed. SIGHUP has the same effect.\n"
      "Exit codes: 0 all changes are in force, 1 nothing was changed, 3 no gateway is running,\n"
      "4 reloaded in part: lines with \"not changed\" name settings that require a restart.");
  auto *import = add_command(
      app, to, "import",
      "Import servers from Claude, VS Code, Cursor, Gemini CLI, Codex and other clients",
      run_import);
  import->add_option("-w,--write", to.write_to, "Add the servers to this profile")
      ->type_name(file_type);
  import->add_flag("--folder", to.folder,
                   "Also import client files in the working directory; if it is a repository, "
                   "review them first");
  import->add_flag("--force", to.force,
                   "Replace servers in the profile if a client defines them differently");
  import->add_flag("--no-warm", to.no_warm, "Do not start the imported servers");
  add_json(*import, to);
  import->footer(
      "Example:\n  bulkhead import --write ~/.config/bulkhead/profile.toml\n\n"
      "With --write, the servers are added to the profile. Without --force, servers that are\n"
      "already in the profile are not changed. Clients that still start the same servers\n"
      "themselves are listed with their files. Each added or replaced server is started once, as\n"
      "with `bulkhead warm`, so the first client does not wait for a download. With --json,\n"
      "--no-warm or --folder, no server is started. Files in the working directory may come from "
      "a\n"
      "repository, so after --folder, review the profile before you use it.");
  auto *profile = app.add_subcommand("profile", "Show and validate the configuration");
  auto *show =
      add_command(*profile, to, "show", "Print the effective configuration; secrets are masked",
                  run_profile_show);
  add_profile_options(*show, to);
  show->add_flag("--origin", to.origin, "Print the layer, file and line of each value");
  add_json(*show, to);
  show->footer("Example:\n  bulkhead profile show --origin --config mcp.json");
  profile->require_subcommand(1);
  profile->footer("Example:\n  bulkhead profile show --origin");
  add_plugin(app, to);
  add_mcp(app, to);
  add_pins(app, to);
  add_policy(app, to);
  add_records(app, to);
  auto *completion = app.add_subcommand("completion", "Print a shell completion script");
  add_command(*completion, to, "bash", "Print the script for bash", print_completion)
      ->footer("Example:\n  eval \"$(bulkhead completion bash)\"");
  completion->require_subcommand(1);
  completion->footer("Example:\n  bulkhead completion bash > /etc/bash_completion.d/bulkhead");
}

void build(CLI::App &app, Arguments &to) {
  app.name("bulkhead");
  app.description("MCP gateway: many MCP servers behind one endpoint.");
  app.set_version_flag("-V,--version", "bulkhead " BULKHEAD_VERSION);
  app.set_help_flag("-h,--help", "Print this help");
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  add_gateways(app, to);
  add_lists(app, to);
  add_warm(app, to);
  add_approvals(app, to);
  add_questions(app, to);
  add_aggregator(app, to);
  add_relay(app);
  add_others(app, to);
  app.footer(
      "Example:\n  bulkhead serve --config ~/.cursor/mcp.json\n\n"
      "Exit codes: 0 success, 1 failure or invalid configuration, 2 usage error, 3 no gateway is\n"
      "running.");
}

// If an option was given an empty value, returns the name of the option. Otherwise returns an empty
// string.
std::string empty_option(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_positional() || option->get_type_size() == 0) continue;
    for (const std::string &value : option->results())
      if (value.empty()) return option->get_name();
  }
  for (const CLI::App *command : app.get_subcommands()) {
    std::string name = empty_option(*command);
    if (!name.empty()) return name;
  }
  return {};
}

CommandTree tree_of(CLI::App &app) {
  CommandTree out;
  out.name = app.get_name();
  for (const CLI::Option *option : app.get_options()) {
    CommandTree::Option entry;
    for (const auto &name : option->get_lnames()) entry.names.push_back("--" + name);
    for (const auto &name : option->get_snames()) entry.names.push_back("-" + name);
    if (entry.names.empty()) continue;
    entry.takes_value = option->get_expected_min() > 0 && option->get_type_size() > 0;
    const std::string type = option->get_type_name();
    entry.takes_file = type.starts_with(file_type) || type.starts_with(folder_type);
    if (type.starts_with(level_type)) {
      entry.values = {"debug", "info", "warn", "error"};
    } else if (type.starts_with(codec_type)) {
      entry.values = {"auto", "ndjson", "msgpack"};
    } else if (type.starts_with(language_type)) {
      entry.values = {"c", "c++"};
    }
    out.options.push_back(std::move(entry));
  }
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; })) {
    out.commands.push_back(tree_of(*command));
  }
  return out;
}

}  // namespace

std::variant<Arguments, int> parse_arguments(int argc, const char *const *argv) {
  Arguments out;
  CLI::App app;
  build(app, out);
  if (argc < 2) {
    Console::get().write(app.help());
    return exit_usage;
  }
  if (const std::string unknown = unknown_command(app, argc, argv); !unknown.empty()) {
    Console::get().write(unknown);
    return exit_usage;
  }
  try {
    app.parse(read_program(argc, argv, &out.mcp), argv);
  } catch (const CLI::ExtrasError &) {
    Console::get().write(unexpected_word(app));
    return exit_usage;
  } catch (const CLI::RequiredError &) {
    Console::get().write(missing_word(app));
    return exit_usage;
  } catch (const CLI::Error &error) {
    std::ostringstream text, errors;
    const int code = app.exit(error, text, errors);
    write_stdout(text.str());
    if (code != 0) Console::get().write("bulkhead: " + errors.str());
    return code == 0 ? exit_ok : exit_usage;
  }
  if (const std::string name = empty_option(*app.get_subcommands().front()); !name.empty()) {
    // An empty value may come from an unset variable in a script. It must not silently select the
    // default.
    Console::get().write("bulkhead: " + name + " requires a non-empty value\n");
    return exit_usage;
  }
  out.config = without_parent_steps(out.config);
  return out;
}

CommandTree command_tree() {
  Arguments unused;
  CLI::App app;
  build(app, unused);
  return tree_of(app);
}

}  // namespace bulkhead::program
