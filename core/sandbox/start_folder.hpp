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
// that it is started in: npx, npm exec, pnpm dlx, yarn dlx, bunx, bun x, uvx, uv tool run, pipx,
// python -m, without `cwd` and without an argument that is a relative path. It is started in an
// empty private directory.
bool starts_in_private_folder(std::string_view command, const std::vector<std::string> &args,
                              std::string_view cwd);

// Makes the folder NAME in `parent`, which belongs to the server, and empties it. Empty: it cannot.
std::string make_private_folder(const std::string &parent, const std::string &name);

}  // namespace bulkhead
