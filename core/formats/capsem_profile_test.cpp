// Tests profiles in the format capsem.profile.v2, capsem keys in other profiles, [editable], and
// servers that are detected in the settings of other programs.
#include "formats/capsem_profile.hpp"

#include <catch2/catch.hpp>

#include "corporation/holds.hpp"
#include "formats/extends.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

const ProfileLayer base = {"builtin", "", R"([policies.default]
plugin = "policy-allow"
with_rules = "judge"
[tools.files]
plugin = "builtin-files"
[transports.http]
plugin = "transport-http"
listen = "127.0.0.1:8808"
)"};

// Returns a complete profile. `more` contains additional keys, which precede the tables.
std::string v2(const std::string &tables = "", const std::string &more = "",
               const std::string &id = "acme-coding") {
  return "schema = \"capsem.profile.v2\"\nversion = 2\nid = \"" + id +
         "\"\nrevision = \"2026.0131.1\"\nname = \"n\"\ndescription = \"d\"\nbest_for = \"b\"\n"
         "profile_type = \"coding\"\nui = \"coding\"\n" +
         more +
         "\n[compatibility]\nmin_binary = \"1.0.0\"\nguest_abi = \"capsem-guest-v1\"\n"
         "[vm]\nmemory = 5\n[packages]\n[tools]\n[security]\n" +
         tables;
}
ProfileLayer file(const std::string &text) {
  return {"file", "/home/u/p.toml", text};
}
std::string all(const std::vector<ProfileError> &errors) {
  std::string out;
  for (const ProfileError &error : errors) out += to_string(error) + "\n";
  return out;
}
std::string notes(const Profile &profile) {
  std::string out;
  for (const std::string &note : profile.notes) out += note + "\n";
  return out;
}
std::string refused(const std::string &text) {
  return all(bad({base, file(text)}));
}
const ServerDef &server(const Profile &profile, std::string_view name) {
  for (const ServerDef &def : profile.servers)
    if (def.name == name) return def;
  FAIL("no server " << name);
  return profile.servers.front();
}

const std::string github = R"([mcpServers.github]
command = "github-mcp-server"
args = ["stdio"]
[mcpServers.github.capsem]
enabled = true
editable = true
allowed_tools = ["search_repositories", "get_file_contents"]
)";

}  // namespace

TEST_CASE("B35 a server may have a table of capsem keys in either format") {
  const std::vector<std::string> tools{"search_repositories", "get_file_contents"};
  const Profile ours = good({base, file(github)});
  CHECK(server(ours, "github").allow_tools == tools);
  CHECK(ours.policies.at(0).plugin == "policy-allow");
  CHECK(shown(ours, "mcpServers.github.allowTools[0]").value == "search_repositories");

  const Profile theirs = good({base, file(v2(github))});
  CHECK(server(theirs, "github").allow_tools == tools);
  CHECK(theirs.policies.at(0).plugin == "judge");
  const std::string &rules = theirs.policies.at(0).config_json;
  CHECK(
      has(rules,
          R"("servers":{"github":{"allowed_tools":["search_repositories","get_file_contents"]}})"));
  CHECK(has(rules, R"("capabilities":{"mcp_tools":"ask"})"));
  CHECK(has(notes(theirs), "unsupported sections are skipped: vm"));
  CHECK(theirs.tools.size() == 1);  // the tools section of capsem is not read as plugins
}

