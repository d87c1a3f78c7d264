// Tests .gitignore rules, and tests diffs by applying them with patch(1).
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "builtin-files/files_fixture.hpp"
#include "builtin-files/glob.hpp"
#include "builtin-files/ignore.hpp"
#include "builtin-files/text_diff.hpp"

using builtin_files::IgnoreRules;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;
using tool_kit::testing::Answer;

namespace {

std::string diff_of(const std::string &text, const std::string &from, const std::string &to,
                    std::string *new_text) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + from.size())) {
    places.push_back(at);
  }
  *new_text = builtin_files::replaced(text, places, from, to);
  return builtin_files::replacement_diff("f", text, places, from, to, 1u << 20);
}

// Applies `diff` to `text` with patch(1) and returns the result.
std::string patched(const Tree &tree, const std::string &text, const std::string &diff) {
  const auto file = tree.root() / "f";
  const auto patch = tree.root() / "p";
  std::ofstream(file, std::ios::binary) << text;
  std::ofstream(patch, std::ios::binary) << diff;
  const std::string command =
      "patch -s -f --no-backup-if-mismatch -F0 " + file.string() + " < " + patch.string();
  if (std::system(command.c_str()) != 0) return "patch failed: " + diff;
  return tree.read("f");
}

}  // namespace

TEST_CASE("patch(1) applies the diff") {
  if (std::system("patch --version > /dev/null 2>&1") != 0) {
    WARN("SKIP diff_test: patch(1) is not installed");
    return;
  }
  const Tree tree;
  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += "line " + std::to_string(i) + "\n";
  const std::string cases[][3] = {
      {"a\n", "a", "b"},
      {"a", "a", "b"},
      {"a\nb\nc\n", "b\n", ""},
      {"a\nb\nc\n", "b\n", "x"},
      {"a\nb\nc", "c", "c\n"},
      {"a\nb\nc\n", "\nb", ""},
      {"a\nb\nc\n", "a\nb\nc\n", "z\n"},
      {"x y x\nx\nq\nx x\n", "x", "two\nlines"},
      {long_text, "9\n", "9!\n"},
      {long_text, "line 3", ""},
      {long_text, "line 30\nline 31\n", "one\n"},
      {long_text, "\n", "\r\n"},
      {"\n\n\n", "\n", "a\n"},
  };
  for (const auto &[text, from, to] : cases) {
    INFO(from << " -> " << to);
    std::string new_text;
    const std::string diff = diff_of(text, from, to, &new_text);
    CHECK(patched(tree, text, diff) == new_text);
  }
}

TEST_CASE("a diff has three context lines, merges adjacent hunks, and is truncated") {
  std::string text;
  for (int i = 1; i <= 30; ++i) text += std::to_string(i) + "\n";
  CHECK(builtin_files::replacement_diff("f", text, {text.find("10")}, "10", "x", 1000) ==
        "--- f\n+++ f\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+x\n 11\n 12\n 13\n");
  const std::string two = builtin_files::replacement_diff(
      "f", text, {text.find("\n10") + 1, text.find("\n17") + 1}, "1", "x", 1000);
  CHECK(two.find("@@ -7,14 +7,14 @@") != std::string::npos);
  CHECK(two.find("@@", two.find("@@ -7,14 +7,14 @@") + 18) == std::string::npos);
  const std::string cut = builtin_files::replacement_diff(
      "f", text, {text.find("\n10") + 1, text.find("\n17") + 1}, "1", "x", 40);
  CHECK(cut.ends_with("\n(The diff was truncated.)\n"));
  CHECK(cut.size() < 80);
}

TEST_CASE("gitignore rules are applied") {
  using Verdict = IgnoreRules::Verdict;
  const IgnoreRules rules = IgnoreRules::parse(
      "# comment\n\n*.o\n!keep.o\n/top\nbuild/\nsrc/*.tmp\n**/deep/x\n*.py[cod]\n\\#odd\ntrail  \n"
      "crlf\r\n");
  const auto verdict = [&](const char *path, bool folder = false) {
    return rules.judge(path, folder);
  };
  CHECK(verdict("a.o") == Verdict::ignored);
  CHECK(verdict("x/a.o") == Verdict::ignored);
  CHECK(verdict("x/keep.o") == Verdict::kept);
  CHECK(verdict("top") == Verdict::ignored);
  CHECK(verdict("x/top") == Verdict::none);
  CHECK(verdict("x/build", true) == Verdict::ignored);
  CHECK(verdict("build") == Verdict::none);
  CHECK(verdict("src/a.tmp") == Verdict::ignored);
  CHECK(verdict("x/src/a.tmp") == Verdict::none);
  CHECK(verdict("a/b/deep/x") == Verdict::ignored);
  CHECK(verdict("m.pyc") == Verdict::ignored);
  CHECK(verdict("m.pyx") == Verdict::none);
  CHECK(verdict("#odd") == Verdict::ignored);
  CHECK(verdict("trail") == Verdict::ignored);
  CHECK(verdict("crlf") == Verdict::ignored);
}

