// Implements `approve` and `revoke` for servers defined in project files.
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "approve/approve_text.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "gateway/local_session.hpp"
#include "gateway/run_host.hpp"
#include "mcp/scan.hpp"
#include "profile/layer.hpp"
#include "service/control_client.hpp"
#include "sources/approval_store.hpp"
#include "sources/project_file.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view no_file =
    "no project file (.bulkhead.toml or .mcp.json) in the working directory; use --project FILE";

// Returns the error for a missing project file. If the only name looks like the ID of an approval
// request, the error names the command that allows a waiting call.
std::string no_file_error(const Arguments &arguments) {
  std::string out(no_file);
  if (arguments.names.size() != 1) return out;
  const std::string &name = arguments.names.front();
  const bool hex = name.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!hex || name.size() < 4 || name.size() > 64) return out;
  return out + "; to allow a waiting call, use `bulkhead approvals allow " + name + "`";
}

bool wanted(const Arguments &arguments, const std::string &name) {
  const auto &names = arguments.names;
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

const Approval *known_of(const std::vector<Approval> &all, const std::string &file,
                         const std::string &server) {
  for (const Approval &approval : all) {
    if (approval.file == file && approval.server == server) return &approval;
  }
  return nullptr;
}

// Returns true if a running gateway of this user has loaded the project file. An empty `file`
// stands for any project file.
bool gateway_uses(const std::string &file) {
  const auto found = ask_gateways(control_dirs(), "GET", "/status", status_wait_ms);
  return std::any_of(found.begin(), found.end(), [&](const FoundGateway &gateway) {
    if (!gateway.error.empty() || !mcp::valid_json(gateway.answer)) return false;
    const std::string used = bh::json::member_text(gateway.answer, "project");
    return file.empty() ? !used.empty() : used == file;
  });
}

// Asks a question on the terminal. Discards input that was typed before the question. Returns true
// for "y", "Y" and "yes".
bool ask(const std::string &question) {
  ::tcflush(STDIN_FILENO, TCIFLUSH);
  write_stdout(question + " [y/N] ");
  std::string answer;
  char c = 0;
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, &c, 1);
    if (n < 0 && errno == EINTR && !stop_requested()) continue;
    if (n <= 0) {
      write_stdout("\n");
      return false;
    }
    if (c == '\n') break;
    if (answer.size() < 16) answer += c;
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

class Approving {
 public:
  Approving(const Arguments &arguments, std::string file, std::vector<ProjectEntry> entries)
      : arguments_(arguments),
        file_(std::move(file)),
        entries_(std::move(entries)),
        asks_(::isatty(STDIN_FILENO) == 1 && stdout_is_terminal() && !arguments.json) {}

  int run() {
    auto content = store_.read();
    if (!content.problem.empty()) complain(content.problem);
    known_ = std::move(content.approvals);
    if (arguments_.json) return run_json();
    std::string head = "Project file " + printable(file_) + "\n";
    if (entries_.empty()) head += "It defines no servers.\n";
    if (!write_stdout(head)) return exit_failed;
    for (const ProjectEntry &entry : entries_) {
      if (!handle(entry)) ++left_;
    }
    return finish();
  }

 private:
  bool approved(const ProjectEntry &entry) const {
    return approval_state(entry, known_of(known_, file_, entry.name)) == ApprovalState::approved;
  }

  // Shows the server and, if it is not approved yet, asks for approval. Returns true if the server
  // is approved afterwards.
  bool handle(const ProjectEntry &entry) {
    if (too_large(entry)) return false;
    write_stdout("\n" + describe_entry(entry, known_of(known_, file_, entry.name)));
    if (!approved(entry)) {
      if (!agreed(entry)) return false;
      if (auto put = store(entry, {}); !put) return complain(put.error().text), false;
      write_stdout("  -> approved\n");
      ++new_;
      warn_if_wrong(entry);
    }
    return !arguments_.tools || look(entry);
  }

  // If the definition is too large to review, prints an error and returns true.
  static bool too_large(const ProjectEntry &entry) {
    if (entry.serialisation.size() <= kProjectEntryBytes) return false;
    complain("server " + verbatim(entry.name) +
             " cannot be approved: its definition is larger than " +
             std::to_string(kProjectEntryBytes) + " bytes");
    return true;
  }

  bool agreed(const ProjectEntry &entry) const {
    if (too_large(entry)) return false;
    if (!arguments_.hash.empty()) {
      std::string hash = arguments_.hash;
      for (char &c : hash)
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
      if (hash == entry.digest) return true;
      complain("server " + verbatim(entry.name) +
               " does not match --hash: its definition has changed");
      return false;
    }
    if (arguments_.yes) return true;
    return asks_ &&
           ask("Approve " + verbatim(entry.name) + "? The server has not been started yet.");
  }

  Result<void> store(const ProjectEntry &entry, const SeenTools &seen) const {
    Approval approval;
    approval.file = file_;
    approval.server = entry.name;
    approval.digest = entry.digest;
    approval.approved_at = bh::unix_s();
    approval.tools = seen.names;
    approval.findings = seen.findings;
    return store_.put(std::move(approval));
  }

  // Prints a warning if a gateway would reject the definition that was just approved.
  void warn_if_wrong(const ProjectEntry &entry) const {
    Arguments arguments = arguments_;
    arguments.project = file_;
    const auto loaded = load_for(arguments, Transports::none);
    if (loaded) return warn_if_unmet(entry, loaded->profile);
    for (const std::string &line : loaded.error()) {
      if (line.find(": mcpServers." + entry.name + ".") == std::string::npos &&
          line.find(": mcpServers." + entry.name + ":") == std::string::npos)
        continue;
      complain("server " + verbatim(entry.name) +
               " is approved, but cannot be used: " + printable(line));
      return;
    }
  }

  static void warn_if_unmet(const ProjectEntry &entry, const Profile &profile) {
    for (const ServerDef &def : profile.servers) {
      if (def.name == entry.name && def.unmet)
        complain("server " + verbatim(entry.name) +
                 " is approved, but cannot be used: " + printable(def.disabled_reason));
    }
  }

  // Starts the approved server once to list its tools. load_for() checks the approval again,
  // because the file may have changed. Returns false if the server is no longer approved
  // afterwards.
  bool look(const ProjectEntry &entry) {
    const auto seen = seen_tools(entry.name);
    if (!seen) {
      complain("cannot list the tools of " + verbatim(entry.name) + ": " + seen.error().text);
      return true;
    }
    write_stdout(describe_tools(*seen));
    if (asks_ && !arguments_.yes && !ask("Keep the approval?")) {
      const auto removed = store_.remove(file_, entry.name);
      if (!removed) complain(removed.error().text);
      write_stdout("  -> not approved\n");
      return false;
    }
    if (auto put = store(entry, *seen); !put) complain(put.error().text);
    return true;
  }

  Result<SeenTools> seen_tools(const std::string &server) const {
    Arguments arguments = arguments_;
    arguments.project = file_;
    auto loaded = load_for(arguments, Transports::none);
    if (!loaded) return fail(BH_E_INVALID, loaded.error().front());
    Profile &profile = loaded->profile;
    const bool used =
        std::any_of(profile.servers.begin(), profile.servers.end(), [&](const ServerDef &def) {
          return def.name == server && def.origin.layer == "project" && !def.disabled;
        });
    if (!used) {
      std::string why = "the server is not in use";
      for (const auto &note : profile.notes)
        if (note.find("\"" + server + "\"") != std::string::npos) why = note;
      return fail(BH_E_NOT_FOUND, why);
    }
    ShortRun::keep_only(profile, server);
    profile.naming.prefix = false;  // shows the server's own tool names
    ShortRun run(arguments);
    if (auto started = run.start(std::move(profile)); !started) {
      return std::unexpected(started.error());
    }
    run.wait_settled();
    for (const auto &status : run.host().status().servers) {
      // A lazy server is idle at this point. The list request starts it.
      if (status.state == ServerState::ready || status.state == ServerState::idle) continue;
      return fail(BH_E_UNAVAILABLE, status.reason);
    }
    LocalSession session(run.host());
    if (auto opened = session.open(); !opened) return fail(BH_E_UNAVAILABLE, opened.error().text);
    auto tools = session.list("tools/list", "tools");
    // A server without tools may return -32601 (method not found).
    if (!tools && mcp::member(tools.error().error_json, "code") == "-32601") tools.emplace();
    if (!tools) return fail(BH_E_UNAVAILABLE, tools.error().text);
    return look_at_tools(*tools);
  }

  int finish() const {
    if (new_ > 0 && gateway_uses(file_)) {
      write_stdout("\nA running gateway uses this file: run `bulkhead reload` to apply this.\n");
    }
    if (left_ == 0) return exit_ok;
    std::string text = "\n" + std::to_string(left_) + " not approved.";
    if (!asks_ && !arguments_.yes && arguments_.hash.empty()) {
      text +=
          " Standard input or output is not a terminal: run this in a terminal, add --yes, or\n"
          "approve a server exactly as shown above with `bulkhead approve --hash SHA256 -- NAME`.";
    }
    write_stdout(text + "\n");
    return exit_failed;
  }

  // Implements --json. It does not prompt, so --yes or --hash is required for approval.
  int run_json() {
    bool all = true;
    for (const ProjectEntry &entry : entries_) {
      if (approved(entry)) continue;
      const bool put = agreed(entry) && store(entry, {}).has_value();
      all = all && put;
    }
    known_ = store_.read().approvals;
    std::string out = R"({"file":)";
    bh::json::append_quoted(&out, file_);
    out += R"(,"servers":[)";
    for (const ProjectEntry &entry : entries_) {
      if (!out.ends_with('[')) out += ',';
      out += entry_json(entry, known_of(known_, file_, entry.name));
    }
    return write_stdout(out + "]}\n") && all ? exit_ok : exit_failed;
  }

  const Arguments &arguments_;
  const std::string file_;
  const std::vector<ProjectEntry> entries_;
  const bool asks_;
  const ApprovalStore store_;
  std::vector<Approval> known_;
  std::size_t left_ = 0, new_ = 0;
};

int list_approvals() {
  const ApprovalStore store;
  const auto content = store.read();
  if (!content.problem.empty()) complain(content.problem);
  Table table({"FILE", "SERVER", ">TOOLS", "FINDINGS"});
  for (const Approval &approval : content.approvals) {
    std::string findings;
    for (const auto &finding : approval.findings) {
      findings += (findings.empty() ? "" : ", ") + printable(finding);
    }
    table.add({printable(tilde(approval.file)), printable(approval.server),
               approval.tools.empty() ? "" : std::to_string(approval.tools.size()),
               first_line(findings, 100)});
  }
  const std::string text = table.empty() ? "No servers are approved.\n" : table.str();
  return write_stdout(text) ? exit_ok : exit_failed;
}

// Returns the entries that the arguments select, or an exit code.
std::variant<std::vector<ProjectEntry>, int> read_entries(const Arguments &arguments,
                                                          const std::string &file) {
  auto layer = read_project_file(file);
  if (!layer) return complain(layer.error().text);
  auto read = read_project(*layer);
  if (const auto *errors = std::get_if<std::vector<ProfileError>>(&read)) {
    std::vector<std::string> lines;
    for (const auto &error : *errors) lines.push_back(to_string(error));
    return report_config_errors(lines);
  }
  auto &all = std::get<std::vector<ProjectEntry>>(read);
  for (const auto &name : arguments.names) {
    const auto has_name = [&](const ProjectEntry &entry) { return entry.name == name; };
    if (std::any_of(all.begin(), all.end(), has_name)) continue;
    std::string text = "the project file has no server " + verbatim(name) + "; its servers:";
    for (const auto &entry : all) text += " " + verbatim(entry.name);
    return complain(text, exit_usage);
  }
  std::erase_if(all, [&](const ProjectEntry &entry) { return !wanted(arguments, entry.name); });
  return std::move(all);
}

}  // namespace

