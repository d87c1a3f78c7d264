// Implements `pins`, which lists tool definitions that have changed since they were approved, and
// approves them.
#include <time.h>

#include <algorithm>
#include <utility>

#include "approve/approve_text.hpp"
#include "approve/definition_text.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "command_line/commands.hpp"
#include "commands/reload_text.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/description_audit.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"
#include "sources/profile_source.hpp"
#include "state/pin_store.hpp"

namespace bulkhead::program {
namespace {

std::string_view state_of(const StoredPin &stored) {
  const ToolPin &pin = stored.pin;
  if (pin.approved()) return "approved";
  if (!pin.hash.empty()) return "changed";
  return pin.renamed_from.empty() ? "new" : "renamed";
}

std::string_view mode_name(PinRules::Mode mode) {
  constexpr std::string_view names[] = {"off", "watch", "enforce"};
  return names[static_cast<std::size_t>(mode)];
}

std::string date(std::uint64_t seconds) {
  if (seconds == 0) return "";
  const auto time = static_cast<time_t>(seconds);
  tm parts{};
  char out[32];
  ::localtime_r(&time, &parts);
  return {out, std::strftime(out, sizeof out, "%Y-%m-%d %H:%M", &parts)};
}

std::string json_of(const StoredPin &stored) {
  const ToolPin &pin = stored.pin;
  std::string out = "{";
  const auto add = [&out](std::string_view key, const auto &value) {
    bh::json::append_member(&out, key, value);
  };
  add("server", pin.server);
  add("tool", pin.tool);
  add("state", state_of(stored));
  add("approved", pin.approved());
  add("hash", pin.hash);
  add("seen_hash", pin.seen);
  add("renamed_from", pin.renamed_from);
  add("description", stored.text);
  add("seen_description", stored.seen_text);
  add("first_seen", stored.first_seen);
  add("seen_at", stored.seen_at);
  add("approved_at", stored.approved_at);
  return out + '}';
}

// Returns the JSON for `pins show --json`. In addition to the pin, it contains the definitions
// (each as a string of JSON text, or null if not stored) and their differences.
std::string shown_json_of(const StoredPin &stored) {
  std::string out = json_of(stored);
  out.pop_back();
  const auto add = [&out](std::string_view key, const std::string &json) {
    bh::json::append_member(&out, key, bh::json::Raw{json.empty() ? "null" : json});
  };
  const auto text = [](const std::string &definition) {
    return definition.empty() ? std::string() : bh::json::quoted(definition);
  };
  add("definition", text(stored.definition));
  add("seen_definition", text(stored.seen_definition));
  add("differences", differences_json(stored));
  return out + '}';
}

// Describes one version of a tool, including any suspicious text in it. If `definition` is empty
// (not stored), only the description is checked for suspicious text.
std::string described(std::string_view what, const std::string &hash, const std::string &text,
                      const std::string &definition) {
  if (hash.empty()) return "";
  std::string out = "  " + std::string(what) + " " + hash + "\n    " + verbatim(text) + "\n";
  const auto findings =
      mcp::valid_json(definition) ? mcp::audit_tool(definition) : mcp::audit_text(text);
  for (const std::string_view finding : findings) {
    out += "    possible prompt injection: " + std::string(finding) + "\n";
  }
  return out;
}

constexpr std::size_t min_hash_digits = 8;

bool is_hash_prefix(std::string_view text) {
  return text.size() >= min_hash_digits && text.size() <= 32 && bh::is_lower_hex(text);
}

class PinsCommand {
 public:
  explicit PinsCommand(const Arguments &arguments) : arguments_(arguments) {}

  enum class What : std::uint8_t { list, show, approve, forget };

