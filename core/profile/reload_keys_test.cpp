// Tests every profile key: a reload must either apply and report the new value or report that a
// restart is needed.
#include <algorithm>
#include <set>
#include <utility>

#include "layers/canonical.hpp"
#include "layers/profile_test_util.hpp"
#include "profile/difference.hpp"
#include "profile/settings.hpp"

using namespace bulkhead;
using namespace bulkhead::profiles;
using namespace bulkhead::test;

namespace {

constexpr const char *kBase =
    "[policies.rules]\nplugin = \"policy-rules\"\n"
    "[connectors]\nodd = \"connector-http\"\n";

ProfileLayer file(const std::string &text) {
  return {"file", "/etc/b.toml", text};
}

Profile loaded(const std::string &more) {
  return good({file(std::string(kBase) + more)});
}

// Returns the lines that a reload reports when `more` is added to the base profile.
std::vector<std::string> reported(const std::string &more) {
  const Profile now = loaded("");
  Profile next = loaded(more);
  std::vector<std::string> lines = keep_fixed(now, &next);
  const std::vector<std::string> settings = changed_settings(now, next);
  lines.insert(lines.end(), settings.begin(), settings.end());
  return lines;
}

bool names_it(const std::vector<std::string> &lines, const std::string &section,
              const std::string &key) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string &line) {
    return line == section || line == section + "." + key ||
           line.starts_with(section + "." + key + ":");
  });
}

// Returns the known keys of a section, as listed in the error for an unknown key.
std::set<std::string> known_keys(const std::string &section) {
  const std::string text = bad({file("[" + section + "]\nqqqqqqqq = 1\n")}).at(0).what;
  constexpr std::string_view before = "Known keys: ";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  std::set<std::string> out;
  std::string word;
  for (const char c : text.substr(at + before.size()) + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
    } else if (!word.empty() && word != "and" && word != "or") {
      out.insert(std::exchange(word, {}));
    } else {
      word.clear();
    }
  }
  return out;
}

using Values = std::map<std::string, std::string>;

// A non-default value for each key.
const std::map<std::string, Values> &values() {
  static const std::map<std::string, Values> all = {
      {"gateway",
       {{"name", "\"other\""},
        {"metrics_listen", "\"127.0.0.1:9464\""},
        {"unknown_params", "\"refuse\""}}},
      {"naming",
       {{"separator", "\"--\""},
        {"prefix", "\"never\""},
        {"scheme", "\"other\""},
        {"long_names", "\"error\""},
        {"max_length", "60"},
        {"names", "\"strict\""},
        {"bad_names", "\"error\""},
        {"aliases", "{ a = \"b\" }"}}},
      {"expose",
       {{"tools", "false"},
        {"resources", "false"},
        {"prompts", "false"},
        {"logging", "false"},
        {"completions", "false"},
        {"list_changed", "false"},
        {"subscribe", "false"}}},
      {"isolation", {{"mode", "\"require\""}}},
      {"approval", {{"elicitation", "true"}, {"api", "true"}}},
      {"plugin_trust",
       {{"trusted_keys", "[\"RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC\"]"},
        {"require_signatures", "true"},
        {"revoked_keys", "[\"B74A6598CEDFE167\"]"},
        {"revoked_digests", "[\"" + std::string(64, 'a') + "\"]"}}},
      {"pins", {{"mode", "\"enforce\""}, {"new_tools", "\"accept\""}}}};
  return all;
}

// A section with arbitrary member names, an example, and the line that a reload reports for it.
struct Whole {
  std::string section, example, line;
};
const std::vector<Whole> &wholes() {
  static const std::vector<Whole> all = {
      {"plugin_dirs", "plugin_dirs = [\"/p\"]\n", "plugin_dirs"},
      {"state_dir", "state_dir = \"/s\"\n", "state_dir"},
      {"transports", "[transports.t]\nplugin = \"transport-http\"\n", "transports.t"},
      {"policies", "[policies.p]\nplugin = \"policy-allow\"\n", "policies.p"},
      {"telemetry", "[telemetry.t]\nplugin = \"telemetry-sqlite\"\n", "telemetry.t"},
      {"services", "[services.s]\nplugin = \"http-client\"\n", "services.s"},
      {"security", "[security]\ndefault = \"block\"\n", "policies.rules"}};
  return all;
}

}  // namespace

TEST_CASE("a reload reports every changed key of the gateway") {
  for (const auto &[section, keys] : values()) {
    const std::set<std::string> known = known_keys(section);
    for (const std::string &key : known) {
      INFO(section << "." << key << ": what does a reload do with it?");
      const auto value = keys.find(key);
      REQUIRE(value != keys.end());
      CHECK(names_it(reported("[" + section + "]\n" + key + " = " + value->second + "\n"), section,
                     key));
    }
    CHECK(known.size() == keys.size());
  }
}

TEST_CASE("a reload reports every changed limit") {
  for (const Key<Limits> &key : limit_keys()) {
    const std::uint64_t value = std::stoull(key.show(key, Limits{}));
    const std::string other = std::to_string(value > key.least ? value - 1 : value + 1);
    INFO(key.name);
    CHECK(names_it(reported("[limits]\n" + std::string(key.name) + " = " + other + "\n"), "limits",
                   std::string(key.name)));
  }
}