TEST_CASE("each capsem key is translated") {
  const auto with = [](const std::string &keys) {
    return file("[mcpServers.a]\ncommand = \"x\"\n[mcpServers.a.capsem]\n" + keys);
  };
  CHECK(server(good({base, with("enabled = false\n")}), "a").disabled);
  CHECK_FALSE(server(good({base, with("allowed_tools = []\n")}), "a").allow_tools.has_value());
  CHECK(has(notes(good({base, with("credential_refs = [\"gh\"]\n")})), "is not supported: pass"));
  const Profile rules =
      good({base, with("[mcpServers.a.capsem.rules.no]\non = \"mcp.request\"\nif = \"1 == 1\"\n")});
  CHECK(
      has(rules.policies.at(0).config_json,
          R"j("a.no":{"on":"mcp.request","if":"mcp.request.server_name == \"a\" && (1 == 1)"})j"));
  CHECK(has(all(bad({base, with("allowed_tool = []\n")})), "did you mean \"allowed_tools\"?"));
  CHECK(has(all(bad({base, with("editable = 1\n")})),
            "mcpServers.a.capsem.editable: expected true or false"));
  CHECK(has(all(bad({base, file("[mcpServers.a]\ncommand = \"x\"\nenabled = true\n"
                                "[mcpServers.a.capsem]\nenabled = false\n")})),
            "duplicates \"enabled\" on line 3"));
  CHECK(has(all(bad({base, file("[mcpServers.a]\ncommand = \"x\"\ntools = [\"t\"]\n"
                                "[mcpServers.a.capsem]\nallowed_tools = [\"u\"]\n")})),
            "duplicates \"tools\""));
  CHECK(has(all(bad({base, file("[mcpServers.a]\ncommand = \"x\"\ncapsem = 5\n")})),
            "expected a table"));
}

TEST_CASE("B36 invalid profiles in the capsem format are rejected") {
  CHECK(has(refused(v2("[vms]\n")), "vms: unknown key \"vms\"; did you mean \"vm\"?"));
  CHECK(has(refused(v2("[mcpServers.a]\ncommand = \"x\"\nurl = \"https://h/\"\n")),
            "mcpServers.a.url: a server can have a command or a url, not both"));
  std::string one = v2();
  one.replace(one.find("version = 2"), 11, "version = 1");
  CHECK(has(refused(one), "version: the supported version is 2, not 1"));
  CHECK(
      has(refused(v2("", "", "Bad_Id")), "id: must have 3 to 64 characters from a-z, 0-9 and '-'"));
  std::string revision = v2();
  revision.replace(revision.find("2026.0131.1"), 11, "1.0");
  CHECK(has(refused(revision), "revision: must have the form YYYY.MMDD.N"));
  CHECK(has(refused("schema = \"capsem.profile.v2\"\n"), "compatibility: this key is required"));
  CHECK(has(refused(v2("[mcpServers.a]\ncommand = \"x\"\ntimeout = 5\n")),
            "mcpServers.a.timeout: unknown key"));
  CHECK(has(refused(v2("[mcp.connectors.a]\n")), "[mcp.connectors] belongs to an older format"));
  CHECK(has(refused(v2("[editable]\nmcpservers = false\n")), "did you mean \"mcpServers\"?"));
  CHECK(has(refused(v2("[security.rule]\n")), "did you mean \"rules\"?"));
  CHECK(has(refused(v2("[security.rules.mpc.x]\n")), "unknown key \"mpc\""));
  std::string type = v2();
  type.replace(type.find("\"coding\""), 8, "\"chess\"");
  CHECK(has(refused(type), "profile_type: unknown value \"chess\""));
  std::string abi = v2();
  abi.replace(abi.find("guest-v1"), 8, "guest-vx");
  CHECK(has(refused(abi), "compatibility.guest_abi: must have the form capsem-guest-vN"));
  CHECK(has(refused(v2("", "directives = []")), "unknown key \"directives\""));
}

TEST_CASE("only the MCP part of the security section is used") {
  const Profile profile = good(
      {base,
       file(
           v2("[security.capabilities]\nmcp_tools = \"allow\"\nnetwork_egress = \"block\"\n"
              "[security.rules.mcp.a]\nif = \"true\"\n[security.rules.http.b]\nif = \"true\"\n"))});
  const std::string &rules = profile.policies.at(0).config_json;
  CHECK(has(
      rules,
      R"("sections":{"security":{"capabilities":{"mcp_tools":"allow"},"rules":{"mcp":{"a":{"if":"true"}}}}})"));
  CHECK(has(notes(profile), "security.capabilities.network_egress, security.rules.http"));
}

