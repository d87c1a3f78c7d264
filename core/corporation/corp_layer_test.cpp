// Tests the directives in the corporation's layer, and that higher layers cannot override them.
#include <catch2/catch.hpp>

#include "corporation/corp_path.hpp"
#include "corporation/holds.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

const ProfileLayer base = {"builtin", "", R"([policies.default]
plugin = "policy-allow"
with_rules = "judge"
[tools.files]
plugin = "builtin-files"
)"};

ProfileLayer corp(const std::string &text) {
  ProfileLayer layer{"corp", "/etc/b/corp.toml", text};
  layer.corp = true;
  return layer;
}
ProfileLayer file(const std::string &text) {
  return {"file", "/home/u/p.toml", text};
}
ProfileLayer user(const std::string &text) {
  ProfileLayer layer{"user", "/home/u/connectors.json", text};
  layer.lenient = true;
  return layer;
}
std::string directive(const std::string &operation, const std::string &path,
                      const std::string &rest = "") {
  return "[[directives]]\noperation = \"" + operation + "\"\npath = '" + path + "'\n" + rest + "\n";
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
const ServerDef &server(const Profile &profile, std::string_view name) {
  for (const ServerDef &def : profile.servers)
    if (def.name == name) return def;
  FAIL("no server " << name);
  return profile.servers.front();
}

}  // namespace

TEST_CASE("a higher layer may change plain values of the corp layer") {
  const Profile profile =
      good({base, corp("[limits]\ncall_timeout_ms = 1000\nconnect_timeout_ms = 2000\n"),
            file("[limits]\ncall_timeout_ms = 5000\n")});
  CHECK(profile.limits.call_timeout_ms == 5000);
  CHECK(profile.limits.connect_timeout_ms == 2000);
  CHECK(shown(profile, "limits.connect_timeout_ms").origin ==
        Origin{"corp", "/etc/b/corp.toml", 3});
  CHECK(shown(profile, "limits.call_timeout_ms").origin.layer == "file");
}

