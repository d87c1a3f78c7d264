#include "formats/detected.hpp"

#include <algorithm>
#include <utility>

#include "formats/own_address.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

void add_words(const Node &value, std::vector<std::string_view> *out) {
  if (value.kind == Kind::string) out->emplace_back(value.text);
  for (const Node &item : value.items)
    if (item.kind == Kind::string) out->emplace_back(item.text);
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
  std::vector<std::string_view> words, args;
  for (const Member &member : server.members) {
    const std::string_view key = server_key(member.name);
    if (key == "args") add_words(member.value, &args);
    if (key == "url" || key == "command") add_words(member.value, &words);
    if (key != "command" || member.value.kind != Kind::table) continue;
    // Zed's old format: command = {path, args, env}.
    if (const Node *path = member.value.find("path")) add_words(*path, &words);
    if (const Node *list = member.value.find("args")) add_words(*list, &args);
  }
  words.insert(words.end(), args.begin(), args.end());
  return bulkhead::is_this_gateway(words, listens);
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
