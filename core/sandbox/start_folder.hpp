// Where a server without a configured folder starts. A program that runs a package by its name
// (npx, uvx, python -m ...) looks into the folder that it is started in first: for the package
// itself, for settings that say where packages come from, for code that is loaded beside it. The
// gateway may have been started in a repository of somebody else, whose code would then run in a
// server of the user's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// Whether a server with this definition runs a package by its name and needs nothing of the folder
// that it is started in: npx, npm exec, pnpm dlx, yarn dlx, bunx, deno run npm:, uvx, uv tool run,
// uv run --with, pipx run, dnx, python -m and the like (a table in start_folder.cpp), also behind
// env, nice or corepack, without `cwd` and without an argument that is a relative path. It is
// started in an empty private directory. A command for a shell (sh -c) is not looked into.
bool starts_in_private_folder(std::string_view command, const std::vector<std::string> &args,
                              std::string_view cwd);

// Makes the folder NAME in `parent`, which belongs to the server, and empties it. Empty: it cannot.
std::string make_private_folder(const std::string &parent, const std::string &name);

}  // namespace bulkhead