TEST_CASE("globs support character classes") {
  using builtin_files::glob_matches;
  CHECK(glob_matches("[a-c]x", "bx"));
  CHECK_FALSE(glob_matches("[a-c]x", "dx"));
  CHECK(glob_matches("[!a-c]x", "dx"));
  CHECK_FALSE(glob_matches("[^a-c]x", "ax"));
  CHECK(glob_matches("*[0-9].txt", "a12.txt"));
  CHECK(glob_matches("[]]", "]"));
  CHECK(glob_matches("[a-]", "-"));
  CHECK(glob_matches("a[b", "a[b"));
  CHECK_FALSE(glob_matches("a[b", "ab"));
}

TEST_CASE("dir_tree and file_search skip ignored files on request") {
  Tree tree;
  tree.file(".gitignore", "*.log\nout/\n");
  tree.file("a.log", "needle");
  tree.file("out/b.txt", "needle");
  tree.file("src/.gitignore", "!kept.log\n");
  tree.file("src/kept.log", "needle");
  tree.file("src/deep/er/c.txt", "needle");
  Files files(tree);
  const Answer all = files.call("dir_tree", R"({"depth":9})");
  CHECK(all.text() ==
        ".gitignore\na.log\nout/\n  b.txt\nsrc/\n  .gitignore\n  deep/\n    er/\n      c.txt\n"
        "  kept.log\n");
  CHECK(all.structured()["complete"].IsTrue());
  CHECK(std::string(all.structured()["entries"][3]["path"].GetString()) == "out/b.txt");
  const Answer some = files.call("dir_tree", R"({"depth":9,"gitignore":true})");
  CHECK(some.text() ==
        ".gitignore\nsrc/\n  .gitignore\n  deep/\n    er/\n      c.txt\n  kept.log\n");
  const Answer flat = files.call("dir_tree", R"({"depth":1})");
  CHECK(flat.structured()["entries"].Size() == 4);
  CHECK(flat.text().find("folders at level 1 were not entered") != std::string::npos);
  const Answer few = files.call("dir_tree", R"({"limit":2})");
  CHECK(few.structured()["entries"].Size() == 2);
  CHECK(few.text().find("more than 2 entries") != std::string::npos);
  CHECK(files.call("file_search", R"({"content":"needle"})").structured()["matches"].Size() == 4);
  const Answer found = files.call("file_search", R"({"content":"needle","gitignore":true})");
  CHECK(found.text() == "src/deep/er/c.txt:1: needle\nsrc/kept.log:1: needle\n");
}

TEST_CASE("file_read numbers lines on request and reports it in structuredContent") {
  Tree tree;
  tree.file("f", "a\nb\nc");
  Files files(tree);
  const Answer page = files.call("file_read", R"({"path":"f","offset":2,"line_numbers":true})");
  CHECK(page.text() == "     2\tb\n     3\tc");
  CHECK(page.structured()["text"] == "     2\tb\n     3\tc");
  CHECK(page.structured()["first_line"].GetInt() == 2);
  CHECK(page.structured()["size"].GetInt() == 5);
  CHECK_FALSE(page.structured().HasMember("next_offset"));
  CHECK(files.call("file_read", R"({"path":"f","limit":1})").structured()["next_offset"].GetInt() ==
        2);
}

TEST_CASE("a diff with many places in a very long line does not rescan the line") {
  std::string text(std::size_t{16} << 20, 'x');
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < 100'000; ++i) places.push_back(i * 160);
  for (const std::size_t at : places) text[at] = 'a';
  for (const char *to : {"b", ""}) {
    const std::clock_t before = std::clock();
    const std::string diff =
        builtin_files::replacement_diff("f", text, places, "a", to, std::size_t{64} << 20);
    CHECK(diff.starts_with("--- f\n+++ f\n@@ -1,1 +1,1 @@\n-axxx"));
    CHECK(std::clock() - before < 20 * CLOCKS_PER_SEC);  // about 0.1 s; quadratic: minutes
  }
}
