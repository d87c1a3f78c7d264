// Tests the list store: definitions, file permissions, size limits and damaged files.
#include "state/list_store.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/test_folder.hpp"
#include "state/list_writer.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

ServerDef lazy_server() {
  ServerDef def;
  def.name = "s";
  def.lazy = true;
  def.command = "server";
  def.env["TOKEN"] = "secret";
  return def;
}

Profile profile_in(const TestFolder &folder, const ServerDef &def = lazy_server()) {
  Profile profile;
  profile.state_dir = folder.path;
  profile.servers.push_back(def);
  return profile;
}

KeptLists recalled(const TestFolder &folder, const ServerDef &def = lazy_server()) {
  Profile profile = profile_in(folder, def);
  load_stored_lists(&profile);
  return profile.servers[0].kept;
}

}  // namespace

TEST_CASE("a stored list is valid only for an unchanged definition") {
  const TestFolder folder;
  const ListStore store(folder.path);
  KeptLists kept = recalled(folder);
  REQUIRE_FALSE(kept.definition.empty());
  CHECK(kept.lists.empty());
  merge_kept_list(&kept, {4, "text"});
  REQUIRE(store.write("s", kept).has_value());
  struct stat file{};
  REQUIRE(::stat((store.folder() + "/s").c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  REQUIRE(recalled(folder).lists.size() == 1);
  CHECK(recalled(folder).lists[0].caps == 4);
  CHECK(recalled(folder).lists[0].text == "text");

  const auto none = [&](const std::function<void(ServerDef &)> &change) {
    ServerDef def = lazy_server();
    change(def);
    return recalled(folder, def).lists.empty();
  };
  CHECK(none([](ServerDef &def) { def.env["TOKEN"] = "another"; }));
  CHECK(none([](ServerDef &def) { def.args = {"x"}; }));
  CHECK(none([](ServerDef &def) { def.deny_tools = {"x"}; }));
  CHECK(none([](ServerDef &def) { def.allow_tools.emplace(); }));
  CHECK(none([](ServerDef &def) { def.sandbox.network = false; }));
  CHECK_FALSE(none([](ServerDef &def) { def.idle_stop_ms = 5; }));
  // A server that starts with the gateway also has stored lists, which clients see until it is
  // ready. A server with one process per client has none.
  ServerDef eager = lazy_server(), own = lazy_server();
  eager.lazy = false;
  own.session = SessionScope::per_client;
  CHECK(recalled(folder, eager).lists.size() == 1);
  CHECK(recalled(folder, own).definition.empty());
}

TEST_CASE(
    "a file that is damaged, too large or accessible to others is not used, and a note is added") {
  const TestFolder folder;
  const ListStore store(folder.path);
  KeptLists kept = recalled(folder);
  merge_kept_list(&kept, {4, "text"});
  REQUIRE(store.write("s", kept).has_value());
  const std::string path = store.folder() + "/s";
  std::string text;
  const int how = GENERATE(0, 1, 2, 3);
  if (how == 0) text = "nonsense";
  if (how == 1) text = "bulkhead lists 1\n\xff\xff\xff\xff\xff\xff\xff\xff";
  if (how == 2) text = std::string(ListStore::max_bytes + 1, 'x');
  if (how == 3) {
    ::chmod(path.c_str(), 0644);
  } else {
    std::ofstream(path, std::ios::trunc) << text;
  }
  Profile profile = profile_in(folder);
  load_stored_lists(&profile);
  CHECK(profile.servers[0].kept.lists.empty());
  CHECK(profile.servers[0].kept.definition == kept.definition);
  REQUIRE(profile.notes.size() == 1);
  CHECK(profile.notes[0].starts_with("server \"s\" lists its tools only after it starts: "));
}

TEST_CASE("lists are limited in size, per server and per profile") {
  KeptLists kept;
  merge_kept_list(&kept, {1, std::string(max_kept_list_bytes + 1, 'x')});
  CHECK(kept.lists.empty());
  for (std::uint32_t caps = 0; caps < most_kept_lists + 2; ++caps) {
    merge_kept_list(&kept, {caps, "text"});
  }
  REQUIRE(kept.lists.size() == most_kept_lists);
  CHECK(kept.lists[0].caps == 2);  // the two oldest lists were removed
  merge_kept_list(&kept, {2, ""});
  CHECK(kept.lists.size() == most_kept_lists - 1);

  const TestFolder folder;
  const ListStore store(folder.path);
  Profile profile;
  profile.state_dir = folder.path;
  for (int i = 0; i < 20; ++i) {
    profile.servers.push_back(lazy_server());
    profile.servers.back().name += std::to_string(i);
  }
  load_stored_lists(&profile);
  for (ServerDef &def : profile.servers) {
    merge_kept_list(&def.kept, {0, std::string(max_kept_list_bytes, 'x')});
    REQUIRE(store.write(def.name, def.kept).has_value());
  }
  load_stored_lists(&profile);
  std::size_t bytes = 0;
  for (const ServerDef &def : profile.servers) {
    for (const KeptList &list : def.kept.lists) bytes += list.text.size();
  }
  CHECK(bytes == max_kept_lists_bytes);
}

TEST_CASE("the writer stores only lists of servers in the current profile") {
  const TestFolder folder;
  Profile profile = profile_in(folder);
  load_stored_lists(&profile);
  const std::string definition = profile.servers[0].kept.definition;
  auto reactor = *Reactor::create();
  std::vector<std::string> told;
  ListWriter::Hooks hooks;
  hooks.on_stored = [&](const std::string &server, const KeptLists &lists) {
    told.push_back(server + " " + std::to_string(lists.lists.size()));
  };
  auto writer = std::make_unique<ListWriter>(*reactor, folder.path, std::move(hooks));
  writer->set_profile(profile);
  writer->add({"s", "of another definition", {0, "text"}});
  writer->add({"unknown", definition, {0, "text"}});
  CHECK(told.empty());
  writer->add({"s", definition, {0, "text"}});
  writer->add({"s", definition, {1, "other"}});
  CHECK(told == std::vector<std::string>{"s 1", "s 2"});
  reactor.reset();
  writer.reset();
  CHECK(recalled(folder).lists.size() == 2);
}
