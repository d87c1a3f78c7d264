// Implements `profile show`, which prints the effective configuration.
#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

std::string origin_of(const Origin &origin) {
  std::string out = origin.layer;
  if (!origin.file.empty()) out += " " + tilde(origin.file);
  if (origin.line != 0) out += ":" + std::to_string(origin.line);
  return out;
}

std::string as_json(const Profile &profile) {
  std::string out = "[";
  for (const auto &shown : profile.shown) {
    out += out.size() > 1 ? ",\n {" : "\n {";
    bh::json::append_member(&out, "path", shown.path);
    bh::json::append_member(&out, "value", shown.value);
    bh::json::append_member(&out, "layer", shown.origin.layer);
    bh::json::append_member(&out, "file", shown.origin.file);
    bh::json::append_member(&out, "line", shown.origin.line);
    out += '}';
  }
  return out + "\n]\n";
}

std::string as_table(const Profile &profile, bool origin) {
  Table table({"VALUE", "", "ORIGIN"});
  for (const auto &shown : profile.shown) {
    table.add({printable(shown.path), "= " + printable(shown.value),
               origin ? printable(origin_of(shown.origin)) : ""});
  }
  return table.str();
}

}  // namespace

int run_profile_show(const Arguments &arguments) {
  auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  for (const auto &note : loaded->profile.notes) complain(note);
  const bool written = write_stdout(arguments.json ? as_json(loaded->profile)
                                                   : as_table(loaded->profile, arguments.origin));
  return written ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