TEST_CASE("A27 a corp layer server is kept if another layer has a server with the same name") {
  const ProfileLayer theirs = corp("[mcpServers.search]\nurl = \"https://corp.example/mcp\"\n");
  const Profile profile = good(
      {base, theirs,
       user(
           R"({"mcpServers": {"search": {"url": "https://user.example/"}, "own": {"command": "a"}}})"),
       file("[mcpServers.search]\nurl = \"https://file.example/\"\nenabled = false\n")});
  CHECK(names(profile) == "search own");
  CHECK(server(profile, "search").url == "https://corp.example/mcp");
  CHECK_FALSE(server(profile, "search").disabled);
  CHECK(server(profile, "search").origin.layer == "corp");
  CHECK(has(notes(profile),
            "/home/u/p.toml:1: mcpServers.search is skipped: the corporation's "
            "profile has a server or tools plugin with that name (/etc/b/corp.toml:1)"));
  CHECK(has(notes(profile), "connectors.json:1"));
  // If the corp layer defines a server, no other layer can define a tools plugin with the same
  // name, and vice versa.
  CHECK(good({base, theirs, file("[tools.search]\nplugin = \"builtin-http\"\n")}).tools.size() ==
        1);
  const Profile tools = good({base, corp("[tools.web]\nplugin = \"builtin-http\"\n"),
                              file("[mcpServers.web]\ncommand = \"evil\"\n")});
  CHECK(tools.tools.size() == 2);
  CHECK(tools.servers.empty());
}

TEST_CASE("a higher layer cannot change locked values") {
  const auto refused = [](const std::string &path, const std::string &text) {
    return all(bad({base, corp(directive("lock", path, "reason = \"ask IT\"")), file(text)}));
  };
  const std::string whole = refused("limits", "[limits]\ncall_timeout_ms = 5\n");
  CHECK(whole ==
        "/home/u/p.toml:1:2: limits: the corporation's profile locks limits "
        "(/etc/b/corp.toml:1): ask IT [locked]\n");
  CHECK(has(refused("limits.call_timeout_ms", "[limits]\ngrace_ms = 1\ncall_timeout_ms = 5\n"),
            "p.toml:3:1: limits.call_timeout_ms: the corporation's profile locks "));
  CHECK(has(refused("mcpServers.*", "[mcpServers.x]\ncommand = \"a\"\n"), "mcpServers.x: "));
  CHECK(has(refused("servers.x.url", "[mcp_servers.x]\nhttpUrl = \"https://h/\"\n"),
            "mcpServers.x.httpUrl: "));
  CHECK(has(refused("mcpServers.*.sandbox", "[mcpServers.x]\ncommand = \"a\"\nsandbox = \"off\"\n"),
            "p.toml:3:1: mcpServers.x.sandbox: "));
  CHECK(has(refused("policy", "[policy]\nplugin = \"mine\"\n"), "policies.policy: "));
  CHECK(has(refused("plugin_dirs", "plugin_dirs = [\"/x\"]\n"), "plugin_dirs: "));
  CHECK(has(refused("security.rules.mcp.*.priority",
                    "[security.rules.mcp.a]\non = \"mcp.request\"\npriority = 1\n"),
            "security.rules.mcp.a.priority: "));
  CHECK(has(refused("security.default", "[security.capabilities]\nmcp_tools = \"allow\"\n"),
            "security.capabilities.mcp_tools: "));
  CHECK(has(refused("security.capabilities.mcp_tools", "[security]\ndefault = \"allow\"\n"),
            "security.default: "));
  CHECK(has(refused("tools.files", "[mcpServers.files]\ncommand = \"a\"\n"), "mcpServers.files: "));
  CHECK(has(refused("tools", "[mcpServers.files]\ncommand = \"a\"\n"), "mcpServers.files: "));
  CHECK(has(refused("mcpServers.x", "[tools.x]\nplugin = \"p\"\n"), "tools.x: "));
  // A lock does not apply to other values.
  CHECK(names(good({base, corp(directive("lock", "mcpServers.*.sandbox")),
                    file("[mcpServers.x]\ncommand = \"a\"\n")})) == "x");
  CHECK(good({base, corp(directive("lock", "limits.call_timeout_ms")),
              file("[limits]\ngrace_ms = 7\n")})
            .limits.grace_ms == 7);
}

TEST_CASE("a lock inside a plugin's table applies even if the whole table is replaced") {
  const std::string text =
      "[transports.http]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:1\"\n" +
      directive("lock", "transports.http.listen");
  const auto with = [&](const std::string &over) {
    return std::vector<ProfileLayer>{base, corp(text), file("[transports.http]\n" + over)};
  };
  CHECK(good(with("path = \"/x\"\n")).transports.size() == 1);
  CHECK(good(with("plugin = \"transport-http\"\npath = \"/x\"\n")).transports.size() == 1);
  CHECK(has(all(bad(with("plugin = \"other\"\n"))), "transports.http: the corporation"));
  CHECK(has(all(bad(with("enabled = false\n"))), "transports.http: the corporation"));
  CHECK(
      has(all(bad(with("listen = \"127.0.0.1:2\"\n"))), "transports.http.listen: the corporation"));
  // The command line is a layer, so the lock applies to it, too.
  CHECK(
      has(all(bad({base,
                   corp(text),
                   {"command line", "--listen", "[transports.http]\nlisten = \"127.0.0.1:2\"\n"}})),
          "--listen:2:1: transports.http.listen: the corporation"));
}

TEST_CASE("a lock on rules applies in all equivalent forms") {
  const std::string texts[] = {
      "[security.rules.mcp.a]\nif = \"true\"\n",
      "[security.servers.a]\nallowed_tools = [\"x\"]\n",
      "[profiles.rules.all]\nmatch = \"has(mcp.method)\"\naction = \"allow\"\n",
      "[default.all]\nmatch = \"has(mcp.method)\"\naction = \"allow\"\n",
  };
  for (const std::string path : {"security", "security.rules", "security.rules.*",
                                 "security.rules.mcp", "security.rules.mcp.*"}) {
    for (const std::string operation : {"lock", "forbid"}) {
      for (const std::string &text : texts) {
        INFO(path << " " << text);
        const auto errors = bad({base, corp(directive(operation, path)), file(text)});
        CHECK(errors.at(0).code == (operation == "lock" ? "locked" : "forbidden"));
      }
    }
  }
  // A lock on one rule does not apply to other rules.
  CHECK(good({base, corp(directive("lock", "security.rules.mcp.b")), file(texts[2])})
            .policies.at(0)
            .plugin == "judge");
  // Locks and forbids on equivalent forms do not conflict with each other. Other directives do.
  good({base, corp(directive("lock", "security.rules") + directive("lock", "profiles") +
                   directive("forbid", "default"))});
  CHECK(has(all(bad({base, corp(directive("lock", "security.rules") +
                                directive("add", "profiles.rules.x", "value = {}"))})),
            "conflicts with an earlier directive"));
}

TEST_CASE("if adding servers is forbidden, so is adding tools plugins") {
  const std::string files = "[tools.files]\nplugin = \"builtin-files\"\npath = \"/x\"\n";
  for (const std::string path : {"mcpServers", "mcpServers.*"}) {
    const ProfileLayer locked = corp(
        "[mcpServers.ours]\ncommand = \"a\"\n[tools.web]\n"
        "plugin = \"builtin-http\"\n" +
        directive("lock", path));
    CHECK(has(all(bad({base, locked, file("[tools.evil]\nplugin = \"/home/u/e.so\"\n")})),
              "p.toml:1:8: tools.evil: the corporation's profile locks mcpServers"));
    CHECK(has(all(bad({base, locked, file("[tools.files]\nplugin = \"/home/u/e.so\"\n")})),
              "tools.files: the corporation's profile locks mcpServers"));
    // The lock does not prevent existing tools plugins from being configured.
    CHECK(good({base, locked, file(files)}).tools.size() == 2);
    CHECK(names(good({base, locked})) == "ours");
  }
  CHECK(good({base, corp(directive("lock", "mcpServers.*.sandbox")),
              file("[tools.more]\nplugin = \"p\"\n")})
            .tools.size() == 2);
}

TEST_CASE("the profile reports corporation holds on servers, but not user holds") {
  const Profile profile =
      good({base,
            corp(directive("lock", "mcpServers.*.sandbox") + directive("lock", "limits") +
                 "[mcpServers.search]\nurl = \"https://corp.example/\"\n"),
            file("[editable]\nmcpServers = false\n")});
  REQUIRE(profile.server_holds.size() == 2);
  CHECK(profile.server_holds[0].path == std::vector<std::string>{"mcpServers", "*", "sandbox"});
  CHECK(profile.server_holds[1].path == std::vector<std::string>{"mcpServers", "search"});
}

TEST_CASE("a server name that the corporation adds is reserved") {
  const ProfileLayer theirs =
      corp(directive("add", "mcpServers.search", "value = { url = \"https://corp.example/\" }"));
  const Profile profile = good({base, theirs, file("[tools.search]\nplugin = \"p\"\n")});
  CHECK(names(profile) == "search");
  CHECK(profile.tools.size() == 1);
  CHECK(has(notes(profile), "tools.search is skipped: the corporation's profile has a server"));
}

TEST_CASE("a directive that would remove values from its own file is an error") {
  const std::string rule = "[security.rules.mcp.a]\nif = \"true\"\n";
  for (const std::string operation : {"forbid", "remove"}) {
    for (const std::string path :
         {"security", "security.rules.mcp.*", "security.rules.mcp.a", "security.rules.mcp.a.if"}) {
      CHECK(has(all(bad({base, corp(rule + directive(operation, path))})),
                "which this file defines (/etc/b/corp.toml:"));
    }
    CHECK(has(all(bad({base, corp(directive("add", "mcpServers.a", "value = { command = \"x\" }") +
                                  directive(operation, "mcpServers.*"))})),
              "this would remove mcpServers.a, which this file defines (/etc/b/corp.toml:1); use "
              "\"lock\""));
  }
  good({base, corp(rule + directive("forbid", "security.rules.mcp.b") +
                   directive("forbid", "mcpServers.*") + directive("remove", "profiles"))});
}

TEST_CASE("directives are applied before the keys that control how layers are read") {
  for (const std::string path : {"editable", "editable.mcpServers", "detect_servers"}) {
    for (const std::string operation : {"remove", "forbid"})
      CHECK(
          has(all(bad({base, corp(directive(operation, path))})), "controls how layers are read"));
    for (const std::string operation : {"add", "replace"})
      CHECK(has(all(bad({base, corp(directive(operation, path, "value = false"))})),
                "controls how layers are read"));
  }
  // A locked key keeps its value even if a higher layer uses a format whose default is different.
  ProfileLayer found{"claude", "/home/u/.claude.json",
                     R"({"mcpServers": {"theirs": {"command": "a"}}})"};
  found.detected = true;
  const ProfileLayer v2 = file(
      "schema = \"capsem.profile.v2\"\nversion = 2\nid = \"abc\"\nrevision = \"2026.0131.1\"\n"
      "name = \"n\"\ndescription = \"d\"\nbest_for = \"b\"\nprofile_type = \"coding\"\n"
      "ui = \"coding\"\n[compatibility]\nmin_binary = \"1\"\nguest_abi = \"capsem-guest-v1\"\n"
      "[vm]\n[packages]\n[tools]\n[security]\n");
  const std::string lock = directive("lock", "detect_servers");
  CHECK(names(good({base, found, v2})) == "theirs");
  CHECK(names(good({base, corp(lock), found, v2})).empty());
  CHECK(names(good({base, corp("detect_servers = true\n" + lock), found, v2})) == "theirs");
  CHECK(has(all(bad({base, corp(lock), found, file("detect_servers = true\n")})),
            "detect_servers: the corporation's profile locks"));
  CHECK(has(all(bad({base, corp(directive("lock", "editable")), file("[editable]\n")})),
            "editable: the corporation's profile locks"));
}

TEST_CASE("a corporation profile in another format cannot extend another profile") {
  const std::string text =
      "schema = \"capsem.profile.v2\"\nversion = 2\nid = \"abc\"\nrevision = \"2026.0131.1\"\n"
      "name = \"n\"\ndescription = \"d\"\nbest_for = \"b\"\nprofile_type = \"coding\"\n"
      "ui = \"coding\"\nextends_profile_id = \"acme-base\"\n"
      "[compatibility]\nmin_binary = \"1\"\nguest_abi = \"capsem-guest-v1\"\n"
      "[vm]\n[packages]\n[tools]\n[security]\n";
  CHECK(has(all(bad({base, corp(text)})),
            "/etc/b/corp.toml:10:1: extends_profile_id: the corporation's profile cannot extend "
            "another"));
  good({base, file(text)});
}

TEST_CASE("the corporation's plugin folders are searched before those of other layers") {
  const std::string dirs = "plugin_dirs = [\"/opt/corp\", \"plugins\"]\n";
  const auto of = [&](const std::string &theirs, const std::string &mine) {
    return good({base, corp(theirs), file(mine)}).plugin_dirs;
  };
  using List = std::vector<std::string>;
  CHECK(of(dirs, "plugin_dirs = [\"/home/u/p\", \"q\"]\n") ==
        List{"/opt/corp", "/etc/b/plugins", "/home/u/p", "/home/u/q"});
  CHECK(of(dirs, "plugin_dirs = []\n") == List{"/opt/corp", "/etc/b/plugins"});
  CHECK(of(dirs, "") == List{"/opt/corp", "/etc/b/plugins"});
  CHECK(of("", "plugin_dirs = [\"q\"]\n") == List{"/home/u/q"});
  CHECK(of(dirs + directive("replace", "plugin_dirs", "value = [\"/only\"]"),
           "plugin_dirs = [\"q\"]\n") == List{"/only"});
}

TEST_CASE("other layers cannot weaken the corporation's requirements for plugins") {
  const std::string ours = "RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC";
  const std::string theirs = "RWTK6UxCx1h7lO6LhrQ6FOGv0S9HleIjapLwfrFkKrXKYuOCGyo4FlxQ";
  const std::string mine =
      "[plugin_trust]\ntrusted_keys = [\"" + theirs + "\"]\nrequire_signatures = false\n";
  using List = std::vector<std::string>;
  const auto trust = [&](const std::string &above, const std::string &below) {
    return good({base, corp(above), file(below)});
  };
  Profile both =
      trust("[plugin_trust]\ntrusted_keys = [\"" + ours + "\"]\nrequire_signatures = true\n", mine);
  CHECK(both.plugin_trust.trusted_keys == List{ours});
  CHECK(both.plugin_trust.require_signatures);
  REQUIRE(both.notes.size() == 2);
  CHECK(has(both.notes[0] + both.notes[1],
            "plugin_trust.trusted_keys is skipped: the corporation's profile defines it"));
  // Only one of the keys is given.
  Profile required = trust("[plugin_trust]\nrequire_signatures = true\n", mine);
  CHECK(required.plugin_trust.require_signatures);
  CHECK(required.plugin_trust.trusted_keys.empty());
  Profile keys = trust("[plugin_trust]\ntrusted_keys = [\"" + ours + "\"]\n",
                       "[plugin_trust]\nrequire_signatures = true\ntrusted_keys = []\n");
  CHECK(keys.plugin_trust.require_signatures);
  CHECK(keys.plugin_trust.trusted_keys == List{ours});
  // Without requirements of the corporation, a user's keys apply.
  CHECK(trust("", mine).plugin_trust.trusted_keys == List{theirs});
  CHECK(has(all(bad({base, corp(directive("lock", "plugin_trust")), file(mine)})),
            "plugin_trust: the corporation's profile locks"));
}

TEST_CASE("the revocations of all layers apply") {
  const std::string a(64, 'a'), b(64, 'b');
  const Profile profile =
      good({base,
            corp("[plugin_trust]\nrevoked_keys = [\"B74A6598CEDFE167\"]\nrevoked_digests = [\"" +
                 a + "\"]\n"),
            file("[plugin_trust]\nrevoked_keys = []\nrevoked_digests = [\"" + b + "\", \"" + a +
                 "\"]\n")});
  using List = std::vector<std::string>;
  CHECK(profile.plugin_trust.revoked_keys == List{"B74A6598CEDFE167"});
  CHECK(profile.plugin_trust.revoked_digests == List{a, b});
}

TEST_CASE("forbidden values are removed, and setting them is an error") {
  const ProfileLayer no = corp(directive("forbid", "mcpServers.shell", "reason = \"no shells\"") +
                               directive("forbid", "tools.files"));
  const Profile profile = good({base, no});
  CHECK(profile.tools.empty());
  CHECK(has(all(bad({base, no, file("[mcpServers.shell]\ncommand = \"sh\"\n")})),
            "p.toml:1:13: mcpServers.shell: the corporation's profile forbids mcpServers.shell "
            "(/etc/b/corp.toml:1): no shells [forbidden]"));
  // In a tolerant layer, the value is dropped instead of causing an error.
  const Profile given = good({base, no, user(R"({"servers": {"shell": {"command": "sh"}}})")});
  CHECK(given.servers.empty());
  CHECK(has(notes(given), "mcpServers.shell is skipped: the corporation's profile forbids"));
  ProfileLayer project{"project", "/repo/.mcp.json",
                       R"({"mcpServers": {"shell": {"command": "sh"}}})"};
  project.project = true;
  CHECK(good({base, no, project}).servers.empty());
}

TEST_CASE("add, replace and remove are applied after all layers are merged") {
  const Profile profile = good(
      {base,
       corp(directive("add", "mcpServers.search", "value = { url = \"https://corp.example/\" }") +
            directive("replace", "limits.call_timeout_ms", "value = 1500\nreason = \"short\"") +
            directive("replace", "limits.grace_ms", "value = 1") +
            directive("remove", "mcpServers.old") + directive("remove", "mcpServers.absent")),
       file("[limits]\ncall_timeout_ms = 9000\n[mcpServers.old]\ncommand = \"a\"\n"
            "[mcpServers.search]\ncommand = \"b\"\n")});
  CHECK(names(profile) == "search");
  CHECK(server(profile, "search").url == "https://corp.example/");
  CHECK(profile.limits.call_timeout_ms == 1500);
  CHECK(profile.limits.grace_ms == Limits{}.grace_ms);
  CHECK(shown(profile, "limits.call_timeout_ms").origin == Origin{"corp", "/etc/b/corp.toml", 8});
  CHECK(shown(profile, "directives[1]").value ==
        "replace limits.call_timeout_ms: replaced /home/u/p.toml:2 (short)");
  CHECK(shown(profile, "directives[2]").value == "replace limits.grace_ms: nothing to replace");
  CHECK(shown(profile, "directives[3]").value == "remove mcpServers.old: removed /home/u/p.toml:3");
  CHECK(shown(profile, "directives[4]").value == "remove mcpServers.absent: nothing to remove");
  CHECK(has(notes(profile),
            "p.toml:2: limits.call_timeout_ms is replaced by the corporation's "
            "profile (/etc/b/corp.toml:5): short"));
  CHECK(has(notes(profile), "p.toml:3: mcpServers.old is removed by"));
  CHECK(has(all(bad({base, corp(directive("add", "tools.files.path", "value = \"/x\"") +
                                directive("add", "tools.files.plugin", "value = \"x\""))})),
            "tools.files.plugin: already exists"));
}

TEST_CASE("directives apply to the rules of all layers") {
  const std::string rule = "[security.rules.mcp.a]\nif = \"true\"\n";
  const auto rules = [&](const std::string &directives) {
    return good({base, corp(directives), file(rule)}).policies.at(0).config_json;
  };
  CHECK(has(rules(directive("remove", "profiles")), R"("layer":"file")"));
  const std::string removed = rules(directive("remove", "security.rules.mcp.a"));
  CHECK_FALSE(has(removed, R"("if")"));
  CHECK(good({base, corp(directive("remove", "security")), file(rule)}).policies.at(0).plugin ==
        "policy-allow");
  const std::string replaced =
      rules(directive("replace", "security.rules.mcp.a", "value = { if = \"false\" }"));
  CHECK(has(
      replaced,
      R"("layer":"corp","file":"/etc/b/corp.toml","sections":{"security":{"rules":{"mcp":{"a":{"if":"false"}}}}})"));
  CHECK_FALSE(has(replaced, R"("if":"true")"));
  const std::string added =
      rules(directive("add", "security.rules.mcp.b", "value = { if = \"1\" }"));
  CHECK(has(added, R"({"b":{"if":"1"}})"));
  CHECK(added.find("corp") < added.find("\"file\",\"file\""));
}

TEST_CASE("if the corporation has rules, it controls the policy") {
  const ProfileLayer rules = corp("[security]\ndefault = \"block\"\n");
  CHECK(good({base, rules}).policies.at(0).plugin == "judge");
  // Changes to existing entries are dropped.
  for (const std::string text :
       {"[policies.default]\nplugin = \"policy-allow\"\n", "[policies.default]\nenabled = false\n",
        "[policies.default]\nwith_rules = \"policy-allow\"\n"}) {
    const Profile profile = good({base, rules, file(text)});
    REQUIRE(profile.policies.size() == 1);
    CHECK(profile.policies[0].plugin == "judge");
    CHECK(has(notes(profile),
              "policies.default is skipped: the corporation's profile has rules, policies or "
              "directives for them "
              "(/etc/b/corp.toml:1), so only that profile can define policies"));
    // If the section is locked, a change is an error.
    const ProfileLayer locked =
        corp("[security]\ndefault = \"block\"\n" + directive("lock", "policies"));
    CHECK(has(all(bad({base, locked, file(text)})), "the corporation's profile locks policies"));
  }
  // Adding a policy is an error.
  for (const std::string text :
       {"[policies.mine]\nplugin = \"mine\"\n", "[policy]\nplugin = \"policy-allow\"\n"}) {
    CHECK(has(all(bad({base, rules, file(text)})),
              "the corporation's profile has rules, policies or directives for them "
              "(/etc/b/corp.toml:1), so only that "
              "profile can define policies [locked]"));
  }
  // A change to a service that the policy uses is dropped, too.
  const std::string service = "[services.http]\nplugin = \"/home/u/x.so\"\n";
  const ProfileLayer base_http = {"builtin", "",
                                  base.text + "[services.http]\nplugin = \"http-client\"\n"};
  const Profile kept = good({base_http, rules, file(service)});
  CHECK(kept.services.at(0).plugin == "http-client");
  CHECK(
      has(notes(kept),
          "services.http is skipped: the corporation's profile has rules, policies or directives "
          "for them "
          "(/etc/b/corp.toml:1), so only that profile can define the services that policies use"));
  CHECK(has(
      all(bad({base, rules, file(service)})),
      "p.toml:1:2: services: the corporation's profile has rules, policies or directives for them "
      "(/etc/b/corp.toml:1), so only that profile can define the services that policies use "
      "[locked]"));
  CHECK(has(all(bad({base, corp("[policies.pdp]\nplugin = \"policy-http\"\n"), file(service)})),
            "services: "));
  CHECK(good({base, corp("[limits]\ngrace_ms = 1\n"), file(service)}).services.size() == 1);
  CHECK(good({base, corp("[limits]\ngrace_ms = 1\n"), file("[policy]\nplugin = \"mine\"\n")})
            .policies.at(0)
            .plugin == "mine");
}

TEST_CASE("E05 the corporation's policy value takes precedence over the user's") {
  const std::string mine =
      "[policies.default]\ntool_permissions = { s__t = \"allow\" }\nextra = 1\n";
  const std::string theirs =
      "[policies.default]\nplugin = \"lists\"\ntool_permissions = { s__t = \"block\" }\n";
  const Profile profile = good({base, corp(theirs), file(mine)});
  REQUIRE(profile.policies.size() == 1);
  CHECK(profile.policies[0].plugin == "lists");
  CHECK(profile.policies[0].config_json == R"({"tool_permissions":{"s__t":"block"}})");
  CHECK(has(notes(profile), "p.toml:1: policies.default is skipped: "));
  const std::string lock = directive("lock", "policies.default.tool_permissions");
  CHECK(has(all(bad({base, corp(theirs + lock), file(mine)})),
            "the corporation's profile locks policies.default.tool_permissions"));
}

TEST_CASE("B28 a directive after a conflicting lock is rejected, and so is an invalid directive") {
  const auto refused = [](const std::string &text) { return all(bad({base, corp(text)})); };
  CHECK(refused(directive("lock", "mcpServers.a") +
                directive("replace", "mcpServers.a.url", "value = \"https://x/\"")) ==
        "/etc/b/corp.toml:5:1: directives[1]: replace mcpServers.a.url conflicts with an earlier "
        "directive: the "
        "corporation's profile locks mcpServers.a (/etc/b/corp.toml:1) [locked]\n");
  CHECK(has(refused(directive("forbid", "tools") + directive("lock", "tools.x")), "[forbidden]"));
  CHECK(has(refused(directive("lock", "limits.grace_ms") + directive("remove", "limits")),
            "[locked]"));
  CHECK(good({base, corp(directive("forbid", "mcpServers.a") + directive("lock", "mcpServers.*"))})
            .servers.empty());
  CHECK(has(refused(directive("allow", "tools")), "allowed: add, remove, replace, lock, forbid"));
  CHECK(has(refused(directive("lock", "mcpserver.x")), "unknown profile section"));
  CHECK(has(refused(directive("remove", "*")), "unknown profile section"));
  CHECK(has(refused(directive("lock", "tools..x")), "not a valid path"));
  std::string many;
  for (int i = 0; i < 200; ++i) many += "[[directives]]\noperation = 5\npath = 5\n";
  CHECK(bad({base, corp(many)}).size() == kProfileErrors);
  CHECK(has(refused(directive("lock", "")), "a path must be 1 to 512 bytes long"));
  CHECK(has(refused(directive("lock", "tools", "value = 1")),
            "this operation does not accept \"value\""));
  CHECK(has(refused(directive("add", "tools.x")), "this operation requires \"value\""));
  CHECK(has(refused(directive("add", "tools.*", "value = 1")), "requires a name instead of"));
  CHECK(has(refused(directive("add", "schema.x", "value = 1") + "\nschema = 1"), "corp.toml"));
  CHECK(has(refused(directive("lock", "tools", "because = \"x\"")), "unknown key \"because\""));
  CHECK(has(refused("[[directives]]\npath = \"tools\"\n"),
            "\"operation\" and \"path\" are required"));
  CHECK(has(refused("directives = 1\n"), "expected an array of tables"));
  CHECK(has(all(bad({base, file(directive("lock", "tools"))})),
            "only the corporation's profile can have directives"));
}

TEST_CASE("directive paths are parsed") {
  using namespace bulkhead::profiles;
  std::string why;
  CHECK(parse_corp_path(R"(mcpServers."a.b".url)", &why) == CorpPath{"mcpServers", "a.b", "url"});
  CHECK(parse_corp_path("mcp_servers.*", &why) == CorpPath{"mcpServers", "*"});
  CHECK(parse_corp_path("policy.plugin", &why) == CorpPath{"policies", "policy", "plugin"});
  for (const std::string wrong : {"", ".", "a.", ".a", "a b", "\"a", "\"a\"b", "a.\"\""})
    CHECK_FALSE(parse_corp_path(wrong, &why).has_value());
  CHECK_FALSE(parse_corp_path("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", &why).has_value());
  CHECK(paths_meet({"a", "*"}, {"a", "b", "c"}));
  CHECK(paths_meet({"a"}, {"*"}));
  CHECK_FALSE(paths_meet({"a", "b"}, {"a", "c"}));
  const std::vector<ProfileHold> holds{{{"mcpServers", "*"}, false, "no"}};
  CHECK(find_hold(holds, {"mcpServers", "x"}) == &holds[0]);
  CHECK(find_hold(holds, {"mcpServers"}) == nullptr);
  CHECK(find_hold(holds, {"plugin_dirs"}) == nullptr);
  CHECK(covers({"a"}, {"a", "b"}));
  CHECK_FALSE(covers({"a", "b"}, {"a"}));
}
