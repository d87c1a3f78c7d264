// Measures the CPU time for converting HTML pages to Markdown. The arguments are files. Without
// arguments, converts a generated page of 2,000,000 bytes.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <vector>

#include "builtin-http/page.hpp"

namespace {

using namespace builtin_http;

std::string article() {
  std::string page = "<!doctype html><html><head><title>t</title></head><body>";
  for (int i = 0; page.size() < 2'000'000; ++i) {
    const std::string n = std::to_string(i);
    page +=
        "<div class=\"section\" id=\"s" + n + "\"><h2>Section " + n +
        "</h2><p>Some <b>bold</b> and <a href=\"/page/" + n +
        "\">linked</a> text &amp; an entity, long enough to be a sentence or two of a page that "
        "somebody has written.</p><ul><li>one<li>two <code>code</code></ul>"
        "<table><tr><th>a<th>b<tr><td>" +
        n + "<td>2</table></div>\n";
  }
  page.resize(2'000'000);
  return page;
}

double used_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void measure(const char *name, const std::string &page) {
  const std::atomic<bool> never{false};
  std::vector<double> times;
  std::size_t length = 0;
  for (int round = 0; round < 9; ++round) {
    Response response;
    response.headers = {{"content-type", "text/html"}};
    response.body = page;
    std::string text;
    std::string problem;
    const double begin = used_ms();
    page_text(&response, Format::markdown, never, &text, &problem);
    times.push_back(used_ms() - begin);
    length = text.size();
  }
  std::sort(times.begin(), times.end());
  std::printf("%s: %zu bytes to %zu: best %.1f ms, median %.1f ms\n", name, page.size(), length,
              times.front(), times[times.size() / 2]);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 1) measure("made up", article());
  for (int i = 1; i < argc; ++i) {
    std::ostringstream page;
    page << std::ifstream(argv[i], std::ios::binary).rdbuf();
    measure(argv[i], page.str());
  }
}
