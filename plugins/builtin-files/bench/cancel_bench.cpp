// Measures how long each tool takes to complete a call after cancel(), in milliseconds. Creates
// about FILES files in FOLDER and deletes FOLDER at the end. Calls that complete before they can be
// cancelled are counted separately.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tool-kit/testing.hpp"

extern "C" const bh_entry *bh_static_entry_BuiltinFiles(void);

namespace {

namespace fs = std::filesystem;
using tool_kit::testing::ToolsHost;

constexpr int delays_ms[] = {2, 5, 10, 20, 50, 100, 200};

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void make_tree(const fs::path &root, int files) {
  for (int folder = 0; folder <= files / 100; ++folder) {
    const fs::path at = root / "d" / std::to_string(folder);
    fs::create_directories(at);
    std::ofstream(at / ".gitignore") << "*\n";
    for (int i = 0; i < 100; ++i) std::ofstream(at / std::to_string(i)) << "content " << i << '\n';
  }
  std::string line(1u << 20, 'b');
  line.back() = '\n';
  std::ofstream large(root / "large");
  for (int i = 0; i < 250; ++i) large << line;
  std::ofstream(root / "line") << std::string(4u << 20, 'b');
}

void measure(ToolsHost &host, const char *tool, const std::string &arguments) {
  std::vector<double> times;
  int ended_before = 0;
  for (const int delay : delays_ms) {
    const bh_call call = host.begin(tool, arguments);
    host.host.run_until([&] { return host.finished(call); }, delay);
    if (host.finished(call)) {
      ++ended_before;
      continue;
    }
    const double begin = now_ms();
    host.cancel(call);
    host.host.run_until([&] { return host.finished(call); }, 600'000);
    times.push_back(now_ms() - begin);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-18s %zu cancelled", tool, times.size());
  if (!times.empty())
    std::printf(": median %.1f ms, max %.1f ms", times[times.size() / 2], times.back());
  if (ended_before != 0) std::printf(" (%d had ended before)", ended_before);
  std::printf("  %s\n", arguments.substr(0, 60).c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s FOLDER FILES\n", argv[0]), 2;
  const fs::path base = argv[1];
  fs::create_directories(base / "kept");
  make_tree(base / "work", std::atoi(argv[2]));
  {
    ToolsHost host(
        bh_static_entry_BuiltinFiles(), "builtin-files",
        R"({"path":")" + (base / "work").string() +
            R"(","write":true,"snapshots":{"interval_s":0,"max_file_bytes":1073741824,"path":")" +
            (base / "kept").string() + "\"}}");
    measure(host, "dir_tree", R"({"depth":32,"gitignore":true})");
    measure(host, "file_search", R"({"glob":"none"})");
    measure(host, "file_search", R"({"content":"none"})");
    measure(host, "file_search", R"({"path":"d","content":"n[oi]ne$","regex":true})");
    measure(host, "file_search", R"({"glob":"line","content":"[a-q][^u-z]{500}x","regex":true})");
    measure(host, "file_read", R"({"path":"large","offset":1000})");
    measure(host, "snapshots_create", R"({"name":"one"})");
    host.call("snapshots_create", R"({"name":"whole"})");
    for (int i = 0; i < 100; ++i) {
      std::ofstream(base / "work/d" / std::to_string(i % 7) / std::to_string(i)) << "changed";
    }
    measure(host, "snapshots_changes", R"({"format":"json"})");
    fs::remove_all(base / "work/d");
    fs::resize_file(base / "work/large", 0);
    measure(host, "snapshots_revert", R"({"path":"large","checkpoint":"cp-10"})");
    measure(host, "snapshots_revert", R"({"path":".","checkpoint":"cp-10"})");
    host.call("snapshots_revert", R"({"path":".","checkpoint":"cp-10"})");
    measure(host, "file_delete", R"({"path":"d","recursive":true})");
  }
  fs::remove_all(base);
}
