#include "command_line/completion.hpp"

namespace bulkhead::program {
namespace {

std::string words_of(const CommandTree &tree) {
  std::string out;
  for (const auto &command : tree.commands) out += (out.empty() ? "" : " ") + command.name;
  for (const auto &option : tree.options) {
    for (const auto &name : option.names) {
      if (name.starts_with("--")) out += (out.empty() ? "" : " ") + name;
    }
  }
  return out;
}

// Adds a `case` label for each command path, such as "serve" or "profile show".
void add_cases(const CommandTree &tree, const std::string &path, std::string *words,
               std::string *values) {
  *words += "    '" + path + "') words='" + words_of(tree) + "' ;;\n";
  for (const auto &option : tree.options) {
    if (!option.takes_value) continue;
    std::string label;
    for (const auto &name : option.names) {
      label += (label.empty() ? "'" : "|'") + path + ":" + name + "'";
    }
    std::string action = "return";
    if (option.takes_file)
      action = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return";
    if (!option.values.empty()) {
      std::string list;
      for (const auto &value : option.values) list += (list.empty() ? "" : " ") + value;
      action = "COMPREPLY=($(compgen -W '" + list + "' -- \"$cur\")); return";
    }
    *values += "    " + label + ") " + action + " ;;\n";
  }
  for (const auto &command : tree.commands) {
    add_cases(command, path.empty() ? command.name : path + " " + command.name, words, values);
  }
}

std::string paths_of(const CommandTree &tree, const std::string &path) {
  std::string out;
  for (const auto &command : tree.commands) {
    const std::string next = path.empty() ? command.name : path + " " + command.name;
    out += (out.empty() ? "'" : "|'") + next + "'";
    if (const std::string deeper = paths_of(command, next); !deeper.empty()) out += "|" + deeper;
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandTree &tree) {
  std::string words, values;
  add_cases(tree, "", &words, &values);
  return "# bash completion for bulkhead: eval \"$(bulkhead completion bash)\"\n"
         "_bulkhead() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' i next "
         "words=''\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    next=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "    case \"$next\" in\n"
         "    " +
         paths_of(tree, "") +
         ") path=$next ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$path:$prev\" in\n" +
         values +
         "  esac\n"
         "  case \"$path\" in\n" +
         words +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -F _bulkhead bulkhead\n";
}

}  // namespace bulkhead::program
