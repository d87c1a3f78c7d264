#include "sandbox/start_folder.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

using Args = std::span<const std::string>;

// Returns true if `word` is in `list`, whose items are separated by single spaces.
bool is_listed(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// ---- programs that run packages ----------------------------------------------------------------

// A program's options, in lists whose items are separated by single spaces. An option that is in
// none of the lists does not take the next argument as its value.
struct Options {
  // Options that take the next argument as their value, unless they contain '='.
  std::string_view valued;
  std::string_view packages;  // options whose value is a package; otherwise like `valued`
  std::string_view folder;    // options that make the program depend on its working directory
};

constexpr Options npm_options{
    "--registry --prefix -C --cache --userconfig --globalconfig --loglevel --call -c --tag "
    "--before --omit --include --script-shell --node-options --cafile --proxy --https-proxy",
    "--package -p", "--workspace -w --workspaces -ws --include-workspace-root"};
constexpr Options pnpm_options{
    "--registry --dir -C --loglevel --reporter --store-dir --config-dir --allow-build", "--package",
    "--filter -F --recursive -r --workspace-root -w"};
constexpr Options yarn_options{"--cwd --registry --cache-folder --use-yarnrc", "--package -p", ""};
constexpr Options bun_options{"--cwd --config -c --registry --env-file", "--package -p",
                              "--filter -F"};
constexpr Options deno_options{
    "--config -c --import-map --location --ext --cert --seed --preload --import", "", ""};
constexpr Options uv_options{
    "--directory --project --config-file --cache-dir --color --allow-insecure-host --python -p "
    "--index --default-index --index-url -i --extra-index-url --find-links -f --constraints "
    "--constraint -c --overrides --env-file --resolution --prerelease --link-mode --fork-strategy "
    "--refresh-package --reinstall-package --upgrade-package -P --no-binary-package "
    "--no-build-package --exclude-newer --index-strategy --keyring-provider --config-setting -C "
    "--python-platform --extra --group --only-group --no-group --no-extra --torch-backend",
    "--from --with -w --with-editable --with-requirements", "--package --all-packages"};
constexpr Options pipx_options{
    "--python --pip-args --index-url -i --backend --fetch-missing-python-from", "--spec --with",
    ""};
constexpr Options dotnet_options{"--version --source --add-source --configfile --verbosity -v", "",
                                 ""};

// A command line that runs a package by name. If a command has several entries, the first entry
// with matching words applies.
struct Runner {
  std::string_view command, words;
  const Options *options;
  std::string_view needs = {};   // if not empty, one of these options is required
  std::string_view origin = {};  // if not empty, the package name must begin with one of these
};

constexpr Runner runners[] = {
    {"npx", "", &npm_options},
    {"npm", "exec", &npm_options},
    {"npm", "x", &npm_options},
    {"pnpx", "", &pnpm_options},
    {"pnpm", "dlx", &pnpm_options},
    {"yarn", "dlx", &yarn_options},
    {"yarnpkg", "dlx", &yarn_options},
    {"bunx", "", &bun_options},
    {"bun", "x", &bun_options},
    {"deno", "x", &deno_options},
    {"deno", "run", &deno_options, "", "npm: jsr: http: https:"},
    {"deno", "", &deno_options, "", "npm: jsr: http: https:"},
    {"uvx", "", &uv_options},
    {"uv", "tool run", &uv_options},
    {"uv", "x", &uv_options},
    {"uv", "run", &uv_options, "--with -w"},
    {"pipx", "run", &pipx_options},
    {"dnx", "", &dotnet_options},
    {"dotnet", "dnx", &dotnet_options},
    {"dotnet", "tool exec", &dotnet_options},
    {"dotnet", "tool execute", &dotnet_options},
};

// Wrapper programs, which run the command given in their last arguments.
struct Starter {
  std::string_view command;
  std::size_t words = 0;         // positional arguments before the command
  bool assigns = false;          // NAME=value may precede the command
  std::string_view valued = {};  // see Options::valued
  // Options that change the working directory or contain the command.
  std::string_view elsewhere = {};
};

constexpr Starter starters[] = {
    {"env", 0, true, "-u --unset", "-C --chdir -S --split-string"},
    {"nice", 0, false, "-n --adjustment"},
    {"nohup"},
    {"setsid"},
    {"stdbuf", 0, false, "-i -o -e --input --output --error"},
    {"timeout", 1, false, "-k --kill-after -s --signal"},
    {"corepack"},
};

struct Option {
  std::string_view name, value;
  bool has_value = false;
};

Option split_option(std::string_view arg) {
  const std::size_t equals = arg.find('=');
  if (equals == std::string_view::npos) return {arg, {}, false};
  return {arg.substr(0, equals), arg.substr(equals + 1), true};
}

bool is_option(std::string_view arg) {
  return arg.size() > 1 && arg[0] == '-';
}

bool takes_next(const Options &options, const Option &option) {
  return !option.has_value &&
         (is_listed(options.valued, option.name) || is_listed(options.packages, option.name));
}

// Returns the index of the first argument that is not an option, starting at `at`.
std::size_t next_word(const Options &options, Args args, std::size_t at) {
  for (; at < args.size() && is_option(args[at]); ++at) {
    if (args[at] == "--") return at + 1;
    if (takes_next(options, split_option(args[at]))) ++at;
  }
  return std::min(at, args.size());
}

// Returns the index of the package argument, or the number of arguments if there is none (the
// package may be named by an option). Returns nullopt if the arguments do not match the runner's
// words.
std::optional<std::size_t> find_package(const Runner &runner, Args args) {
  std::size_t at = 0;
  for (std::string_view words = runner.words; !words.empty(); ++at) {
    const std::string_view word = words.substr(0, words.find(' '));
    at = next_word(*runner.options, args, at);
    if (at >= args.size() || args[at] != word) return std::nullopt;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return next_word(*runner.options, args, at);
}

// Returns true for names like "python3.13t" (free-threaded build) and "python3-dbg".
bool is_python(std::string_view command) {
  for (const std::string_view name : {"python", "pypy"}) {
    if (!command.starts_with(name)) continue;
    const std::string_view version = command.substr(name.size());
    const std::size_t build = version.find_first_not_of("0123456789.");
    return build == std::string_view::npos ||
           is_listed("t d m td dm -dbg -debug t-dbg -nogil -c w", version.substr(build));
  }
  return false;
}

// For "python -m MODULE", returns the number of arguments up to and including the module. Returns
// nullopt if Python runs something else.
std::optional<std::size_t> words_of_module(Args args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string &arg = args[i];
    // The argument is a script, or "-" for standard input.
    if (arg.size() < 2 || arg[0] != '-') return std::nullopt;
    if (arg[1] == '-') continue;
    // Single letters can be combined: -Im MODULE, -mMODULE, -Xdev.
    for (std::size_t at = 1; at < arg.size(); ++at) {
      const bool last = at + 1 == arg.size();
      if (arg[at] == 'c') return std::nullopt;
      if (arg[at] == 'm') return std::min(last ? i + 2 : i + 1, args.size());
      if (arg[at] != 'W' && arg[at] != 'X') continue;
      if (last) ++i;  // the next argument is the option's value
      break;
    }
  }
  return std::nullopt;
}

// ---- relative paths ----------------------------------------------------------------------------

bool looks_like_file(std::string_view text) {
  static constexpr std::string_view endings[] = {
      ".js",   ".mjs", ".cjs",    ".ts",      ".mts",  ".cts", ".tsx",  ".jsx", ".py",  ".json",
      ".yaml", ".yml", ".toml",   ".ini",     ".cfg",  ".env", ".conf", ".txt", ".md",  ".csv",
      ".db",   ".xml", ".sqlite", ".sqlite3", ".html", ".log", ".sh",   ".pem", ".key", ".whl"};
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

// Returns true for names like "Europe/Berlin".
bool is_time_zone(std::string_view text) {
  constexpr std::string_view areas =
      "Africa America Antarctica Arctic Asia Atlantic Australia Etc Europe Indian Pacific";
  return is_listed(areas, text.substr(0, text.find('/')));
}

enum class Text : std::uint8_t {
  word,     // a path if it contains a slash
  package,  // a package name, even if it contains a slash
  value,    // the value of an option whose name does not refer to files; treated like a package
};

// Checks only the form of the text. The contents of the working directory are not trusted, so they
// are not examined.
bool is_relative_path(std::string_view text, Text kind) {
  if (text == "." || text == ".." || text.starts_with("./") || text.starts_with("../")) return true;
  if (text.starts_with("file:")) return !text.substr(5).starts_with('/');
  if (text.empty() || text[0] == '/' || text[0] == '~' || text[0] == '@') return false;
  if (kind == Text::package || text.find_first_of(" \t\n") != std::string_view::npos) return false;
  const std::size_t slash = text.find('/');
  if (text.find(':') < slash) return false;  // a URL, github:owner/name, or similar
  if (looks_like_file(text)) return true;
  return slash != std::string_view::npos && kind == Text::word && !is_time_zone(text);
}

// Returns true for option names such as "--db-path" and "--outputDir".
bool names_files(std::string_view option) {
  constexpr std::string_view words =
      "config conf cwd workspace workspaces repo repository project db database log logs out "
      "output input data store storage cache cert ca schema spec script source src target template "
      "vault docs document documents home prefix location mount socket include exclude glob import "
      "manifest notes save snapshot dest destination allow allowed";
  constexpr std::string_view ends[] = {"path", "paths", "file",   "files",  "dir",
                                       "dirs", "root",  "folder", "folders"};
  std::string name;
  for (const char c : option) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper) name += ' ';
    name += c == '-' || c == '_' || c == '.' ? ' ' : static_cast<char>(upper ? c + 32 : c);
  }
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (!word.empty() && (word.starts_with("director") || is_listed(words, word))) return true;
    if (std::any_of(std::begin(ends), std::end(ends),
                    [&](auto end) { return word.ends_with(end); }))
      return true;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return false;
}

