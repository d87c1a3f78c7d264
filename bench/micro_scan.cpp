// Measures the scan of a message, compared with simdjson's DOM and RapidJSON's SAX on the same
// bytes. Prints nanoseconds per message (best of several rounds) and gigabytes per second.
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "mcp/json_string.hpp"
#include "mcp/scan.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// Returns the best time of a call of f() in nanoseconds, from rounds of about 20 ms.
template <class F>
double best_ns(F &&f) {
  double best = 1e30;
  std::size_t repeat = 1;
  for (int round = 0; round < 12;) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < repeat; ++i) f();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (ns < 2e7) {
      repeat = repeat * 2;
      continue;
    }
    best = std::min(best, ns / static_cast<double>(repeat));
    ++round;
  }
  return best;
}

void check(bool ok) {
  if (!ok) {
    std::fputs("a parser rejected the message\n", stderr);
    std::exit(1);
  }
}

double scan_ns(const std::string &message) {
  bulkhead::mcp::Scan scan;
  bulkhead::mcp::ScanError error;
  return best_ns([&] { check(bulkhead::mcp::scan(message, &scan, &error)); });
}

double simdjson_ns(const std::string &message) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(message);
  return best_ns([&] { check(parser.parse(padded).error() == simdjson::SUCCESS); });
}

double rapidjson_ns(const std::string &message) {
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  return best_ns([&] {
    rapidjson::MemoryStream stream(message.data(), message.size());
    rapidjson::BaseReaderHandler<> handler;
    rapidjson::Reader reader;
    check(!reader.Parse<flags>(stream, handler).IsError());
  });
}

void row(const char *what, const std::string &message) {
  const auto size = static_cast<double>(message.size());
  const double scan = scan_ns(message);
  const double dom = simdjson_ns(message);
  const double sax = rapidjson_ns(message);
  std::printf(
      "%-34s %9zu B  scan %10.0f ns %6.2f GB/s   simdjson %10.0f ns %6.2f GB/s   "
      "RapidJSON %10.0f ns %6.2f GB/s\n",
      what, message.size(), scan, size / scan, dom, size / dom, sax, size / sax);
}

std::string call_with(const std::string &argument) {
  return R"({"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"files__write",)"
         R"("arguments":{"path":"notes/today.md","text":")" +
         argument + R"("},"_meta":{"progressToken":"p-17"}}})";
}

std::string filled(const std::string &pattern, std::size_t size) {
  std::string text;
  while (text.size() + pattern.size() <= size) text += pattern;
  return text;
}

// Returns a nested message of about 1 KB, as clients send it.
std::string small_call() {
  std::string items;
  for (int i = 0; i < 12; ++i) {
    if (i > 0) items += ',';
    items += R"({"id":)" + std::to_string(1000 + i) + R"(,"label":"item number )" +
             std::to_string(i) + R"(","done":false,"weight":0.25})";
  }
  return R"({"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"todo__update",)"
         R"("arguments":{"list":"shopping","items":[)" +
         items +
         R"(],"note":"sent from the kitchen, line one\nline two"},)"
         R"("_meta":{"progressToken":"p-17"}}})";
}

}  // namespace

int main() {
  for (const auto &v = bulkhead::mcp::json::string_end_variants(); v.count > 0;) {
    std::printf("string search: %s\n", v.list[0].name);
    break;
  }
  const std::string ascii = "The quick brown fox jumps over the lazy dog, again and again. ";
  const std::string prose = ascii + R"(It said \"no\".\n)";
  const std::string french =
      "D\xC3\xA8s No\xC3\xABl o\xC3\xB9 un z\xC3\xA9phyr ha\xC3\xAF me v\xC3\xAAt de "
      "gla\xC3\xA7ons w\xC3\xBCrmiens. ";
  const std::string japanese =
      "\xE3\x81\x84\xE3\x82\x8D\xE3\x81\xAF\xE3\x81\xAB\xE3\x81\xBB\xE3\x81\xB8\xE3\x81\xA8";
  const std::string code = R"(  if (x == \"a\") {\n    return y[\"b\"];\n  }\n)";
  row("tools/call, 1 KB structured", small_call());
  row("tools/call, 1 KB one string", call_with(filled(ascii, 900)));
  row("100 KB string, ASCII", call_with(filled(ascii, 100'000)));
  row("1 MB string, ASCII", call_with(filled(ascii, 1'000'000)));
  row("1 MB string, prose with escapes", call_with(filled(prose, 1'000'000)));
  row("1 MB string, source code", call_with(filled(code, 1'000'000)));
  row("1 MB string, French", call_with(filled(french, 1'000'000)));
  row("1 MB string, Japanese", call_with(filled(japanese, 1'000'000)));
  row("1 MB string, mixed", call_with(filled(ascii + prose + french + japanese, 1'000'000)));
  return 0;
}
