// Tests the approval store: file permissions, seals and invalid entries.
#include "sources/approval_store.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

Approval approval(const std::string &file, const std::string &server,
                  const std::string &digest = std::string(64, 'a')) {
  Approval out;
  out.file = file;
  out.server = server;
  out.digest = digest;
  out.approved_at = 1'700'000'000;
  out.tools = {"get", "set \"x\""};
  out.findings = {"get: forget"};
  return out;
}

std::string read_text(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string &path, const std::string &text) {
  std::ofstream(path) << text;
}

unsigned mode_of(const std::string &path) {
  struct stat info{};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777u;
}

struct Stored {
  Stored() {
    REQUIRE(store.put(approval("/repo/.mcp.json", "weather")));
    REQUIRE(store.put(approval("/repo/.mcp.json", "github", std::string(64, 'b'))));
    REQUIRE(store.put(approval("/other/.mcp.json", "weather", std::string(64, 'c'))));
  }
  std::size_t count() const { return store.read().approvals.size(); }
  std::string problem() const { return store.read().problem; }

  TestFolder folder;
  const ApprovalStore store{folder / "state/approvals"};
  const std::string file = store.folder() + "/servers.json";
};

}  // namespace

TEST_CASE("approvals are stored and read unchanged, one per server") {
  Stored all;
  REQUIRE(all.count() == 3);
  CHECK(all.problem().empty());
  const Approval first = all.store.read().approvals[0];
  CHECK(first.server == "weather");
  CHECK(first.approved_at == 1'700'000'000);
  CHECK(first.tools == std::vector<std::string>{"get", "set \"x\""});
  CHECK(first.findings == std::vector<std::string>{"get: forget"});
  REQUIRE(all.store.put(approval("/repo/.mcp.json", "weather", std::string(64, 'd'))));
  CHECK(all.count() == 3);
  std::string problem;
  const auto digests = all.store.digests("/repo/.mcp.json", &problem);
  CHECK(digests.size() == 2);
  CHECK(digests.contains(std::string(64, 'd')));
  CHECK_FALSE(digests.contains(std::string(64, 'a')));
  CHECK(all.store.digests("/repo", &problem).empty());
  CHECK(problem.empty());
}

TEST_CASE("F11 a revoked approval is removed") {
  Stored all;
  CHECK(all.store.remove("/repo/.mcp.json", "unknown").value() == 0);
  CHECK(all.store.remove("/repo/.mcp.json", "weather").value() == 1);
  CHECK(all.count() == 2);
  CHECK(all.store.remove("/repo/.mcp.json", "").value() == 1);
  CHECK(all.store.remove("", "").value() == 1);
  CHECK(all.count() == 0);
  TestFolder fresh;
  CHECK(ApprovalStore(fresh / "none").remove("", "").value() == 0);
  CHECK_FALSE(std::filesystem::exists(fresh / "none"));
}

TEST_CASE("F09 the files are private regardless of the umask") {
  const mode_t before = ::umask(0);
  Stored all;
  ::umask(before);
  CHECK(mode_of(all.store.folder()) == 0700);
  CHECK(mode_of(all.folder / "state") == 0700);
  CHECK(mode_of(all.file) == 0600);
  CHECK(mode_of(all.store.folder() + "/key") == 0600);
}

TEST_CASE("F09 a file that others can write, or a link, is ignored") {
  Stored all;
  ::chmod(all.file.c_str(), 0620);
  CHECK(all.count() == 0);
  CHECK(all.problem().find("is accessible to other users") != std::string::npos);
  ::chmod(all.file.c_str(), 0600);
  CHECK(all.count() == 3);
  const std::string key = all.store.folder() + "/key";
  ::chmod(key.c_str(), 0644);
  CHECK(all.count() == 0);
  ::chmod(key.c_str(), 0600);
  std::filesystem::rename(all.file, all.folder / "elsewhere");
  std::filesystem::create_symlink(all.folder / "elsewhere", all.file);
  CHECK(all.count() == 0);
  CHECK_FALSE(all.problem().empty());
}

TEST_CASE("F09 an approval that was edited by hand is ignored, and the others remain valid") {
  Stored all;
  const std::string good = read_text(all.file);
  const auto edited = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    write_text(all.file, text);
    CHECK(all.problem().find("1 approval was not made by `bulkhead approve`") != std::string::npos);
    return all.count();
  };
  CHECK(edited(std::string(64, 'a'), std::string(64, 'e')) == 2);
  CHECK(edited("/repo/.mcp.json", "/evil/.mcp.json") == 2);
  CHECK(edited("\"seal\":\"", "\"seal\":\"0") == 2);
  CHECK(edited("\"seal\":", "\"steal\":") == 2);
  // Storing an approval removes the invalid entry.
  REQUIRE(all.store.put(approval("/repo/.mcp.json", "new")));
  CHECK(all.count() == 3);
  CHECK(all.problem().empty());
}

TEST_CASE("a key that temporarily cannot be read is not replaced") {
  Stored all;
  const std::string key = all.store.folder() + "/key";
  std::filesystem::rename(key, key + ".away");
  // ELOOP is treated like EMFILE or EIO: it does not prove that the key is invalid.
  std::filesystem::create_symlink("key", key);
  const auto put = all.store.put(approval("/repo/.mcp.json", "weather", std::string(64, 'd')));
  CHECK_FALSE(put.has_value());
  CHECK(std::filesystem::is_symlink(key));
  std::filesystem::rename(key + ".away", key);
  CHECK(all.count() == 3);
}

TEST_CASE("F09 approvals with another key and an invalid list are ignored") {
  Stored here, there;
  write_text(here.file, read_text(there.file));
  CHECK(here.count() == 0);
  CHECK(here.problem().find("3 approvals were not made") != std::string::npos);
  for (const char *text : {"", "[]", "{\"approvals\":", "{\"approvals\":{}}", "\xFF"}) {
    write_text(here.file, text);
    CHECK(here.count() == 0);
    CHECK(here.problem().find("is not a valid list") != std::string::npos);
  }
  write_text(here.file, "{\"approvals\":[1,null,{}]}");
  CHECK(here.count() == 0);
  std::filesystem::remove(there.store.folder() + "/key");
  CHECK(there.count() == 0);
  REQUIRE(there.store.put(approval("/repo/.mcp.json", "new")));
  CHECK(there.count() == 1);
}

TEST_CASE("reading creates nothing") {
  TestFolder folder;
  const ApprovalStore store(folder / "approvals");
  CHECK(store.read().approvals.empty());
  CHECK(store.read().problem.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "approvals"));
}
