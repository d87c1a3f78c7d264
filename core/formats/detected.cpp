#include "formats/detected.hpp"

#include <algorithm>
#include <utility>

#include "profile/parse.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

std::string_view last_part(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string_view port_of(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  return colon == std::string_view::npos ? std::string_view() : authority.substr(colon + 1);
}

bool loopback(std::string_view authority) {
  return authority.starts_with("127.") || authority.starts_with("localhost") ||
         authority.starts_with("[::1]");
}

std::string rejection(const Member &entry, const Node *tools,
                      const std::vector<std::string> &listens) {
  if (entry.value.kind == Kind::table && is_this_gateway(entry.value, listens))
    return "it is this gateway";
  if (tools != nullptr && tools->find(entry.name) != nullptr)
    return "a tools plugin has the same name";
  return {};
}

}  // namespace

bool is_this_gateway(const Node &server, const std::vector<std::string> &listens) {
  for (const Member &member : server.members) {
    if (member.value.kind != Kind::string) continue;
    const std::string_view key = server_key(member.name), text = member.value.text;
    if (key == "command" && last_part(text) == "bulkhead") return true;
    const std::size_t scheme = text.find("://");
    if (key != "url" || scheme == std::string_view::npos) continue;
    std::string_view authority = text.substr(scheme + 3);
    authority = authority.substr(0, authority.find_first_of("/?#"));
    if (!loopback(authority)) continue;
    for (const std::string &listen : listens)
      if (!port_of(listen).empty() && port_of(listen) == port_of(authority)) return true;
  }
  return false;
}

bool read_detected(const ProfileLayer &layer, std::uint16_t index, Node *out,
                   Diagnostics &diagnostics) {
  const std::size_t before = diagnostics.count();
  Node root;
  ParseOptions options;
  options.duplicates = true;
  if (!parse_layer(layer, index, options, &root, diagnostics)) {
    std::string why =
        diagnostics.count() > before ? diagnostics.retract_errors(before) : "not readable";
    if (why.starts_with(": ")) why.erase(0, 2);  // an error of the entire file has an empty path
    diagnostics.note({index, 0, 0}, "its servers are skipped: " + why);
    return false;
  }
  *out = Node(Kind::table, root.place);
  for (Member &member : root.members)
    if (member.name == "mcpServers" && member.value.kind == Kind::table)
      out->members.push_back(std::move(member));
  return true;
}

void screen_detected(Node &tree, const Node &below, const std::vector<std::string> &listens,
                     Diagnostics &diagnostics) {
  const Node *tools = below.find("tools");
  for (Member &section : tree.members) {
    std::erase_if(section.value.members, [&](const Member &entry) {
      const std::string why = rejection(entry, tools, listens);
      if (!why.empty())
        diagnostics.note(entry.place, "server " + in_quotes(entry.name) + " is skipped: " + why);
      return !why.empty();
    });
  }
}

void add_listens(const Node &tree, std::vector<std::string> *out) {
  const Node *transports = tree.find("transports");
  if (transports == nullptr) return;
  for (const Member &transport : transports->members) {
    const Node *listen = transport.value.find("listen");
    if (listen != nullptr && listen->kind == Kind::string) out->push_back(listen->text);
  }
}

}  // namespace bulkhead::profiles
