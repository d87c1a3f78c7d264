// Tests MCP resources: templates, reading files by URI, and access control.
#include "builtin-files/resources.hpp"

#include <catch2/catch.hpp>

#include "builtin-files/files_fixture.hpp"

namespace fs = std::filesystem;
using builtin_files::Workspace;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

std::vector<Workspace> opened(const Tree &tree) {
  std::vector<Workspace> out(1);
  std::string problem;
  REQUIRE(Workspace::open("work", tree.root().string(), &out[0], &problem));
  return out;
}

// Returns the result of resources/read, or its error object.
Answer read(const std::vector<Workspace> &workspaces, const std::string &uri, bool expect_error) {
  bool failed = false;
  const std::string json = builtin_files::read_resource(workspaces, uri, &failed);
  CHECK(failed == expect_error);
  return Answer(json);
}

}  // namespace

TEST_CASE("each workspace has one template, and files are not listed") {
  const Tree tree;
  Files files(tree);
  const Answer templates("{\"t\":" + files.list(BH_LIST_TEMPLATES) + "}");
  REQUIRE(templates.json()["t"].Size() == 1);
  CHECK(templates.json()["t"][0]["uriTemplate"].GetString() ==
        "file://" + tree.root().string() + "/{+path}");
  CHECK(files.list(BH_LIST_RESOURCES) == "[]");
}

TEST_CASE("a file is read by its URI, as text or base64") {
  Tree tree;
  tree.file("a b/\xC3\xA9.txt", "text\n");
  tree.file("bin", std::string("a\0b", 3));
  tree.file("latin1", "caf\xE9");
  const auto workspaces = opened(tree);
  const std::string uri = builtin_files::file_uri(workspaces[0], "a b/\xC3\xA9.txt");
  CHECK(uri == "file://" + tree.root().string() + "/a%20b/%C3%A9.txt");
  const Answer text = read(workspaces, uri, false);
  CHECK(text.json()["contents"][0]["text"] == "text\n");
  CHECK(text.json()["contents"][0]["uri"].GetString() == uri);
  const std::string root = "file://" + tree.root().string() + "/";
  CHECK(read(workspaces, root + "bin", false).json()["contents"][0]["blob"] == "YQBi");
  CHECK(read(workspaces, root + "latin1", false).json()["contents"][0]["blob"] == "Y2Fm6Q==");
}

TEST_CASE("no URI gives access outside the workspaces") {
  Tree tree;
  tree.file("f", "x");
  tree.file("large", std::string((1u << 20) + 1, 'x'));
  fs::create_symlink("../secret.txt", tree.root() / "link");
  fs::create_directory(tree.root() / "d");
  const auto workspaces = opened(tree);
  const std::string root = "file://" + tree.root().string();
  for (const std::string &uri :
       {root + "/../secret.txt", root + "/%2e%2e/secret.txt", root + "/link", root + "/none",
        root + "/d", root + "/large", root + "/", root, root + "x/f", root + "/f%0", root + "/f%zz",
        std::string("file:///etc/passwd"), std::string("http://h/f"), std::string()}) {
    INFO(uri);
    const Answer answer = read(workspaces, uri, true);
    CHECK(answer.json()["code"].GetInt() == -32002);
    CHECK_FALSE(std::string(answer.json()["message"].GetString()).empty());
  }
}
