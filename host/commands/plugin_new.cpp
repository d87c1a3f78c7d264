// Implements `plugin new`, which creates the source tree of a new plugin.
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "bulkhead/cpp/text.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "kit/new_plugin.hpp"

namespace bulkhead::program {
namespace {

// Returns the text as one word of a shell command.
std::string shell_word(const std::string &text) {
  const auto plain = [](char c) {
    return bh::is_letter_or_digit(c) || std::string_view("_-./+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Returns the options of `plugin check` that this kind of plugin needs.
std::string check_options(const std::string &kind, const std::string &name) {
  if (kind == "transport") return " --config '{\"listen\":\"/tmp/" + name + ".sock\"}'";
  if (kind == "connector") return " --definition '{\"url\":\"tcp-lines://127.0.0.1:9000\"}'";
  return {};
}

// Returns the commands that build and run the new plugin.
std::string next_steps(const std::string &folder, const std::string &kind,
                       const std::string &name) {
  // In a build tree, the SDK is not installed next to the program.
  const std::string prefix = own_prefix();
  const bool installed = ::access((prefix + "/include/bulkhead/abi/plugin.h").c_str(), R_OK) == 0;
  return "  cd " + shell_word(folder) +
         "\n  cmake -B build -DCMAKE_PREFIX_PATH=" + shell_word(installed ? prefix : "PREFIX") +
         " -DCMAKE_BUILD_TYPE=Release\n  cmake --build build\n"
         "  ctest --test-dir build --output-on-failure\n"
         "  bulkhead plugin check build/" +
         name + ".so" + check_options(kind, name) + "\n  bulkhead serve --config gateway.toml\n" +
         (installed ? "" : "PREFIX is the prefix of `make install`, for example /usr/local.\n");
}

}  // namespace

int run_plugin_new(const Arguments &arguments) {
  const PluginArguments &plugin = arguments.plugin;
  NewPlugin wanted{own_template_dir(), plugin.folder, plugin.kind, plugin.language, arguments.name};
  if (wanted.target.empty()) wanted.target = "./" + wanted.name;
  const auto made = create_plugin(wanted);
  if (!made) {
    return complain(made.error().text,
                    made.error().code == BH_E_INVALID ? exit_usage : exit_failed);
  }
  const std::string shown = printable(wanted.target);
  std::string text =
      "Created the " + plugin.kind + " plugin \"" + wanted.name + "\" in " + shown + ":\n";
  for (const std::string &name : *made) text += "  " + printable(name) + "\n";
  text += "README.md describes how to build, test, check and run it:\n" +
          next_steps(shown, wanted.kind, wanted.name);
  return write_stdout(text) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
