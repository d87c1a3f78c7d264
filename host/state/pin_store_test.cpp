// Tests the pin store: file permissions, approvals, definitions and concurrent writers.
#include "state/pin_store.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "catalog/items.hpp"
#include "common/test_folder.hpp"
#include "state/pin_writer.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

std::string definition(char c) {
  return std::string(R"({"description":"version )") + c + R"("})";
}
std::string hash(char c) {
  return to_hex(definition_hash(definition(c)));
}

PinNews approved(const std::string &tool, char c) {
  return {{"s", tool, hash(c), hash(c), "", "", ""}, definition(c)};
}
PinNews seen(const std::string &tool, char was, char is) {
  return {{"s", tool, hash(was), hash(was), hash(is), hash(is), ""}, definition(is)};
}

Profile profile_with(const std::vector<ToolPin> &pinned = {}) {
  Profile profile;
  ServerDef def;
  def.name = "s";
  def.origin.file = "/etc/gateway.toml";
  profile.servers.push_back(def);
  profile.pinned = pinned;
  return profile;
}

}  // namespace

TEST_CASE("the first definition is approved, stored privately, and read again") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const PinTerms terms = pin_terms(profile_with());
  REQUIRE(store.read().has_value());
  const auto all = store.merge({approved("a", '1'), approved("b\n\"\x1b", '2')}, terms);
  REQUIRE(all.has_value());
  const auto read = store.read();
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].pin == approved("a", '1').pin);
  CHECK((*read)[0].file == "/etc/gateway.toml");
  CHECK((*read)[0].text == "version 1");
  CHECK((*read)[0].definition == definition('1'));
  CHECK((*read)[1].definition == definition('2'));
  CHECK((*read)[0].approved_at != 0);
  CHECK((*read)[1].pin.tool == "b\n\"\x1b");
  CHECK(PinStore::known(*read, terms).size() == 2);
  struct stat info{};
  REQUIRE(::stat((store.folder() + "/pins.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  Profile other = profile_with();
  other.servers[0].origin.file = "/home/u/other.toml";
  CHECK(PinStore::known(*read, pin_terms(other)).empty());
}

TEST_CASE("new definitions never replace approved ones and are approved only as the terms allow") {
  const TestFolder folder;
  const PinStore store(folder.path);
  REQUIRE(store.merge({approved("a", '1')}, pin_terms(profile_with())).has_value());
  const PinTerms terms = pin_terms(profile_with({approved("a", '1').pin}));
  // One gateway has the pin, the other does not. Both also report a new tool.
  for (const PinNews &news : {seen("a", '1', '2'), approved("a", '2')}) {
    const auto all = store.merge({news, approved("new", '3')}, terms);
    REQUIRE(all.has_value());
    REQUIRE(all->size() == 2);
    CHECK((*all)[0].pin.hash == hash('1'));
    CHECK((*all)[0].pin.seen == hash('2'));
    CHECK((*all)[0].seen_text == "version 2");
    CHECK((*all)[0].seen_definition == definition('2'));
    CHECK((*all)[0].text == "version 1");
    CHECK((*all)[0].definition == definition('1'));
    CHECK((*all)[1].seen_definition == definition('3'));
    CHECK((*all)[1].pin.hash.empty());
    CHECK((*all)[1].pin.seen == hash('3'));
  }
  const auto back = store.merge({approved("a", '1')}, terms);
  REQUIRE(back.has_value());
  CHECK((*back)[0].pin.approved());
  CHECK((*back)[0].seen_definition.empty());
  PinTerms accepting = terms;
  accepting.accept_new = true;
  PinNews renamed = approved("renamed", '5');
  renamed.pin.renamed_from = "a";
  const auto accepted = store.merge({approved("more", '4'), renamed}, accepting);
  REQUIRE(accepted.has_value());
  CHECK(accepted->at(2).pin.approved());
  CHECK_FALSE(accepted->at(3).pin.approved());
}

TEST_CASE("invalid definitions are ignored") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const PinTerms terms = pin_terms(profile_with());
  PinNews bad[] = {approved("a", 'x'), approved("", '1'), approved("b", '1'), approved("c", '1'),
                   approved(std::string(max_pin_name_bytes + 1, 'n'), '1')};
  bad[0].pin.hash = std::string(32, 'x');
  bad[2].pin.server = "other";
  bad[3].definition.assign(max_pin_definition_bytes + 1, ' ');
  const auto all = store.merge({std::begin(bad), std::end(bad)}, terms);
  REQUIRE(all.has_value());
  CHECK(all->empty());
  PinNews torn = approved("d", '1'), other = approved("e", '1');
  torn.definition = "\xff";
  other.definition = definition('2');  // the definition does not match its hash
  REQUIRE(store.merge({torn, other}, terms).has_value());
  const auto read = store.read();
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  for (const StoredPin &pin : *read) {
    CHECK(pin.pin.hash == hash('1'));
    CHECK(pin.definition.empty());
    CHECK(pin.text.empty());
  }
}

TEST_CASE("a file that is damaged or accessible to others is an error and is not overwritten") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const PinTerms terms = pin_terms(profile_with());
  REQUIRE(store.merge({approved("a", '1')}, terms).has_value());
  const std::string path = store.folder() + "/pins.json";
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK_FALSE(store.read().has_value());
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  for (const char *text : {"", "{}", R"({"pins":[{"server":"s"}]})", R"({"pins":[1]})",
                           R"({"pins":[{"server":"s","tool":"a","hash":"ABC"}]})"}) {
    std::ofstream(path) << text;
    INFO(text);
    CHECK_FALSE(store.read().has_value());
    CHECK_FALSE(store.merge({approved("b", '1')}, terms).has_value());
  }
}