// Returns true for options that take no value.
bool is_switch(std::string_view option) {
  constexpr std::string_view known =
      "--verbose --debug --quiet --silent --stdio --read-only --readonly --yes --force --help "
      "--version --watch --strict --trace";
  return is_listed(known, option) || option.starts_with("--no-") ||
         option.starts_with("--enable-") || option.starts_with("--disable-");
}

// Returns true for the one-letter options that usually name a file or folder (config, directory,
// file, input, output, root, workspace). The values of others, such as "-k KEY", may contain
// slashes without being paths.
bool is_file_letter(std::string_view option) {
  return is_listed("-c -C -d -D -f -F -i -I -o -O -r -w", option);
}

// Returns how to interpret an option's value.
Text kind_of_value(std::string_view option) {
  const bool is_long = option.starts_with("--") && option.size() > 2;
  if (!is_long) return is_file_letter(option) ? Text::word : Text::value;
  return is_switch(option) || names_files(option) ? Text::word : Text::value;
}

bool has_relative_path(Args args) {
  Text kind = Text::word;
  for (const std::string_view arg : args) {
    const Option option = split_option(arg);
    if (!is_option(arg)) {
      if (is_relative_path(arg, kind)) return true;
      kind = Text::word;
    } else if (option.has_value) {
      if (is_relative_path(option.value, kind_of_value(option.name))) return true;
      kind = Text::word;
    } else {
      kind = kind_of_value(option.name);
    }
  }
  return false;
}

