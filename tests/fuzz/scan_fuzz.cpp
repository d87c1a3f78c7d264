// Fuzzes the message scanner: compares it with RapidJSON and simdjson, compares its string search
// with the scalar variant, and checks the invariants of each range that it returns.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/json_cursor.hpp"
#include "mcp/other_parsers.hpp"
#include "mcp/scan.hpp"

namespace {

using namespace bulkhead::mcp;
using bh::json::append_quoted;
using bulkhead::mcp::testing::Verdict;

void require(bool ok, const char *what) {
  if (ok) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Checks that all variants find the same end of a string from every possible start.
void compare_variants(std::string_view text) {
  static const json::StringEndVariants variants = json::string_end_variants();
  const char *end = text.data() + text.size();
  unsigned places = 0;
  for (std::size_t at = 0; at < text.size() && places < 64; ++at) {
    if (at != 0 && text[at - 1] != '"') continue;
    ++places;
    json::Fault expected;
    const char *p = text.data() + at;
    const char *answer = variants.list[variants.count - 1].function(p, end, &expected);
    for (unsigned i = 0; i + 1 < variants.count; ++i) {
      json::Fault fault;
      require(variants.list[i].function(p, end, &fault) == answer, variants.list[i].name);
      require(fault.at == expected.at, "the same fault");
    }
  }
}

void compare_libraries(std::string_view text, bool ours) {
  static simdjson::dom::parser parser;
  const Verdict simd = bulkhead::mcp::testing::ask_simdjson(&parser, text);
  const Verdict rapid = bulkhead::mcp::testing::ask_rapidjson(text);
  if (simd != Verdict::unsure) require(ours == (simd == Verdict::valid), "simdjson agrees");
  if (rapid != Verdict::unsure) require(ours == (rapid == Verdict::valid), "RapidJSON agrees");
}

void check_range(std::string_view message, Range range) {
  require(range.begin <= range.end && range.end <= message.size(), "a range is in the message");
  if (range.empty()) return;
  const std::string_view value = range.in(message);
  require(valid_json(value, 1024), "a range is a value");
  require(value.find_first_of(" \t\r\n") != 0 && value.find_last_of(" \t\r\n") != value.size() - 1,
          "a range has no space around it");
}

void check_scan(std::string_view message, const Scan &s) {
  for (const Range range : {s.id,
                            s.method_text,
                            s.params,
                            s.result,
                            s.error,
                            s.name,
                            s.uri,
                            s.cursor,
                            s.arguments,
                            s.meta,
                            s.progress_token,
                            s.token,
                            s.request_id,
                            s.level,
                            s.elicitation_id,
                            s.ref_type,
                            s.ref_name,
                            s.ref_uri,
                            s.protocol_version,
                            s.capabilities,
                            s.client_info,
                            s.argument,
                            s.context}) {
    check_range(message, range);
  }
  if (s.kind == Kind::batch) return;
  // For each name, the scanner must return the first member.
  require(member(message, "method") == s.method_text.in(message), "the method is the member");
  require(member(message, "params") == s.params.in(message), "params is the member");
  require(member(message, "id") == s.id.in(message), "id is the member");
  const std::string_view params = s.params.in(message);
  if (params.empty() || params.front() != '{') return;
  require(member(params, "arguments") == s.arguments.in(message), "arguments is the member");
  if (!s.name.empty()) require(member(params, "name") == s.name.in(message), "name is the member");
  if (!s.meta.empty())
    require(member(params, "_meta") == s.meta.in(message), "_meta is the member");
}

// Removes the members that are to be dropped. The remaining message must have the same kind and
// nothing else to drop.
void check_dropped(std::string_view message, const Scan &s) {
  if (s.kind == Kind::batch) return;
  const std::string left = without_dropped_members(message, s, true);
  Scan again;
  ScanError error;
  require(bulkhead::mcp::scan(left, &again, &error), "what is left is a message");
  require(again.kind == s.kind && again.method == s.method, "of the same kind");
  require(again.id.in(left) == s.id.in(message), "with the same id");
  require(again.result.in(left) == s.result.in(message), "with the same result");
  require(again.arguments.in(left) == s.arguments.in(message) || s.unknown_params != 0,
          "with the same arguments");
  require(!again.has_to_drop() && again.unknown_params == 0, "with nothing to drop");
  const std::string extra = extra_params(message, s);
  require(extra.empty() == !s.extra_params, "extra members are reported");
  require(extra.empty() || valid_json(extra, 1024), "extra members are an object");
  require(s.unknown_params == 0 || !unknown_param_names(message, s).empty(), "and named");
}

void check_helpers(std::string_view text) {
  has_duplicate_members(text);
  std::string scratch;
  const std::string once(unquote(text, &scratch));
  std::string quoted;
  append_quoted(&quoted, once);
  require(valid_json(quoted), "a quoted text is a string");
  std::string again;
  require(unquote(quoted, &again) == once || text.front() != '"', "quoting keeps the text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size) {
  // A copy of exactly this size, so that the sanitizer detects reads beyond its end.
  const std::vector<char> exact(data, data + size);
  const std::string_view text(exact.data(), exact.size());
  const bool valid = valid_json(text, 1024);
  compare_variants(text);
  compare_libraries(text, valid);
  if (valid) check_helpers(text);
  std::string quoted;
  append_quoted(&quoted, text);
  require(valid_json(quoted), "any bytes can be quoted");

  Scan scan;
  ScanError error;
  if (bulkhead::mcp::scan(text, &scan, &error)) {
    require(valid, "a message is JSON");
    check_scan(text, scan);
    check_dropped(text, scan);
  } else {
    require(error.code == -32700 || error.code == -32600, "a known code");
    require(error.offset <= text.size(), "the fault is in the message");
    check_range(text, error.id);
    require(error.code == -32600 || !valid || error.offset > 0 || text.empty(), "JSON is JSON");
  }
  return 0;
}
