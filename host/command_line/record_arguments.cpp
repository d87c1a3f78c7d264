#include "command_line/record_arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <string>

#include "command_line/add_command.hpp"
#include "command_line/commands.hpp"

namespace bulkhead::program {
namespace {

void add_where(CLI::App &app, Arguments &to) {
  app.add_option("--file", to.records.file,
                 "Session database file (default: the files in the profile's state_dir)")
      ->type_name(file_type);
  app.add_option("-c,--config", to.config, "Profile that defines the state_dir")
      ->type_name(file_type);
  app.add_flag("--json", to.json, "Print JSON");
}

void add_utc(CLI::App &app, Arguments &to) {
  app.add_flag("--utc", to.records.utc, "Show times in UTC (default: local time; JSON: UTC)");
}

// Adds --limit. If the value is above the maximum, it is lowered to the maximum and limit_note is
// set.
void add_limit(CLI::App &app, Arguments &to, std::uint64_t usual, std::uint64_t most) {
  const auto clamp = [&to, most](std::string &text) -> std::string {
    const std::size_t digits = std::min(text.find_first_not_of('0'), text.size());
    const bool number = text.find_first_not_of("0123456789") == std::string::npos;
    if (!number || digits == text.size()) {
      return "'" + text + "' is not a valid number of rows: use a whole number from 1 to " +
             std::to_string(most);
    }
    text.erase(0, digits);
    const std::string largest = std::to_string(most);
    if (text.size() < largest.size() || (text.size() == largest.size() && text <= largest)) {
      return {};
    }
    to.records.limit_note = "--limit " + text.substr(0, 40) + " exceeds the maximum of " + largest +
                            " rows; using " + largest;
    text = largest;
    return {};
  };
  app.add_option("-n,--limit", to.records.limit,
                 "Number of newest rows (default: " + std::to_string(usual) + "; at most " +
                     std::to_string(most) + ")")
      ->type_name("ROWS")
      ->transform(CLI::Validator(clamp, ""));
}

}  // namespace

void add_records(CLI::App &app, Arguments &to) {
  auto *inspect =
      add_command(app, to, "inspect", "Query the session database with SQL", run_inspect);
  inspect->add_option("sql", to.records.sql, "One SELECT, WITH or EXPLAIN statement")
      ->type_name("SQL");
  inspect->add_flag("--schema", to.records.schema, "Print the schema as SQL");
  add_where(*inspect, to);
  inspect->footer(
      "Example:\n  bulkhead inspect \"SELECT server_name, count(*) FROM mcp_calls GROUP BY 1\"\n\n"
      "Queries are read-only and limited to 10,000 rows and 5 s.\n"
      "--json prints {\"columns\":[...],\"rows\":[[...]]}.");
  auto *timeline =
      add_command(app, to, "timeline", "Show recorded events in chronological order", run_timeline);
  timeline
      ->add_option("--since", to.records.since, "Start time: 30s, 10m, 2h or 1d ago, or RFC 3339")
      ->type_name("TIME");
  timeline
      ->add_option("--layers", to.records.layers,
                   "Layers: mcp, net, fs, snapshot, security, audit (default: all)")
      ->type_name("LIST");
  timeline
      ->add_option("--trace", to.records.trace,
                   "Show only events of this trace and events without a trace")
      ->type_name("ID");
  add_utc(*timeline, to);
  add_limit(*timeline, to, 200, 2'000);
  add_where(*timeline, to);
  timeline->footer("Example:\n  bulkhead timeline --since 10m --layers mcp,security");
  auto *calls =
      add_command(app, to, "calls", "Show recent calls; --follow streams new ones", run_calls);
  calls->add_flag("-f,--follow", to.records.follow, "Stream new calls until Ctrl-C");
  calls->add_option("-s,--server", to.server, "Show only calls to this server")->type_name("NAME");
  calls
      ->add_option(
          "-t,--tool", to.records.tool,
          "Show only calls to this tool (its name on the server, or the name that clients see)")
      ->type_name("NAME");
  calls
      ->add_option("--client", to.records.client,
                   "Show only calls by this client (claimed name or process name)")
      ->type_name("NAME");
  calls
      ->add_option("--session", to.records.session,
                   "Show only calls of this session (a number that --args shows)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber.description(""));
  calls->add_option("--trace", to.records.trace, "Show only calls of this trace")->type_name("ID");
  calls->add_flag("--args", to.records.args,
                  "Show the session and the arguments (or URI) of each call");
  calls->add_flag("--denied", to.records.denied, "Show only denied calls");
  calls->add_flag("--errors", to.records.errors,
                  "Show only calls that failed or whose tool returned an error");
  calls->add_option("--since", to.records.since, "Start time: 30s, 10m, 2h or 1d ago, or RFC 3339")
      ->type_name("TIME");
  calls->add_flag("-a,--all", to.all, "Include handshakes, lists and pings");
  add_utc(*calls, to);
  add_limit(*calls, to, 20, 10'000);
  add_where(*calls, to);
  calls->footer(
      "Example:\n  bulkhead calls --server github --denied --follow\n\n"
      "Filters can be combined; --denied and --errors together select both. --json prints one\n"
      "object per line, always including handshakes, lists and pings, with times in UTC.");
  auto *logs = add_command(app, to, "logs", "Show a server's standard error output", run_logs);
  logs->add_option("name", to.name, "Name of the server")->required()->type_name("NAME");
  logs->add_flag("-f,--follow", to.records.follow, "Stream new lines until Ctrl-C");
  logs->add_option("-n,--lines", to.records.limit, "Number of newest lines (default: 100)")
      ->type_name("LINES")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}).description(""));
  logs->add_option("-c,--config", to.config, "Profile that defines the state_dir")
      ->type_name(file_type);
  logs->footer(
      "Example:\n  bulkhead logs github --follow\n\n"
      "Values of the server's env are masked. The log is limited to two files of\n"
      "limits.stderr_bytes each.");
  auto *audit = app.add_subcommand("audit", "Verify the audit log");
  auto *verify =
      add_command(*audit, to, "verify", "Verify hashes and signatures of the session database",
                  run_audit_verify);
  verify
      ->add_option("file", to.records.file,
                   "Session database file (default: every chain in the profile's state_dir)")
      ->type_name(file_type);
  verify
      ->add_option("--key", to.records.key,
                   "Supervisor public key: hex digits or a file (default: from the state_dir)")
      ->type_name(file_type);
  verify
      ->add_option(
          "--instance", to.records.instance,
          "Telemetry instance of FILE: NAME of [telemetry.NAME] (default: from its folder in "
          "the state_dir)")
      ->type_name("NAME");
  verify
      ->add_option("--max-unsigned", to.records.max_unsigned,
                   "Maximum number of rows after the last signature (default: 5000)")
      ->type_name("ROWS");
  verify->add_option("-c,--config", to.config, "Profile that defines the state_dir")
      ->type_name(file_type);
  verify->add_flag("--json", to.json, "Print JSON");
  verify->footer(
      "Example:\n  bulkhead audit verify\n\n"
      "Verifies row hashes, the completeness of each chain, and signatures, and reports the first\n"
      "row that does not match. Exit code 1 if a row does not match, signatures cannot be\n"
      "verified, or too many rows are unsigned.");
  audit->require_subcommand(1);
  audit->footer("Example:\n  bulkhead audit verify");
}

}  // namespace bulkhead::program
