// Fuzzes the loading of profiles. The first byte of the input selects its format: 'j' JSON, 't'
// TOML, 'm' two layers, 'c' a corporate layer below another layer, 'e' a profile and one that
// extends it, 'd' another program's settings below a profile, 's' a signature in minisign's format,
// 'i' the configuration of another client to import, 'p' a project file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "corporation/corp_signature.hpp"
#include "formats/extends.hpp"
#include "formats/import.hpp"
#include "layers/load.hpp"
#include "layers/project.hpp"
#include "rapidjson/document.h"
#include "signing/minisign.hpp"

namespace {

using namespace bulkhead;

// The value of an environment variable. It must never occur in text for the user.
constexpr std::string_view kCanary = "c4n4ry-V4lu3";

void require(bool good, const char *what, std::string_view text = {}) {
  if (good) return;
  std::fprintf(stderr, "broken: %s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

void require_clean(std::string_view text) {
  require(text.find(kCanary) == std::string_view::npos, "a credential is shown", text);
}

ProfileEnvironment environment() {
  ProfileEnvironment out;
  out.home = "/home/u";
  out.getenv = [](const std::string &name) -> std::optional<std::string> {
    if (name.starts_with('A')) return std::string(kCanary);
    return std::nullopt;
  };
  return out;
}

void check_definition(const ServerDef &server) {
  const std::string text = server.to_json();
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      text.data(), text.size());
  require(!document.HasParseError() && document.IsObject(), "the definition is not JSON", text);
  require(!server.name.empty() && server.name.size() <= 64, "a name out of bounds", server.name);
  // A server with an invalid variable is disabled, and has neither a command nor a URL.
  const bool neither = server.command.empty() && server.url.empty();
  const bool both = !server.command.empty() && !server.url.empty();
  require(!both && (!neither || server.disabled), "command and url", text);
}

void check_config(const PluginUse &use) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(use.config_json.data(), use.config_json.size());
  require(!document.HasParseError() && document.IsObject(), "config_json", use.config_json);
}

void load(const std::vector<ProfileLayer> &layers) {
  for (const ProfileLayer &layer : layers)
    if (layer.text.find(kCanary) != std::string::npos)
      return;  // libFuzzer copies constants from comparisons into its inputs
  const auto result = load_profile(layers, environment());
  if (const auto *errors = std::get_if<std::vector<ProfileError>>(&result)) {
    require(!errors->empty() && errors->size() <= kProfileErrors, "number of errors");
    for (const ProfileError &error : *errors) {
      require(!error.code.empty() && !error.what.empty(), "an empty error");
      require_clean(to_string(error));
    }
    return;
  }
  const Profile &profile = std::get<Profile>(result);
  for (const ServerDef &server : profile.servers) check_definition(server);
  for (const auto *uses : {&profile.transports, &profile.tools, &profile.policies,
                           &profile.telemetry, &profile.services})
    for (const PluginUse &use : *uses) check_config(use);
  for (const std::string &note : profile.notes) require_clean(note);
  for (const Profile::Shown &shown : profile.shown) require_clean(shown.value);
}

// An imported profile must load, except for values that depend on variables.
void import(std::string_view text) {
  static const int file = ::memfd_create("client", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(::ftruncate(file, 0) == 0, "ftruncate");
  require(::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
          "pwrite");
  std::vector<FoundConfig> found;
  for (const char *client : {"Cursor", "Gemini CLI"})
    found.push_back({client, path, {"mcpServers"}, {}, {}});
  found.push_back({"VS Code", path, {"mcp", "servers"}, {}, {}});
  std::vector<std::string> secrets;
  const std::string toml = import_profile(found, &secrets);
  ProfileEnvironment all;
  all.getenv = [](const std::string &) { return std::optional<std::string>("1"); };
  const auto result = load_profile({{"file", "import.toml", toml}}, all);
  const auto *errors = std::get_if<std::vector<ProfileError>>(&result);
  if (errors == nullptr) return;
  for (const ProfileError &error : *errors)
    require(
        error.path.find("url") != std::string::npos || error.path.find("Url") != std::string::npos,
        "an imported profile does not load", to_string(error) + "\n" + toml);
}

// Without approval, nothing in a project file is used and no variable is read. If all servers are
// approved, the content that is used must equal the displayed content.
void project(std::string text) {
  ProfileLayer layer{"project", "/repo/project", std::move(text)};
  layer.project = true;
  const auto read = read_project(layer);
  const auto *entries = std::get_if<std::vector<ProjectEntry>>(&read);
  bool asked = false;
  ProfileEnvironment curious = environment();
  curious.getenv = [&asked](const std::string &) -> std::optional<std::string> {
    asked = true;
    return std::nullopt;
  };
  const auto before = load_profile({layer}, curious);
  const auto *profile = std::get_if<Profile>(&before);
  require((profile != nullptr) == (entries != nullptr),
          "a text that is not a project file is loaded");
  require(!asked, "a variable is read before the approval");
  if (profile == nullptr) return;
  for (const ServerDef &server : profile->servers)
    require(server.disabled && server.command.empty() && server.args.empty() &&
                server.env.empty() && server.url.empty() && server.headers.empty(),
            "something is used before the approval", server.name);
  for (const ProjectEntry &entry : *entries) {
    layer.approved.insert(entry.digest);
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(
        entry.serialisation.data(), entry.serialisation.size());
    require(!document.HasParseError() && document.IsObject(), "serialisation", entry.serialisation);
  }
  const auto after = load_profile({layer}, environment());
  const auto *used = std::get_if<Profile>(&after);
  if (used == nullptr) return;
  for (const ServerDef &server : used->servers)
    for (const ProjectEntry &entry : *entries)
      if (entry.name == server.name && !server.disabled)
        require(entry.command == server.command && entry.args == server.args &&
                    (server.command.empty() || entry.cwd == server.cwd),
                "the used content differs from the shown content", entry.serialisation);
}

// A server that a corporate layer forbids must be absent, whatever the layer above it defines.
void corp(const std::string &lower, const std::string &upper) {
  ProfileLayer below{"corp", "/etc/c.toml",
                     "[[directives]]\noperation = \"forbid\"\npath = \"mcpServers.bad\"\n" + lower};
  below.corp = true;
  const std::vector<ProfileLayer> layers{below, {"file", "/a/b", upper}};
  load(layers);
  const auto result = load_profile(layers, environment());
  const auto *profile = std::get_if<Profile>(&result);
  if (profile == nullptr) return;
  for (const ServerDef &server : profile->servers)
    require(server.name != "bad", "a forbidden server is present", upper);
}

void extends(const std::string &parent, const std::string &child) {
  const FindProfile find = [&](const std::string &id) -> Result<ProfileLayer> {
    return ProfileLayer{"file", "/p/" + id, parent};
  };
  auto chain = with_ancestors({"file", "/a/b", child}, find);
  if (!chain) return require(!chain.error().what.empty(), "an empty error");
  require(!chain->empty() && chain->size() <= kProfileChain, "the length of a chain");
  load(*chain);
}

void detect(const std::string &lower, const std::string &upper) {
  ProfileLayer below{"claude", "/u/settings.json", lower};
  below.detected = below.lenient = true;
  // Settings of other programs must never prevent a profile from loading.
  const auto alone = load_profile({{"file", "/a/b", upper}}, environment());
  const auto both = load_profile({below, {"file", "/a/b", upper}}, environment());
  require(std::holds_alternative<Profile>(alone) == std::holds_alternative<Profile>(both),
          "another program's settings are an error", lower);
}

// The private key for these signatures does not exist, so no signature may be accepted.
void minisign(std::string_view text) {
  const auto keys = read_minisign_keys(text);
  if (keys) require(!keys->empty() && keys->size() <= kMinisignKeys, "number of keys");
  const auto known =
      read_minisign_keys("RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC\n");
  require(known.has_value(), "a good key");
  require(!verify_minisign("not what was ever signed", text, *known), "a signature is accepted");
  const std::string payload(text);
  require(!check_corp({payload, text, payload, text, text, "p", "c.json"}),
          "a profile is accepted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  const char mode = static_cast<char>(data[0]);
  const std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  if (mode == 'i') {
    import(text);
  } else if (mode == 'p') {
    project(text);
  } else if (mode == 's') {
    minisign(text);
  } else if (mode == 'm' || mode == 'c' || mode == 'e' || mode == 'd') {
    const std::size_t middle = text.find("\n%%\n");
    const std::string lower = text.substr(0, middle);
    const std::string upper = middle == std::string::npos ? "" : text.substr(middle + 4);
    if (mode == 'c') return corp(lower, upper), 0;
    if (mode == 'e') return extends(lower, upper), 0;
    if (mode == 'd') return detect(lower, upper), 0;
    load({{"builtin", "", lower}, {"file", "/a/b", upper}});
  } else {
    load({{"file", mode == 'j' ? "a.json" : "a.toml", text}});
  }
  return 0;
}