  int run(What what) {
    Arguments plain = arguments_;
    plain.server.clear();
    auto loaded = load_to_look(plain, Transports::none);
    if (!loaded) return report_config_errors(loaded.error());
    file_ = loaded->file;
    profile_ = std::move(loaded->profile);
    terms_ = pin_terms(profile_);
    PinStore store(profile_.state_dir);
    if (!arguments_.server.empty() && !terms_.files.contains(arguments_.server)) {
      return complain("the profile has no server " + verbatim(arguments_.server), exit_usage);
    }
    if (!arguments_.hash.empty() && arguments_.names.size() != 1) {
      return complain("--hash requires the name of one tool", exit_usage);
    }
    if (!arguments_.hash.empty() && !is_hash_prefix(arguments_.hash)) {
      return complain(
          "--hash requires the hash that `bulkhead pins` prints, or at least its first " +
              std::to_string(min_hash_digits) + " digits (0 to 9 and a to f), not " +
              verbatim(arguments_.hash),
          exit_usage);
    }
    // Before a running gateway sends its status, it stores the definitions that it has received.
    // Request the status so that the store is up to date.
    ask_gateways(control_dirs(), "GET", "/status", status_wait_ms);
    auto all = store.read();
    if (!all) return complain(all.error().text);
    switch (what) {
      case What::list:
        return list(*all);
      case What::show:
        return show(*all);
      case What::approve:
        return approve(store);
      case What::forget:
        return forget(store);
    }
    return exit_usage;
  }

 private:
  // Returns true if the pin belongs to this profile and the arguments select it.
  bool meant(const StoredPin &pin) const {
    const auto at = terms_.files.find(pin.pin.server);
    if (at == terms_.files.end() || at->second != pin.file) return false;
    if (arguments_.server.empty()) return true;
    const auto &names = arguments_.names;
    const bool named =
        names.empty() || std::find(names.begin(), names.end(), pin.pin.tool) != names.end();
    return pin.pin.server == arguments_.server && named;
  }

  int list(const std::vector<StoredPin> &all) const {
    Table table({"SERVER", "TOOL", "STATE", "WAS", "APPROVED", "NOW", "SINCE"});
    std::string json;
    std::size_t approved = 0, others = 0;
    for (const StoredPin &pin : all) {
      if (!meant(pin)) continue;
      ++(pin.pin.approved() ? approved : others);
      json += (json.empty() ? "" : ",") + json_of(pin);
      if (pin.pin.approved() && !arguments_.all) continue;
      table.add({printable(pin.pin.server), first_line(printable(pin.pin.tool), 60),
                 std::string(state_of(pin)), first_line(printable(pin.pin.renamed_from), 40),
                 pin.pin.hash.substr(0, 12), pin.pin.seen.substr(0, 12),
                 date(pin.pin.approved() ? pin.approved_at : pin.seen_at)});
    }
    const std::string mode(mode_name(profile_.pins.mode));
    if (arguments_.json) {
      return write_stdout(R"({"mode":")" + mode + R"(","pins":[)" + json + "]}\n") ? exit_ok
                                                                                   : exit_failed;
    }
    std::string text = table.empty() ? "" : table.str();
    text += std::to_string(approved) + " approved, " + std::to_string(others) +
            " not approved (pins.mode = " + mode + ", " +
            (file_.empty() ? "no profile" : "profile " + printable(tilde(file_))) + ")\n";
    return write_stdout(text) ? exit_ok : exit_failed;
  }

  int show(const std::vector<StoredPin> &all) const {
    std::string text, json;
    for (const StoredPin &pin : all) {
      if (!meant(pin)) continue;
      json += (json.empty() ? "" : ",") + shown_json_of(pin);
      text += verbatim(pin.pin.server) + " " + verbatim(pin.pin.tool) + ": " +
              std::string(state_of(pin));
      if (!pin.pin.renamed_from.empty()) text += " from " + verbatim(pin.pin.renamed_from);
      text += "\n" + described("approved", pin.pin.hash, pin.text, pin.definition) +
              described("now     ", pin.pin.seen, pin.seen_text, pin.seen_definition) +
              describe_definitions(pin);
    }
    if (text.empty()) return complain("no matching pins");
    if (arguments_.json) text = R"({"pins":[)" + json + "]}\n";
    return write_stdout(text) ? exit_ok : exit_failed;
  }