TEST_CASE("a gateway that does not know an approval yet does not revert it") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const PinTerms terms = pin_terms(profile_with());
  REQUIRE(store.merge({approved("a", '1')}, terms).has_value());
  PinNews changed = approved("a", '1');
  changed.pin.seen = hash('2');
  changed.pin.seen_shape = hash('2');
  REQUIRE(store.merge({changed}, terms).has_value());
  REQUIRE_FALSE(store.read()->front().pin.approved());
  // After the user approves the definition, the gateway reports it again.
  REQUIRE(store.update([](std::vector<StoredPin> &all) {
    all.front().pin.hash = std::exchange(all.front().pin.seen, {});
    all.front().pin.shape = std::exchange(all.front().pin.seen_shape, {});
    return true;
  }));
  REQUIRE(store.merge({changed}, terms).has_value());
  CHECK(store.read()->front().pin.approved());
  CHECK(store.read()->front().pin.hash == hash('2'));
  CHECK(store.read()->front().seen_text.empty());
  // A different definition is reported as changed.
  changed.pin.seen = hash('3');
  REQUIRE(store.merge({changed}, terms).has_value());
  CHECK_FALSE(store.read()->front().pin.approved());
  REQUIRE(store.merge({approved("a", '1')}, terms).has_value());
  CHECK(store.read()->front().pin.seen == hash('1'));
}

TEST_CASE("a description is truncated at a character boundary") {
  const TestFolder folder;
  std::string text = "x";
  while (text.size() <= max_pin_text_bytes) text += "\xC3\xA9";
  PinNews news = approved("a", '1');
  news.definition = R"({"description":")" + text + R"("})";
  news.pin.hash = to_hex(definition_hash(news.definition));
  const auto all = PinStore(folder.path).merge({news}, pin_terms(profile_with()));
  REQUIRE(all.has_value());
  CHECK(all->front().text.size() == max_pin_text_bytes - 1);
  CHECK(text.starts_with(all->front().text));
  CHECK(all->front().definition == news.definition);
}