// Returns true if the program's own options, which precede the package, depend on the working
// directory.
bool options_need_folder(const Options &options, Args args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_option(args[i])) continue;
    const Option option = split_option(args[i]);
    if (is_listed(options.folder, option.name)) return true;
    const bool next = takes_next(options, option) && i + 1 < args.size();
    const std::string_view value = next ? std::string_view(args[++i]) : option.value;
    const bool package = is_listed(options.packages, option.name);
    if (is_relative_path(value, package ? Text::package : Text::word)) return true;
  }
  return false;
}

bool has_option(std::string_view wanted, Args args) {
  return std::any_of(args.begin(), args.end(), [&](std::string_view arg) {
    return is_listed(wanted, split_option(arg).name);
  });
}

bool begins_with_one_of(std::string_view list, std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && is_listed(list, text.substr(0, colon + 1));
}

// ---- result ------------------------------------------------------------------------------------

bool runs_module_alone(Args args) {
  const auto words = words_of_module(args);
  return words && !has_relative_path(args.subspan(*words));
}

bool runs_package_alone(const Runner &runner, Args args, std::size_t package) {
  const Args own = args.first(package);
  if (options_need_folder(*runner.options, own)) return false;
  if (!runner.needs.empty()) {  // "uv run --with" runs a script or a program of the package
    if (!has_option(runner.needs, own) || package == args.size()) return false;
    if (is_python(args[package])) return runs_module_alone(args.subspan(package + 1));
    if (args[package].find('/') != std::string::npos || looks_like_file(args[package]))
      return false;
  }
  if (package == args.size()) return runner.origin.empty();
  if (!runner.origin.empty() && !begins_with_one_of(runner.origin, args[package])) return false;
  return !is_relative_path(args[package], Text::package) &&
         !(looks_like_file(args[package]) && is_relative_path(args[package], Text::word)) &&
         !has_relative_path(args.subspan(package + 1));
}