  int approve(PinStore &store) const {
    std::string text;
    bool other = false;
    const auto done = store.update([&](std::vector<StoredPin> &all) {
      // The tools that were renamed: for each of them, the file that defines its server and the
      // tool's old name.
      std::vector<std::pair<std::string, std::string>> former;
      for (StoredPin &pin : all) {
        if (!meant(pin) || pin.pin.approved()) continue;
        if (!pin.pin.seen.starts_with(arguments_.hash)) {
          other = true;
          continue;
        }
        text += "approved " + verbatim(pin.pin.tool) + " " + pin.pin.seen + "\n";
        if (!pin.pin.renamed_from.empty()) former.emplace_back(pin.file, pin.pin.renamed_from);
        pin.pin.hash = std::exchange(pin.pin.seen, {});
        pin.pin.shape = std::exchange(pin.pin.seen_shape, {});
        pin.pin.renamed_from.clear();
        pin.text = std::exchange(pin.seen_text, {});
        pin.definition = std::exchange(pin.seen_definition, {});
        pin.approved_at = bh::unix_s();
      }
      std::erase_if(all, [&](const StoredPin &pin) {
        return pin.pin.server == arguments_.server &&
               std::find(former.begin(), former.end(), std::pair(pin.file, pin.pin.tool)) !=
                   former.end();
      });
      return !text.empty();
    });
    if (!done) return complain(done.error().text);
    if (other) return complain("the tool does not match --hash: its definition has changed again");
    if (text.empty())
      return complain("no such tool is pending approval; `bulkhead pins` lists pending tools");
    return finish(text);
  }

  int forget(PinStore &store) const {
    std::size_t gone = 0;
    const auto done = store.update([&](std::vector<StoredPin> &all) {
      gone = std::erase_if(all, [&](const StoredPin &pin) { return meant(pin); });
      return gone != 0;
    });
    if (!done) return complain(done.error().text);
    if (gone == 0) return complain("no matching pins");
    return finish("deleted " + counted(gone, "pin") + "\n");
  }

  // Reloads the running gateways that have this server, so that they use the stored pins.
  int finish(std::string text) const {
    bool applied = true;
    for (const FoundGateway &gateway :
         ask_gateways(control_dirs(), "GET", "/status", status_wait_ms)) {
      if (!has_server(gateway)) continue;
      const auto done = ask_gateway(gateway.socket, "POST", "/reload-config", reload_wait_ms);
      if (!done) continue;  // the gateway has exited
      const bool answered = done->error.empty() && mcp::valid_json(done->answer);
      text += answered ? describe_reload(*done, {false, arguments_.server})
                       : gateway_name(gateway.socket) + ": " + done->error + "\n";
      applied = applied && answered && done->status == 200;
    }
    if (!write_stdout(text)) return exit_failed;
    if (applied) return exit_ok;
    return complain(
        "the change is stored, but not yet in force in every running gateway: correct the error, "
        "then run `bulkhead reload`");
  }

  bool has_server(const FoundGateway &gateway) const {
    if (!gateway.error.empty() || !mcp::valid_json(gateway.answer)) return false;
    struct Search {
      std::string_view name;
      bool found = false;
    } search{arguments_.server};
    const std::string_view servers = mcp::member(gateway.answer, "servers");
    if (!servers.starts_with('[')) return false;
    mcp::for_each_item(servers, &search, [](void *arg, std::string_view item) {
      auto &to = *static_cast<Search *>(arg);
      std::string scratch;
      const std::string_view name =
          item.starts_with('{') ? mcp::member(item, "name") : std::string_view{};
      to.found = to.found || (name.starts_with('"') && mcp::unquote(name, &scratch) == to.name);
      return true;
    });
    return search.found;
  }

  const Arguments &arguments_;
  std::string file_;  // the profile's file; empty if there is none
  Profile profile_;
  PinTerms terms_;
};

}  // namespace

int run_pins(const Arguments &arguments) {
  return PinsCommand(arguments).run(PinsCommand::What::list);
}
int run_pins_show(const Arguments &arguments) {
  return PinsCommand(arguments).run(PinsCommand::What::show);
}
int run_pins_approve(const Arguments &arguments) {
  return PinsCommand(arguments).run(PinsCommand::What::approve);
}
int run_pins_forget(const Arguments &arguments) {
  return PinsCommand(arguments).run(PinsCommand::What::forget);
}

}  // namespace bulkhead::program
