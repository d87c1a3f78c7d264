#include "layers/project_screen.hpp"

#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "formats/detected.hpp"
#include "layers/canonical.hpp"
#include "layers/project.hpp"
#include "layers/project_entry.hpp"
#include "profile/server.hpp"
#include "profile/sha256.hpp"

namespace bulkhead::profiles {

namespace {

const Member *member_of(const Node *table, std::string_view name) {
  if (table == nullptr || table->kind != Kind::table) return nullptr;
  for (const Member &member : table->members)
    if (member.name == name) return &member;
  return nullptr;
}

// Makes the working directory absolute, so that it does not depend on the gateway's working
// directory. If a server with a command has none, the file's folder is used.
void resolve_cwd(Member &entry, const std::string &file) {
  Node &server = entry.value;
  bool command = false;
  for (Member &member : server.members) {
    command = command || server_key(member.name) == "command";
    if (server_key(member.name) != "cwd") continue;
    if (member.value.kind == Kind::string) member.value.text = project_cwd(&member.value, file);
    return;
  }
  if (!command) return;
  Member cwd{"cwd", entry.place, Node(Kind::string, entry.place)};
  cwd.value.text = project_cwd(nullptr, file);
  server.members.push_back(std::move(cwd));
}

class Screen {
 public:
  Screen(const ProfileLayer &layer, const Node &below, const std::vector<std::string> &listens,
         Diagnostics &diagnostics)
      : layer_(layer), below_(below), listens_(listens), diagnostics_(diagnostics) {}

  Node use(Node &&root, std::vector<Unapproved> *unapproved) {
    Node out(Kind::table, root.place);
    std::string left_out;
    std::size_t over = 0;
    for (Member &section : root.members) {
      if (section.name != "mcpServers") {
        if (section.name != "schema")
          left_out += (left_out.empty() ? "" : ", ") + printable(section.name);
        continue;
      }
      Member servers{section.name, section.place, Node(Kind::table, section.value.place)};
      for (Member &entry : section.value.members) {
        if (!may_add(entry)) continue;
        const bool used = approved(entry);
        // Each server takes up memory and a line in every list, so the number is limited. Approved
        // servers have a separate limit, so unapproved servers cannot displace them.
        if ((used ? servers.value.members.size() : unapproved->size()) >= kProjectServers) {
          ++over;
          continue;
        }
        if (!used) {
          unapproved->push_back({std::move(entry)});
          continue;
        }
        resolve_cwd(entry, layer_.file);
        servers.value.members.push_back(std::move(entry));
      }
      out.members.push_back(std::move(servers));
    }
    if (over > 0)
      diagnostics_.note(root.place, "a project file can define at most " +
                                        std::to_string(kProjectServers) + " servers; " +
                                        std::to_string(over) + " are skipped");
    if (!left_out.empty())
      diagnostics_.note(root.place, "a project file can define only servers; skipped: " +
                                        printable(left_out, 400));
    return out;
  }

 private:
  // Returns false and adds a note if the server must be dropped. For example, a repository must not
  // replace the user's servers.
  bool may_add(const Member &entry) {
    const std::string name = "server " + in_quotes(entry.name) + " of the project is skipped: ";
    const Member *server = member_of(below_.find("mcpServers"), entry.name);
    const Member *tools = member_of(below_.find("tools"), entry.name);
    if (server != nullptr) {
      diagnostics_.note(entry.place, name + "your profile has a server with that name");
      return false;
    }
    if (tools != nullptr && !is_disabled(tools->value)) {
      diagnostics_.note(entry.place, name + "a tools plugin has the same name");
      return false;
    }
    // A project may define this gateway as a server for clients, but the gateway must not connect
    // to itself.
    if (entry.value.kind == Kind::table && is_this_gateway(entry.value, listens_)) {
      diagnostics_.note(entry.place, name + "it is this gateway");
      return false;
    }
    return true;
  }

  bool approved(const Member &entry) const {
    if (layer_.approved.empty()) return false;
    const std::string text = project_serialisation(entry, layer_.file);
    return text.size() <= kProjectEntryBytes && layer_.approved.contains(sha256_hex(text));
  }

  const ProfileLayer &layer_;
  const Node &below_;
  const std::vector<std::string> &listens_;
  Diagnostics &diagnostics_;
};

// Quotes the text for a shell.
std::string shell_word(std::string_view text) {
  const auto plain = [](char c) {
    return bh::is_letter_or_digit(c) ||
           std::string_view("/._-+:@%,=").find(c) != std::string_view::npos;
  };
  bool all = !text.empty();
  for (const char c : text) all = all && plain(c);
  if (all) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

Node screen_project(Node &&root, const ProfileLayer &layer, const Node &below,
                    const std::vector<std::string> &listens, std::vector<Unapproved> *unapproved,
                    Diagnostics &diagnostics) {
  return Screen(layer, below, listens, diagnostics).use(std::move(root), unapproved);
}

void add_unapproved(const std::vector<Unapproved> &unapproved, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  for (const auto &[entry] : unapproved) {
    const std::string why = refused_name(entry.name, context.profile.naming, false);
    if (!why.empty()) {
      diagnostics.note(entry.place, "server " + in_quotes(entry.name) + " is skipped: " + why);
      continue;
    }
    ServerDef server;
    server.name = entry.name;
    server.type = listed_type(entry.value);
    server.disabled = true;
    server.origin = diagnostics.origin(entry.place);
    server.disabled_reason = std::string(kNotApproved) + "run bulkhead approve --project " +
                             printable(shell_word(server.origin.file), 1000) + " -- " + entry.name;
    diagnostics.note(entry.place,
                     "server " + in_quotes(entry.name) + " is " + server.disabled_reason);
    context.profile.shown.push_back(
        {join("mcpServers", entry.name), "not approved", server.origin});
    context.profile.servers.push_back(std::move(server));
  }
}

}  // namespace bulkhead::profiles
