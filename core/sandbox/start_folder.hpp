// Determines which servers start in a private, empty folder instead of the gateway's working
// directory. A program that runs a package by name (npx, uvx, python -m ...) first searches its
// working directory for the package, for settings that select the package source, and for code to
// load. If the gateway were started in a third-party repository, code from that repository would
// run as one of the user's servers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// Returns true if the server runs a package by name and does not depend on its working directory,
// that is, `cwd` is empty and no argument is a relative path. The recognized commands are npx, npm
// exec, pnpm dlx, yarn dlx, bunx, deno run npm:, uvx, uv tool run, uv run --with, pipx run, dnx,
// python -m and similar (see the table in start_folder.cpp), even if they are run through env,
// nice, corepack or an unknown program (ionice, xvfb-run, node npx-cli.js). The text of shell
// commands (sh -c) is not analyzed.
bool starts_in_private_folder(std::string_view command, const std::vector<std::string> &args,
                              std::string_view cwd);

// Returns the number of arguments that, together with the command, determine which program the
// server runs: those up to and including the package if the server runs a package by name,
// otherwise all of them.
std::size_t arguments_of_program(std::string_view command, const std::vector<std::string> &args);

// Creates the folder `name` in the server's folder `parent`, or empties it if it exists. Returns
// the path of the folder, or an empty string on failure.
std::string make_private_folder(const std::string &parent, const std::string &name);

}  // namespace bulkhead
