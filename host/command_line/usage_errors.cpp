#include "command_line/usage_errors.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/suggestion.hpp"
#include "common/text.hpp"

namespace bulkhead::program {
namespace {

// If the command can listen and the option has the name that other programs use for an address,
// returns what to use instead.
std::string address_hint(const CLI::App &command, std::string_view option) {
  const auto names = {"--port", "-p", "--host", "--bind", "--address", "--addr"};
  if (std::find(names.begin(), names.end(), option) == names.end()) return {};
  return command.get_option_no_throw("--listen") == nullptr ? "" : "use --listen ADDRESS:PORT. ";
}

// Returns the command that was given, and sets its full name.
const CLI::App *command_of(const CLI::App &app, std::string *name) {
  const CLI::App *command = &app;
  *name = "bulkhead";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    *name += ' ' + command->get_name();
  }
  return command;
}

}  // namespace

std::string unknown_command(const CLI::App &app, int argc, const char *const *argv) {
  const CLI::App *at = &app;
  std::string name = "bulkhead";
  for (int i = 1; i < argc && argv[i][0] != '-' && at->get_require_subcommand_min() > 0; ++i) {
    const auto is_named = [&](const CLI::App *each) { return each->get_name() == argv[i]; };
    const auto found = at->get_subcommands(is_named);
    if (found.empty()) {
      std::vector<std::string> names;
      for (const CLI::App *each : at->get_subcommands([](const CLI::App *) { return true; })) {
        names.push_back(each->get_name());
      }
      const std::string similar = suggestion(argv[i], names);
      return name + " has no command \"" + printable(argv[i]) + "\"; " +
             (similar.empty() ? "" : similar + " ") + "`" + name + " --help` lists them.\n";
    }
    at = found.front();
    name += ' ' + at->get_name();
  }
  return {};
}

std::string unexpected_word(const CLI::App &app) {
  std::string name;
  const CLI::App *command = command_of(app, &name);
  const std::vector<std::string> words = command->remaining();
  const auto is_option = [](const std::string &word) { return word.size() > 1 && word[0] == '-'; };
  const auto found = std::find_if(words.begin(), words.end(), is_option);
  const std::string help = "`" + name + " --help` lists ";
  if (found == words.end()) {
    const std::string word = words.empty() ? "" : " \"" + printable(words.front()) + '"';
    return name + " does not expect the argument" + word + "; " + help + "its arguments.\n";
  }
  const std::string option = found->substr(0, found->find('='));
  std::vector<std::string> known;
  for (const CLI::Option *each : command->get_options()) {
    for (const std::string &long_name : each->get_lnames()) known.push_back("--" + long_name);
  }
  std::string hint = address_hint(*command, option);
  if (hint.empty() && option.starts_with("--")) hint = suggestion(option, known);
  if (hint.ends_with('?')) hint += ' ';
  if (hint.empty() && name == "bulkhead mcp add") hint = "put the server's command after --. ";
  return name + " has no option \"" + printable(option) + "\"; " + hint + help + "its options.\n";
}

std::string missing_word(const CLI::App &app) {
  std::string name;
  const CLI::App *command = command_of(app, &name);
  const std::string help = "; `" + name + " --help` ";
  for (const CLI::Option *each : command->get_options()) {
    if (!each->get_required() || each->count() > 0) continue;
    const std::string what = each->get_positional() ? each->get_type_name() : each->get_name();
    return name + " requires " + what + help + "describes its arguments.\n";
  }
  return name + " requires a command" + help + "lists them.\n";
}

}  // namespace bulkhead::program