TEST_CASE("a reload reports every plugin whose file has changed, and keeps the running file") {
  const std::string text =
      "[transports.t]\nplugin = \"transport-http\"\n"
      "[telemetry.t]\nplugin = \"telemetry-sqlite\"\n"
      "[services.s]\nplugin = \"http-client\"\n";
  const auto with_mark = [&](const std::string &mark) {
    Profile profile = loaded(text);
    for (auto *uses :
         {&profile.transports, &profile.policies, &profile.telemetry, &profile.services}) {
      for (PluginUse &use : *uses) use.file.mark = mark;
    }
    profile.connector_files["odd"].mark = mark;
    return profile;
  };
  const Profile now = with_mark("old");
  Profile next = with_mark("new");
  const std::vector<std::string> lines = keep_fixed(now, &next);
  CHECK(lines == std::vector<std::string>{"transports.t: file changed; needs a restart",
                                          "policies.rules: file changed; needs a restart; the old "
                                          "version stays in force until then",
                                          "telemetry.t: file changed; needs a restart",
                                          "services.s: file changed; needs a restart",
                                          "connectors.odd: file changed; needs a restart"});
  CHECK(next.transports == now.transports);
  CHECK(next.connector_files == now.connector_files);
  // The profile's plugins were not checked.
  next = with_mark("");
  CHECK(keep_fixed(now, &next).empty());
  // The files cannot be read during the reload, so their marks are empty.
  next = with_mark("");
  PluginUse other;
  other.id = "other";
  other.file.mark = "known";
  next.tools.push_back(std::move(other));
  const std::string lost =
      ": file is missing or not a plugin; the old version runs until a restart";
  CHECK(keep_fixed(now, &next) ==
        std::vector<std::string>{"transports.t" + lost, "policies.rules" + lost,
                                 "telemetry.t" + lost, "services.s" + lost,
                                 "connectors.odd" + lost});
  CHECK(next.policies == now.policies);
  CHECK(next.connector_files == now.connector_files);
  // Files whose state was never known are not reported.
  const Profile unknown = with_mark("");
  next = with_mark("");
  CHECK(keep_fixed(unknown, &next).empty());
}

TEST_CASE(
    "a tools plugin whose file has changed is replaced, or reported if it runs in this process") {
  const auto with_mark = [](const std::string &mark) {
    Profile profile = loaded("[tools.a]\nplugin = \"p\"\n[tools.b]\nplugin = \"p\"\n");
    for (PluginUse &use : profile.tools) use.file.mark = mark;
    return profile;
  };
  const auto is_b = [](const PluginUse &use) { return use.id == "b"; };
  const Profile now = with_mark("old");
  Profile next = with_mark("new");
  CHECK(keep_fixed(now, &next).empty());
  CHECK(keep_files(now.tools, &next.tools, is_b) ==
        std::vector<std::string>{"tools.b: file changed; needs a restart"});
  CHECK(changed_files("tools", now.tools, next.tools) ==
        std::vector<std::string>{"tools.a: file changed; new version runs"});
  CHECK(!same_use(now.tools.at(0), next.tools.at(0)));
  CHECK(next.tools.at(1) == now.tools.at(1));
  next = with_mark("");
  next.tools.at(1).file.mark = "old";
  const std::string lost =
      ": file is missing or not a plugin; the old version runs until a restart";
  CHECK(keep_fixed(now, &next) == std::vector<std::string>{"tools.a" + lost});
  CHECK(next.tools == now.tools);
  // A file that is pinned by a digest has no mark.
  next = with_mark("");
  next.tools.at(0).sha256 = "00";
  next.tools.at(1).file.mark = "old";
  CHECK(keep_fixed(now, &next).empty());
}

TEST_CASE("a reload reports every changed section") {
  std::set<std::string> covered = {"limits"};
  for (const auto &[section, keys] : values()) covered.insert(section);
  for (const Whole &each : wholes()) {
    INFO(each.section);
    // Top-level keys must precede all sections.
    Profile next = good({file(each.example + std::string(kBase))});
    const std::vector<std::string> lines = keep_fixed(loaded(""), &next);
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](const std::string &line) { return line.starts_with(each.line); }));
    covered.insert(each.section);
  }
  Profile next =
      good({file("[policies.rules]\nplugin = \"policy-rules\"\n"
                 "[connectors]\nodd = \"connector-stdio\"\n")});
  CHECK(keep_fixed(loaded(""), &next) ==
        std::vector<std::string>{"connectors.odd: needs a restart"});
  covered.insert("connectors");
  // These sections are not compared here. A reload compares servers and tools plugins individually.
  // [policy], [corp], [profiles] and [default] are read into `policies`. The others control how the
  // files themselves are read.
  for (const auto *section : {"mcpServers", "tools", "policy", "corp", "profiles", "default",
                              "schema", "id", "revision", "editable", "detect_servers"})
    covered.insert(section);
  for (const std::string_view section : section_names()) {
    INFO(section << ": what does a reload do with it?");
    CHECK(covered.contains(std::string(section)));
  }
}
