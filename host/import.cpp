// import: what other programs have configured, shown, or written as a profile.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "commands.hpp"
#include "console.hpp"
#include "mcp/scan.hpp"
#include "paths.hpp"
#include "profile/load.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

std::string as_table(const std::vector<FoundConfig> &found) {
  Table table({"CLIENT", "FILE", "SERVER", "COMMAND"});
  for (const auto &config : found) {
    std::string file = printable(tilde(config.file));
    if (!config.other_project.empty()) {
      file += " of " + printable(tilde(config.other_project));
    }
    if (!config.error.empty()) {
      table.add({config.client, file, "not read: " + printable(config.error), ""});
    }
    for (std::size_t i = 0; i < config.servers.size(); ++i) {
      table.add({config.client, file, printable(config.servers[i]),
                 first_line(printable(config.commands[i]), 100)});
    }
  }
  return table.str();
}

std::string as_json(const std::vector<FoundConfig> &found,
                    const std::vector<std::string> &secrets) {
  std::string out = R"({"configs":[)";
  for (const auto &config : found) {
    if (!out.ends_with('[')) out += ',';
    out += R"({"client":)";
    mcp::append_quoted(&out, config.client);
    out += R"(,"file":)";
    mcp::append_quoted(&out, config.file);
    if (!config.other_project.empty()) {
      out += R"(,"project":)";
      mcp::append_quoted(&out, config.other_project);
    }
    out += R"(,"servers":[)";
    for (const auto &name : config.servers) {
      if (!out.ends_with('[')) out += ',';
      mcp::append_quoted(&out, name);
    }
    out += R"(],"error":)";
    mcp::append_quoted(&out, config.error);
    out += '}';
  }
  out += R"(],"secrets":[)";
  for (const auto &secret : secrets) {
    if (!out.ends_with('[')) out += ',';
    mcp::append_quoted(&out, secret);
  }
  return out + "]}\n";
}

// What is shown and not written.
std::string about_projects(const std::vector<FoundConfig> &found) {
  const auto other = [](const FoundConfig &config) { return !config.other_project.empty(); };
  if (std::none_of(found.begin(), found.end(), other)) return {};
  return "\nServers of other projects are not written. To write those of one, run import in its "
         "folder.\n";
}

// Writes beside the target and renames, so that a profile is there whole or not at all. Without
// `force`, a file that exists is left alone.
Result<void> write_private(const std::string &path, std::string_view text, bool force) {
  const std::string dir = path.substr(0, path.find_last_of('/') + 1);
  if (!dir.empty() && ::access(dir.c_str(), F_OK) != 0) {
    if (auto made = make_private_dir(dir.substr(0, dir.size() - 1)); !made) return made;
  }
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return fail(BH_E_INTERNAL, describe_errno(beside, errno));
  bool good = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  good = ::fsync(fd) == 0 && good;
  good = ::close(fd) == 0 && good;
  // link() refuses an existing target, rename() replaces it.
  good = good && (force ? ::rename(beside.c_str(), path.c_str())
                        : ::link(beside.c_str(), path.c_str())) == 0;
  const int error = errno;
  ::unlink(beside.c_str());
  if (good) return {};
  if (error == EEXIST) return fail(BH_E_INTERNAL, path + ": exists already; --force overwrites it");
  return fail(BH_E_INTERNAL, describe_errno(path, error));
}

}  // namespace

int run_import(const Arguments &arguments) {
  std::array<char, 4096> buffer;
  const char *cwd = ::getcwd(buffer.data(), buffer.size());
  const auto found = find_client_configs(home_dir(), cwd != nullptr ? cwd : "/", arguments.folder);
  std::vector<std::string> secrets;
  const std::string profile = import_profile(found, &secrets);
  if (!arguments.write_to.empty()) {
    if (auto done = write_private(arguments.write_to, profile, arguments.force); !done) {
      return complain(done.error().text);
    }
  }
  if (arguments.json) return write_stdout(as_json(found, secrets)) ? exit_ok : exit_failed;
  std::string out =
      found.empty() ? "No client on this machine has MCP servers configured.\n" : as_table(found);
  if (!arguments.write_to.empty()) {
    out += "\nWritten: " + printable(arguments.write_to) + "\n";
  } else if (!found.empty()) {
    out += "\nTo use them:  bulkhead import --write " + tilde(default_config_file()) +
           (arguments.folder ? " --folder\n" : "\n");
  }
  out += about_projects(found);
  if (!secrets.empty()) {
    out +=
        "\nValues that look like credentials are not copied; look the profile over for others.\n"
        "Export these before `bulkhead serve`:\n";
    for (const auto &secret : secrets) out += "  " + printable(secret) + "\n";
  }
  return write_stdout(out) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