TEST_CASE("a file without definitions can be read, and listed tools add their definitions") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const PinTerms terms = pin_terms(profile_with());
  REQUIRE(store.merge({approved("a", '1')}, terms).has_value());
  const auto file = [&](const std::string &members) {
    std::ofstream(store.folder() + "/pins.json")
        << R"({"pins":[{"file":"/etc/gateway.toml","server":"s","tool":"a","hash":")" << hash('1')
        << R"(","shape":")" << hash('1') << R"(","text":"version 1")" << members << "}]}";
  };
  file("");
  REQUIRE(store.read().has_value());
  CHECK(store.read()->front().text == "version 1");
  CHECK(store.read()->front().definition.empty());
  const auto changed = store.merge({seen("a", '1', '2')}, terms);
  REQUIRE(changed.has_value());
  CHECK(changed->front().definition.empty());
  CHECK(changed->front().seen_definition == definition('2'));
  const auto back = store.merge({approved("a", '1')}, terms);
  REQUIRE(back.has_value());
  CHECK(back->front().definition == definition('1'));
  CHECK(back->front().seen_definition.empty());
}

TEST_CASE("if definitions exceed the file's limit, only the pins are stored") {
  const TestFolder folder;
  const PinStore store(folder.path);
  const auto all = store.update([](std::vector<StoredPin> &pins) {
    for (int i = 0; i < 3; ++i) {
      StoredPin pin;
      pin.file = "/etc/gateway.toml";
      pin.pin = approved(std::to_string(i), '1').pin;
      pin.definition.assign(PinStore::max_definition_bytes * 2 / 5, 'x');
      pins.push_back(pin);
    }
    return true;
  });
  REQUIRE(all.has_value());
  const auto read = store.read();
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 3);
  CHECK_FALSE((*read)[0].definition.empty());
  CHECK_FALSE((*read)[1].definition.empty());
  CHECK((*read)[2].definition.empty());
}

TEST_CASE("when_written() calls back after all definitions are stored") {
  const TestFolder folder;
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  PinWriter writer(**reactor, folder.path, {});
  writer.set_profile(profile_with());
  int done = 0;
  writer.when_written([&] { ++done; });
  CHECK(done == 1);
  writer.add({approved("a", '1')});
  writer.add({approved("b", '2')});
  std::size_t there = 0;
  writer.when_written([&] {
    ++done;
    there = PinStore(folder.path).read()->size();
  });
  CHECK(done == 1);
  while (done < 2) (*reactor)->poll(1000);
  CHECK(there == 2);
  reactor->reset();
}

TEST_CASE("a writer writes one update at a time, and its destructor writes pending updates") {
  const TestFolder folder;
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  std::vector<std::string> warnings;
  std::size_t known = 0;
  PinWriter::Hooks hooks;
  hooks.warn = [&](std::string_view text) { warnings.emplace_back(text); };
  hooks.on_stored = [&](const std::vector<StoredPin> &pins) { known = pins.size(); };
  {
    PinWriter writer(**reactor, folder.path, hooks);
    writer.set_profile(profile_with());
    writer.add({approved("a", '1')});
    writer.add({approved("b", '2')});
    while (known < 2) (*reactor)->poll(1000);
    CHECK(warnings.empty());
    writer.add(std::vector<PinNews>(PinWriter::most_waiting + 1));
    CHECK(warnings.size() == 1);
    PinNews large = approved("c", '3');  // uses up the size limit for definitions
    large.definition.assign(PinWriter::most_waiting_bytes, ' ');
    writer.add({approved("d", '4')});
    writer.add({large, approved("e", '5')});
    reactor->reset();
  }
  const auto read = PinStore(folder.path).read();
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 4);  // the pin with the oversized definition is ignored
  for (const StoredPin &pin : *read) {
    INFO(pin.pin.tool);
    CHECK(pin.definition.empty() == (pin.pin.tool == "e"));
  }
}