// Returns the command that a wrapper program runs, with its arguments. Returns an empty list if the
// command is not recognized.
Args behind_starter(const Starter &starter, Args args) {
  const Options options{starter.valued, {}, {}};
  std::size_t at = 0;
  for (std::size_t words = starter.words;; ++at) {
    const std::size_t word = next_word(options, args, at);
    if (has_option(starter.elsewhere, args.subspan(at, word - at))) return {};
    at = word;
    if (at >= args.size()) return {};
    const bool assignment = starter.assigns && args[at].find('=') != std::string::npos;
    if (!assignment && words-- == 0) return args.subspan(at);
  }
}

// Returns the name of the program that a command or argument runs.
std::string_view program_of(std::string_view command) {
  static constexpr std::pair<std::string_view, std::string_view> scripts[] = {
      {"npx-cli.js", "npx"},      {"npm-cli.js", "npm"}, {"pnpm.cjs", "pnpm"},
      {"pnpx.cjs", "pnpx"},       {"yarn.js", "yarn"},   {"yarn.cjs", "yarn"},
      {"corepack.js", "corepack"}};
  const std::string_view name = base_of(command);
  for (const auto &[script, program] : scripts) {
    if (name == script) return program;
  }
  return name.substr(0, name.find('@'));  // corepack accepts a version: "corepack yarn@4 dlx"
}

// Returns true for programs whose command lines are analyzed.
bool is_known(std::string_view name) {
  return is_python(name) ||
         std::any_of(std::begin(starters), std::end(starters),
                     [&](const Starter &starter) { return starter.command == name; }) ||
         std::any_of(std::begin(runners), std::end(runners),
                     [&](const Runner &runner) { return runner.command == name; });
}

// Returns the command behind an unknown program, such as "ionice -c3 npx PACKAGE" or "node
// npx-cli.js PACKAGE". Returns an empty list if there is none, or if an argument before it is a
// relative path or a script.
Args behind_unknown(Args args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (is_known(program_of(args[i]))) {
      return has_relative_path(args.first(i)) ? Args() : args.subspan(i);
    }
    if (!is_option(args[i]) && looks_like_file(args[i])) return {};
  }
  return {};
}

// Returns true if the command line runs a package and does not depend on its working directory.
// Sets `*package` to the number of arguments up to and including the package, or to the number of
// all arguments if they name no package.
bool runs_package(std::string_view command, Args args, std::size_t *package) {
  *package = args.size();
  const auto runs_behind = [&](Args rest) {
    if (rest.empty()) return false;
    const std::size_t before = args.size() - rest.size() + 1;
    const bool alone = runs_package(rest[0], rest.subspan(1), package);
    *package += before;
    return alone;
  };
  const std::string_view name = program_of(command);
  for (const Starter &starter : starters) {
    if (starter.command == name) return runs_behind(behind_starter(starter, args));
  }
  if (is_python(name)) {
    *package = words_of_module(args).value_or(args.size());
    return runs_module_alone(args);
  }
  for (const Runner &runner : runners) {
    if (runner.command != name) continue;
    if (const auto found = find_package(runner, args)) {
      *package = std::min(*found + 1, args.size());
      return runs_package_alone(runner, args, *found);
    }
  }
  return !is_known(name) && runs_behind(behind_unknown(args));
}

}  // namespace

bool starts_in_private_folder(std::string_view command, const std::vector<std::string> &args,
                              std::string_view cwd) {
  std::size_t package = 0;
  return cwd.empty() && runs_package(command, args, &package);
}

std::size_t arguments_of_program(std::string_view command, const std::vector<std::string> &args) {
  std::size_t package = 0;
  runs_package(command, args, &package);
  return package;
}

std::string make_private_folder(const std::string &parent, const std::string &name) {
  if (parent.empty()) return {};
  const std::string path = parent + "/" + name;
  struct stat info{};
  std::error_code error;
  // Does not follow links, because the server may have created a link in the parent folder.
  if (::lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    std::filesystem::remove(path, error);
  }
  if (::mkdir(path.c_str(), 0700) == 0) return path;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};
  for (const auto &entry : std::filesystem::directory_iterator(path, error)) {
    std::error_code ignored;
    std::filesystem::remove_all(entry.path(), ignored);
  }
  return !error && std::filesystem::is_empty(path, error) ? path : std::string();
}

}  // namespace bulkhead
