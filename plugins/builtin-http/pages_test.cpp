// Compares the text of realistic pages (pages/*.html) with the expected Markdown (pages/*.md) and
// plain text (pages/*.txt). After an intended change to the conversion, run
//   builtin_http_test "[.write]"
// to update the expected files, and review the diff.
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "builtin-http/page.hpp"

using namespace builtin_http;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> pages() {
  std::vector<fs::path> out;
  for (const auto &entry : fs::directory_iterator(PAGES)) {
    if (entry.path().extension() == ".html") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const fs::path &page, Format format) {
  const std::atomic<bool> never{false};
  Response response;
  response.headers = {{"Content-Type", "text/html"}};
  response.body = read(page);
  std::string text;
  std::string problem;
  if (!page_text(&response, format, never, &text, &problem)) return "problem: " + problem;
  return text;
}

fs::path with(fs::path page, const char *extension) {
  return page.replace_extension(extension);
}

}  // namespace

TEST_CASE("pages are converted to the expected text") {
  CHECK(pages().size() >= 20);
  for (const fs::path &page : pages()) {
    INFO(page);
    CHECK(text_of(page, Format::markdown) == read(with(page, ".md")));
    CHECK(text_of(page, Format::content) == read(with(page, ".txt")));
  }
}

TEST_CASE("character references of any length are converted to UTF-8") {
  const std::atomic<bool> never{false};
  for (const std::string start :
       {"&#xD800", "&#x1", "&#5", "&#xDFFF", "&#x10FFFF", "&#xffffffff"}) {
    for (const char digit : {'0', '4', '8', 'C', 'f'}) {
      for (const std::size_t digits : {0, 1, 7, 8, 9, 15, 16, 17, 79}) {
        const std::string reference = start + std::string(digits, digit) + ";";
        for (const Format format : {Format::content, Format::markdown}) {
          INFO(reference);
          Response response;
          response.headers = {{"Content-Type", "text/html"}};
          response.body = "<!DOCTYPE html><meta charset=utf-8><body><p>a" + reference + "z</p>";
          std::string text;
          std::string problem;
          REQUIRE(page_text(&response, format, never, &text, &problem));
          CHECK(bh::is_utf8(text));
          CHECK(text.starts_with('a'));
        }
      }
    }
  }
}

TEST_CASE("write the expected text of the pages", "[.write]") {
  for (const fs::path &page : pages()) {
    std::ofstream(with(page, ".md"), std::ios::binary) << text_of(page, Format::markdown);
    std::ofstream(with(page, ".txt"), std::ios::binary) << text_of(page, Format::content);
  }
}