int run_approve(const Arguments &arguments) {
  if (arguments.list) return list_approvals();
  const std::string file = project_file(arguments);
  if (file.empty()) return complain(no_file_error(arguments));
  if (!arguments.hash.empty() && arguments.names.size() != 1) {
    return complain("--hash requires the name of one server", exit_usage);
  }
  auto read = read_entries(arguments, file);
  if (const int *code = std::get_if<int>(&read)) return *code;
  return Approving(arguments, file, std::move(std::get<std::vector<ProjectEntry>>(read))).run();
}

int run_revoke(const Arguments &arguments) {
  const ApprovalStore store;
  const std::string file = arguments.all ? "" : project_file(arguments);
  if (file.empty() && !arguments.all) return complain(no_file);
  std::size_t removed = 0;
  const auto remove = [&](const std::string &server) {
    const auto done = store.remove(file, server);
    if (!done) return complain(done.error().text), false;
    removed += *done;
    if (*done == 0 && !server.empty()) complain("server " + verbatim(server) + " was not approved");
    return *done > 0 || server.empty();
  };
  bool good = true;
  for (const auto &name : arguments.names) good = remove(name) && good;
  if (arguments.names.empty()) good = remove("");
  const std::string text =
      std::to_string(removed) + (removed == 1 ? " approval" : " approvals") + " revoked." +
      (removed > 0 && gateway_uses(file)
           ? " Running gateways keep using these servers until you run `bulkhead reload`.\n"
           : "\n");
  return write_stdout(text) && good ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