TEST_CASE("B37 profiles can extend other profiles") {
  std::map<std::string, std::string> files;
  const FindProfile find = [&files](const std::string &id) -> Result<ProfileLayer> {
    const auto found = files.find(id);
    if (found == files.end()) return fail(BH_E_NOT_FOUND, "nobody has it");
    return ProfileLayer{"x", "/p/" + id + ".toml", found->second};
  };
  const auto chain = [&](const std::string &id) { return with_ancestors(*find(id), find); };
  const auto extends = [](const std::string &id) { return "extends_profile_id = \"" + id + "\""; };
  files["top-level"] =
      v2("[mcpServers.a]\ncommand = \"one\"\nargs = [\"x\", \"y\"]\n"
         "pool_safe_tools = [\"r\", \"s\"]\n[mcpServers.a.env]\nA = \"1\"\nB = \"1\"\n"
         "[mcpServers.a.capsem]\nallowed_tools = [\"r\"]\n"
         "[mcpServers.old]\ncommand = \"old\"\n",
         "", "top-level");
  files["mid-level"] =
      v2("[mcpServers.a]\ncommand = \"two\"\n[mcpServers.a.env]\nB = \"2\"\n"
         "[mcpServers.a.capsem]\nallowed_tools = [\"s\", \"r\"]\n",
         extends("top-level"), "mid-level");
  files["low-level"] =
      v2("[mcpServers.a]\nargs = [\"y\", \"z\"]\npool_safe_tools = [\"s\", \"t\"]\n",
         extends("mid-level") + "\nextends_profile_revision = \"2026.0131.1\"", "low-level");
  auto three = chain("low-level");
  REQUIRE(three.has_value());
  REQUIRE(three->size() == 3);
  CHECK(three->at(0).file == "/p/top-level.toml");
  CHECK((three->at(0).extended && three->at(1).extended && !three->at(2).extended));
  std::vector<ProfileLayer> layers{base};
  layers.insert(layers.end(), three->begin(), three->end());
  const Profile profile = good(layers);
  CHECK(names(profile) == "a old");
  const ServerDef &a = server(profile, "a");
  CHECK(a.command == "two");
  // Arguments are not combined with those of the parent.
  CHECK(a.args == std::vector<std::string>{"y", "z"});
  CHECK(a.pool_safe_tools == std::vector<std::string>{"r", "s", "t"});
  CHECK(a.env == std::map<std::string, std::string>{{"A", "1"}, {"B", "2"}});
  CHECK(a.allow_tools == std::vector<std::string>{"r", "s"});
  CHECK(shown(profile, "mcpServers.a.command").origin.file == "/p/mid-level.toml");
  CHECK(shown(profile, "mcpServers.old.command").origin.file == "/p/top-level.toml");
  CHECK(shown(profile, "id").value == "low-level");

  const auto why = [&](const std::string &id) {
    const auto made = chain(id);
    return made ? std::string("accepted") : to_string(made.error());
  };
  files["loop-one"] = v2("", extends("loop-two"), "loop-one");
  files["loop-two"] = v2("", extends("loop-one"), "loop-two");
  CHECK(has(why("loop-one"),
            "/p/loop-two.toml:10:22: extends_profile_id: the profile extends itself"));
  files["lost"] = v2("", extends("nobody"), "lost");
  CHECK(has(why("lost"), "the profile \"nobody\" was not found: nobody has it"));
  files["liar"] = v2("", "", "other");
  files["deceived"] = v2("", extends("liar"), "deceived");
  CHECK(has(why("deceived"), "is not a capsem.profile.v2 profile with the id \"liar\""));
  files["late"] =
      v2("", extends("top-level") + "\nextends_profile_revision = \"2026.0131.2\"", "late");
  CHECK(has(why("late"), "revision 2026.0131.2 of \"top-level\" is required, but"));
  for (int i = 1; i <= 9; ++i)
    files["chain-" + std::to_string(i)] = v2(
        "", i == 1 ? "" : extends("chain-" + std::to_string(i - 1)), "chain-" + std::to_string(i));
  CHECK(chain("chain-8")->size() == 8);
  CHECK(has(why("chain-9"), "more than 8 profiles in a chain"));
  // A layer that is unreadable or in another format is returned by itself; load_profile() reports
  // its errors.
  CHECK(with_ancestors(file("extends_profile_id = \"top-level\"\n"), find)->size() == 1);
  CHECK(with_ancestors(file("no TOML"), find)->size() == 1);
}

