#include "command_line/record_arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {
namespace {

constexpr const char *file_type = "FILE";

void add_where(CLI::App &app, Arguments &to) {
  app.add_option("--file", to.records.file,
                 "A file of the session database (default: those of the profile's state_dir)")
      ->type_name(file_type);
  app.add_option("-c,--config", to.config, "Profile whose state_dir is meant")
      ->type_name(file_type);
  app.add_flag("--json", to.json, "Print JSON");
}

// --limit: a larger number works with the largest, and the command says so.
void add_limit(CLI::App &app, Arguments &to, std::uint64_t usual, std::uint64_t most) {
  const auto clamp = [&to, most](std::string &text) -> std::string {
    const std::size_t digits = std::min(text.find_first_not_of('0'), text.size());
    const bool number = text.find_first_not_of("0123456789") == std::string::npos;
    if (!number || digits == text.size()) {
      return "'" + text + "' is no number of rows: give a whole number from 1 to " +
             std::to_string(most);
    }
    text.erase(0, digits);
    const std::string largest = std::to_string(most);
    if (text.size() < largest.size() || (text.size() == largest.size() && text <= largest)) {
      return {};
    }
    to.records.limit_note = "--limit " + text.substr(0, 40) + " is more than the maximum of " +
                            largest + " rows: " + largest + " is used";
    text = largest;
    return {};
  };
  app.add_option("-n,--limit", to.records.limit,
                 "The newest so many (default: " + std::to_string(usual) + "; at most " +
                     std::to_string(most) + ")")
      ->type_name("ROWS")
      ->transform(CLI::Validator(clamp, ""));
}

}  // namespace

void add_records(CLI::App &app, Arguments &to) {
  auto *inspect = app.add_subcommand("inspect", "Ask the session database, in SQL");
  inspect->add_option("sql", to.records.sql, "One SELECT, WITH or EXPLAIN")->type_name("SQL");
  inspect->add_flag("--schema", to.records.schema, "Print the tables as SQL, and end");
  add_where(*inspect, to);
  inspect->footer(
      "Example:\n  bulkhead inspect \"SELECT server_name, count(*) FROM mcp_calls GROUP BY 1\"\n\n"
      "Nothing can be written: SQLite itself refuses all but reading. At most 10,000 rows and 5 "
      "s.\n"
      "--json prints {\"columns\":[...],\"rows\":[[...]]}.");
  auto *timeline = app.add_subcommand("timeline", "What happened, in order of time");
  timeline->add_option("--since", to.records.since, "30s, 10m, 2h, 1d, or a time (RFC 3339)")
      ->type_name("TIME");
  timeline
      ->add_option("--layers", to.records.layers,
                   "Only these: mcp, net, fs, snapshot, security, audit (default: all)")
      ->type_name("LIST");
  timeline->add_option("--trace", to.records.trace, "Only this trace, and what has none")
      ->type_name("ID");
  add_limit(*timeline, to, 200, 2'000);
  add_where(*timeline, to);
  timeline->footer("Example:\n  bulkhead timeline --since 10m --layers mcp,security");
  auto *calls = app.add_subcommand("calls", "The last calls, and those that come");
  calls->add_flag("-f,--follow", to.records.follow, "Go on with what comes, until Ctrl-C");
  add_limit(*calls, to, 20, 10'000);
  add_where(*calls, to);
  calls->footer("Example:\n  bulkhead calls --follow");
  auto *audit = app.add_subcommand("audit", "Look at the record itself");
  auto *verify = audit->add_subcommand("verify", "Is the record what was written?");
  verify
      ->add_option("file", to.records.file,
                   "One file (default: every chain of the profile's state_dir)")
      ->type_name(file_type);
  verify
      ->add_option("--key", to.records.key,
                   "The supervisor's public key, in hex or a file with it (default: the "
                   "state_dir's)")
      ->type_name(file_type);
  verify
      ->add_option(
          "--instance", to.records.instance,
          "Whose record FILE is to be: the name behind telemetry. in the profile (default: "
          "its folder's, in the state_dir)")
      ->type_name("NAME");
  verify
      ->add_option("--max-unsigned", to.records.max_unsigned,
                   "How many rows behind the last signature are no reason to fail (default: 5000)")
      ->type_name("ROWS");
  verify->add_option("-c,--config", to.config, "Profile whose state_dir is meant")
      ->type_name(file_type);
  verify->add_flag("--json", to.json, "Print JSON");
  verify->footer(
      "Example:\n  bulkhead audit verify\n\n"
      "Checks the hash of every row, that none is missing, and the signatures. Names the first "
      "row\n"
      "that is not what was written. Exit code 1 if there is one, if signatures could not be "
      "checked,\n"
      "or if too much is not signed.");
  audit->require_subcommand(1);
  audit->footer("Example:\n  bulkhead audit verify");
}

}  // namespace bulkhead::program
