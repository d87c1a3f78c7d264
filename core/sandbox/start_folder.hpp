// The start folder of a server without a configured folder. A program that runs a package by name
// (npx, uvx, python -m ...) searches its start folder first: for the package, for settings that
// select the package source, and for code that it loads. If the gateway was started in a
// third-party repository, code of that repository would run as one of the user's servers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// True if the server runs a package by name and needs nothing of its start folder: npx, npm exec,
// pnpm dlx, yarn dlx, bunx, deno run npm:, uvx, uv tool run, uv run --with, pipx run, dnx, python
// -m and similar (table in start_folder.cpp), also after env, nice or corepack, without `cwd` and
// without an argument that is a relative path. Such a server starts in an empty private directory.
// Commands for a shell (sh -c) are not analysed.
bool starts_in_private_folder(std::string_view command, const std::vector<std::string> &args,
                              std::string_view cwd);

// Creates the folder NAME in `parent`, which belongs to the server, or empties it. Returns an
// empty string on failure.
std::string make_private_folder(const std::string &parent, const std::string &name);

}  // namespace bulkhead