TEST_CASE("B39 programs cannot add servers if mcpServers is not editable") {
  const std::string fixed = "[editable]\nmcpServers = false\n";
  ProfileLayer user{"user", "/u/connectors.json",
                    R"({"mcpServers": {"theirs": {"command": "x"}}})"};
  user.lenient = true;
  ProfileLayer project{"project", "/r/.mcp.json", R"({"mcpServers": {"repo": {"command": "x"}}})"};
  project.project = true;
  const std::vector<ProfileLayer> layers{base, user, file(fixed + github), project};
  std::vector<ProfileHold> holds;
  const auto loaded = load_profile(layers, environment(), &holds);
  const Profile &profile = std::get<Profile>(loaded);
  CHECK(names(profile) == "github");
  CHECK(has(notes(profile),
            "server \"theirs\" is skipped: editable.mcpServers is false "
            "(/home/u/p.toml:2)"));
  CHECK(has(notes(profile), "server \"repo\" is skipped"));
  REQUIRE(find_hold(holds, {"mcpServers", "new"}) != nullptr);
  CHECK(has(find_hold(holds, {"mcpServers", "new"})->says, "editable.mcpServers is false"));
  CHECK(find_hold(holds, {"limits"}) == nullptr);
  CHECK(names(good({base, user, file(github), project})) == "theirs github repo");
  // If the corporation's layer locks mcpServers, the user's file cannot add servers.
  ProfileLayer corp{"corp", "/c.toml", fixed + "[mcpServers.ours]\ncommand = \"x\"\n"};
  corp.corp = true;
  CHECK(names(good({base, corp, user})) == "ours");
  CHECK(has(all(bad({base, corp, file(github)})),
            "mcpServers: editable.mcpServers is false in the corporation's profile (/c.toml:2) "
            "[locked]"));
  corp.text = "[editable]\nsecurity_capabilities = false\n";
  CHECK(has(all(bad({base, corp, file("[security]\ndefault = \"allow\"\n")})), "[locked]"));
}

TEST_CASE(
    "A28 servers of other programs are detected if a profile enables it and servers may be added") {
  const auto detected = [](const std::string &name, const std::string &text) {
    ProfileLayer layer{name, "/home/u/." + name + "/settings.json", text};
    layer.detected = layer.lenient = true;
    return layer;
  };
  const ProfileLayer gemini = detected(
      "gemini",
      R"({"theme": "x", "mcpServers": {"g": {"command": "g"}, "both": {"command": "g"}}})");
  const ProfileLayer claude =
      detected("claude", R"({"mcpServers": {"c": {"url": "https://c/"}, "both": {"command": "c"},
        "mine": {"command": "c"}, "files": {"command": "c"}, "self": {"command": "/x/bulkhead"},
        "again": {"url": "http://localhost:8808/mcp"}, "broken": {"command": "a", "url": "https://x/"}}})");
  const auto with = [&](const std::string &text) {
    return good({base, gemini, claude, file("[mcpServers.mine]\ncommand = \"m\"\n" + text)});
  };
  const auto top = [&](const std::string &text) {
    return good({base, gemini, claude, file(text + "[mcpServers.mine]\ncommand = \"m\"\n")});
  };
  CHECK(names(with("")) == "mine");
  CHECK(with("").notes.empty());
  const Profile profile = top("detect_servers = true\n");
  CHECK(names(profile) == "g both c mine broken");
  CHECK(server(profile, "g").origin.layer == "gemini");
  CHECK(server(profile, "both").origin.layer == "claude");
  CHECK(server(profile, "mine").command == "m");
  CHECK(server(profile, "broken").disabled);
  CHECK(has(notes(profile), "server \"files\" is skipped: a tools plugin has the same name"));
  CHECK(has(notes(profile), "server \"self\" is skipped: it is this gateway"));
  CHECK(has(notes(profile), "server \"again\" is skipped: it is this gateway"));
  CHECK(names(top("detect_servers = true\n[editable]\nmcpServers = false\n")) == "mine");
  // In the capsem format, detect_servers is on by default.
  CHECK(names(good({base, gemini, file(v2())})) == "g both");
  CHECK(names(good({base, gemini, file(v2("[editable]\nmcpServers = false\n"))})).empty());
  CHECK(names(good({base, gemini, file(v2("", "detect_servers = false"))})).empty());
  // If the settings of another program are unreadable, a note is added.
  const Profile broken = good({base, detected("claude", "{"), file("detect_servers = true\n")});
  CHECK(has(notes(broken), "settings.json: its servers are skipped: "));
}
