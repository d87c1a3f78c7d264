// Tests JSON, MessagePack, frames, requests, definitions and replies.
#include <bulkhead-aggregator/frames.hpp>
#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

#include "transport-aggregator/definitions.hpp"
#include "transport-aggregator/replies.hpp"
#include "transport-aggregator/request.hpp"

namespace json = bh::json;
using bh::aggregator::append_message;
using bh::aggregator::Codec;
using bh::aggregator::FrameCutter;
using namespace transport_aggregator;

namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

std::string packed(std::string_view text) {
  std::string out;
  const char *why = bh::msgpack::from_json(text, &out);
  INFO(text);
  REQUIRE(why == nullptr);
  return out;
}
std::string unpacked(std::string_view bytes) {
  std::string out;
  const char *why = bh::msgpack::to_json(bytes, &out);
  REQUIRE(why == nullptr);
  return out;
}
std::string refusal(std::string_view bytes) {
  std::string out;
  const char *why = bh::msgpack::to_json(bytes, &out);
  return why == nullptr ? "" : why;
}

// Returns random JSON, formatted like the output of the transcoder.
std::string random_value(std::mt19937 &random, int depth) {
  const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  switch (pick(depth > 0 ? 8 : 6)) {
    case 0:
      return "null";
    case 1:
      return pick(2) == 0 ? "true" : "false";
    case 2:
      return std::to_string(static_cast<std::int64_t>(std::uint64_t{random()} << 32 | random()) >>
                            pick(63));
    case 3:
      return std::to_string(std::uint64_t{random()} << pick(33));
    case 4:
      return std::to_string(pick(1000)) + ".5";
    case 5: {
      static constexpr const char *words[] = {"", "x", "ä€😀", "\\\"\\\\", "\\u0001\\n", "a b"};
      std::string text = "\"";
      for (unsigned n = pick(12); n > 0; --n) text += words[pick(6)];
      return text + (pick(20) == 0 ? std::string(70'000, 'y') : "") + "\"";
    }
    default:
      break;
  }
  const bool object = pick(2) == 0;
  std::string out = object ? "{" : "[";
  for (unsigned n = pick(pick(10) == 0 ? 40 : 5), i = 0; i < n; ++i) {
    if (i > 0) out += ',';
    if (object) out += "\"k" + std::to_string(i) + "\":";
    out += random_value(random, depth - 1);
  }
  return out + (object ? "}" : "]");
}

Request parsed(std::string_view text) {
  REQUIRE(json::valid(text));
  Request out;
  const RequestError error = parse_request(text, &out);
  INFO(text);
  REQUIRE(error.what == nullptr);
  return out;
}

}  // namespace

// ---- JSON --------------------------------------------------------------------------------------

TEST_CASE("JSON: valid and invalid documents are distinguished") {
  for (const char *good :
       {"0", "-0", "-1.5e+3", "1E2", "\"\"", "\"\\u00e4\\n\\/\"", "null", " [ ] ", "{}", "[[],{}]",
        "{\"a\":1,\"b\":[true,false]}", "\"\xf4\x8f\xbf\xbf\"", "\"\\ud800\"", "\t1\r\n"}) {
    INFO(good);
    CHECK(json::valid(good));
  }
  for (const char *bad : {"",
                          " ",
                          "01",
                          "-",
                          "1.",
                          ".5",
                          "1e",
                          "+1",
                          "nul",
                          "nullx",
                          "True",
                          "[1 2]",
                          "[1,]",
                          "[,1]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{1:1}",
                          "[",
                          "]",
                          "[}",
                          "{]",
                          "\"",
                          "\"\\x\"",
                          "\"\\u12g4\"",
                          "\"\n\"",
                          "\"\x80\"",
                          "\"\xc0\x80\"",
                          "\"\xed\xa0\x80\"",
                          "\"\xf4\x90\x80\x80\"",
                          "\"\xe2\x82",
                          "1 2",
                          "{} {}",
                          "[1]]",
                          "'a'"}) {
    INFO(bad);
    CHECK_FALSE(json::valid(bad));
  }
  CHECK(json::valid(nested(128)));
  CHECK_FALSE(json::valid(nested(129)));
  CHECK_FALSE(json::valid(nested(4), 3));
}

TEST_CASE("JSON: members are returned as slices and strings") {
  const std::string_view text = R"( { "a\u0062" : [ 1 , "]}\"" , {"x":{}} ] , "n" : -2.5e1 } )";
  REQUIRE(json::valid(text));
  CHECK(json::member(text, "ab") == R"([ 1 , "]}\"" , {"x":{}} ])");
  CHECK(json::member(text, "n") == "-2.5e1");
  CHECK(json::member(text, "none").empty());
  CHECK(json::member("[1]", "a").empty());
  std::vector<std::string> elements;
  CHECK(json::for_each_element(json::member(text, "ab"), [&](std::string_view each) {
    elements.emplace_back(each);
    return true;
  }));
  CHECK(elements == std::vector<std::string>{"1", R"("]}\"")", R"({"x":{}})"});
  CHECK(json::unquote(R"("\ud83d\ude00\t\u00e4\/")") == "😀\tä/");
  CHECK(json::unquote(R"("\ud800x\udc00")") == "\xef\xbf\xbdx\xef\xbf\xbd");
  std::string quoted;
  json::append_quoted(&quoted, "a\"\\\x01ä");
  CHECK(quoted == "\"a\\\"\\\\\\u0001ä\"");
}

// ---- MessagePack -------------------------------------------------------------------------------

TEST_CASE("MessagePack: values are encoded as in the specification") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"null", "\xc0"},
      {"true", "\xc3"},
      {"127", "\x7f"},
      {"128", "\xcc\x80"},
      {"256", std::string("\xcd\x01\x00", 3)},
      {"4294967295", "\xce\xff\xff\xff\xff"},
      {"18446744073709551615", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"},
      {"-32", "\xe0"},
      {"-33", "\xd0\xdf"},
      {"-129", "\xd1\xff\x7f"},
      {"-9223372036854775808", std::string("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9)},
      {"1.5", std::string("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 9)},
      {"\"a\"", "\xa1\x61"},
      {R"({"id":7,"ok":[]})", std::string("\x82\xa2id\x07\xa2ok\x90", 9)}};
  for (const auto &[text, bytes] : table) {
    INFO(text);
    CHECK(packed(text) == bytes);
    CHECK(unpacked(bytes) == text);
  }
  CHECK(unpacked(std::string("\xca\x3f\xc0\x00\x00", 5)) == "1.5");
  CHECK(unpacked(packed("2.0")) == "2.0");  // a number with a fraction keeps its type
  CHECK(unpacked(packed("-0")) == "-0.0");
  CHECK(unpacked(packed("1e-400")) == "0.0");
  CHECK(unpacked(packed("0." + std::string(400, '0') + "1e10")) == "0.0");
  CHECK(unpacked(packed("18446744073709551616")) == "18446744073709551616.0");
  std::string out;
  CHECK(bh::msgpack::from_json("1e400", &out) != nullptr);
  CHECK(bh::msgpack::from_json("-1" + std::string(400, '0') + ".5", &out) != nullptr);
  CHECK(bh::msgpack::from_json("[1", &out) != nullptr);
}

TEST_CASE("MessagePack: random values are unchanged after encoding and decoding") {
  std::mt19937 random(20261122);
  for (int i = 0; i < 400; ++i) {
    const std::string text = random_value(random, 6);
    const std::string bytes = packed(text);
    REQUIRE(unpacked(bytes) == text);
    REQUIRE(packed(unpacked(bytes)) == bytes);
  }
}

TEST_CASE("MessagePack: malformed input is rejected, whatever size it claims") {
  using namespace std::string_literals;
  CHECK(refusal("\xdd\xff\xff\xff\xff"s) == "it is cut off");
  CHECK(refusal("\xdf\x80\x00\x00\x00\x01"s) == "it is cut off");
  CHECK(refusal("\xdb\xff\xff\xff\xff"s
                "abc") == "it is cut off");
  CHECK(refusal("") == "it is cut off");
  CHECK(refusal("\xcd\x01") == "it is cut off");
  CHECK(refusal("\x81\xa1\x61") == "it is cut off");
  CHECK(refusal("\xc0\xc0") == "bytes follow the value");
  CHECK(refusal("\x81\x01\x02") == "a map key is not text");
  CHECK(refusal("\xa2\xc0\x80") == "it contains text that is not UTF-8");
  CHECK(refusal("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"s) ==
        "it contains a number that is not finite");
  for (const std::string &bytes : {"\xc4\x01x"s, "\xd4\x01x"s, "\xc1"s, "\xc7\x01\x01x"s}) {
    CHECK(refusal(bytes).starts_with("it contains binary data"));
  }
  CHECK(unpacked(std::string(127, '\x91') + "\x90") == nested(128));
  CHECK(refusal(std::string(128, '\x91') + "\x90") == "it is nested too deeply");
  CHECK(refusal(std::string(10'000'000, '\x91')) == "it is nested too deeply");
  std::string out;
  CHECK(bh::msgpack::to_json("\xdc\x04\x00"s + std::string(1024, '\x01'), &out, 100) ==
        std::string_view("its JSON would be too large"));
}

TEST_CASE("MessagePack: random bytes are rejected or converted to JSON") {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes(1 + random() % 24, '\0');
    for (char &c : bytes) c = static_cast<char>(random());
    std::string out;
    if (bh::msgpack::to_json(bytes, &out) == nullptr) REQUIRE(json::valid(out));
  }
}

// ---- frames ------------------------------------------------------------------------------------

namespace {

// Feeds the stream to a FrameCutter in pieces of the given size and returns the messages. "!" is a
// message that is too long, and "X" means that the stream has become unreadable.
std::vector<std::string> cut(std::string_view stream, std::size_t piece, Codec codec) {
  FrameCutter cutter(codec);
  std::vector<std::string> out;
  while (!stream.empty()) {
    cutter.add(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    for (;;) {
      const auto next = cutter.next();
      if (next == FrameCutter::Next::more) break;
      if (next == FrameCutter::Next::broken) {
        out.emplace_back("X");
        return out;
      }
      out.emplace_back(next == FrameCutter::Next::too_long ? "!" : std::string(cutter.message()));
    }
  }
  if (cutter.last_line()) out.emplace_back(cutter.message());
  return out;
}

}  // namespace

TEST_CASE(
    "A05 lines of up to 1 MiB are read, however they are split, and the next line is read after a "
    "longer one") {
  const std::size_t piece = GENERATE(1, 7, 4096, 300'000);
  if (piece > 1) {
    const std::string fits(1'048'576, 'a'), over(1'048'577, 'b');
    CHECK(cut(fits + "\n" + over + "\n[1]\n", piece, Codec::automatic) ==
          std::vector<std::string>{fits, "!", "[1]"});
    CHECK(cut("[0]\n" + over + over + over + "\n[1]", piece, Codec::automatic) ==
          std::vector<std::string>{"[0]", "!", "[1]"});
  }
  CHECK(cut("\n  [1]\r\n\n{\"a\":2}\n 3", piece, Codec::automatic) ==
        std::vector<std::string>{"[1]", "{\"a\":2}", "3"});
}

TEST_CASE("A06 packed messages of up to 16 MiB are read, however they are split") {
  const std::size_t piece = GENERATE(1, 7, 4096, 300'000);
  std::string stream;
  REQUIRE(append_message(Codec::msgpack, R"([{"name":"a"}])", &stream) == nullptr);
  REQUIRE(append_message(Codec::msgpack, R"({"id":1})", &stream) == nullptr);
  const auto messages = cut(stream, piece, Codec::automatic);
  REQUIRE(messages.size() == 2);
  CHECK(unpacked(messages[0]) == R"([{"name":"a"}])");
  CHECK(unpacked(messages[1]) == R"({"id":1})");
  CHECK(cut(std::string("\x01\x00\x00\x01z", 5), piece, Codec::automatic) ==
        std::vector<std::string>{"X"});
  CHECK(cut(std::string("\x01\x00\x00\x00z", 5), piece, Codec::automatic).empty());
  CHECK(cut("\x02\x00\x00\x00", piece, Codec::msgpack) == std::vector<std::string>{});
}

TEST_CASE("messages above the limit are rejected without partial output") {
  std::string out = "before";
  const std::string text = "\"" + std::string(1'048'576, 'x') + "\"";
  CHECK(append_message(Codec::ndjson, text, &out) != nullptr);
  CHECK(out == "before");
  CHECK(append_message(Codec::msgpack, text, &out) == nullptr);
  out = "before";
  const std::string large = "\"" + std::string(16u << 20, 'x') + "\"";
  CHECK(append_message(Codec::msgpack, large, &out) != nullptr);
  CHECK(append_message(Codec::msgpack, "[", &out) != nullptr);
  CHECK(out == "before");
  CHECK(append_message(Codec::ndjson, "[\n1\n]", &out) == nullptr);
  CHECK(out == "before[ 1 ]\n");
}

// ---- requests, definitions, replies ------------------------------------------------------------

TEST_CASE("requests: all nine methods are parsed") {
  CHECK(parsed(R"({"id":0,"method":"list_servers"})").method == Method::list_servers);
  CHECK(parsed(R"({"id":1,"method":"list_tools","params":null})").method == Method::list_tools);
  CHECK(parsed(R"({"id":1,"method":"list_resources","params":{}})").method ==
        Method::list_resources);
  CHECK(parsed(R"({"id":1,"method":"list_prompts"})").method == Method::list_prompts);
  CHECK(parsed(R"({"id":1,"method":"shutdown"})").method == Method::shutdown);
  const Request call = parsed(
      R"({"id":18446744073709551615,"method":"call_tool","params":{"name":"a__b","arguments":{"x" : 1.50}}})");
  CHECK(call.id == 18446744073709551615u);
  CHECK(call.target == "\"a__b\"");
  CHECK(call.arguments == R"({"x" : 1.50})");
  CHECK(parsed(R"({"id":1,"method":"read_resource","params":{"uri":"capsem://a/b"}})").target ==
        "\"capsem://a/b\"");
  CHECK(parsed(R"({"id":1,"method":"get_prompt","params":{"name":"p"}})").target == "\"p\"");
  CHECK(parsed(R"({"id":1,"method":"refresh","params":{"servers":[ ]}})").servers == "[ ]");
}

TEST_CASE("requests: arguments that are empty or not an object are dropped") {
  const char *arguments = GENERATE("{}", "{ }", "[1]", "null", "\"text\"", "3");
  const Request call = parsed(std::string(R"({"id":1,"method":"call_tool","params":{"name":"a",)") +
                              R"("arguments":)" + arguments + "}}");
  CHECK(call.arguments.empty());
}

TEST_CASE("A21 requests: invalid requests are reported, with a reply if they have an id") {
  struct Case {
    const char *text;
    bool has_id;
  };
  const Case each =
      GENERATE(Case{"[]", false}, Case{"1", false}, Case{R"({"method":"list_tools"})", false},
               Case{R"({"id":"1","method":"list_tools"})", false},
               Case{R"({"id":-1,"method":"list_tools"})", false},
               Case{R"({"id":1.0,"method":"list_tools"})", false},
               Case{R"({"id":18446744073709551616,"method":"list_tools"})", false},
               Case{R"({"id":1,"id":2,"method":"list_tools"})", false}, Case{R"({"id":1})", true},
               Case{R"({"id":1,"method":"list_tool"})", true},
               Case{R"({"id":1,"method":"call_tool"})", true},
               Case{R"({"id":1,"method":"call_tool","params":{"name":1}})", true},
               Case{R"({"id":1,"method":"call_tool","params":["a"]})", true},
               Case{R"({"id":1,"method":"call_tool","params":{"name":"a","name":"b"}})", true},
               Case{R"({"id":1,"method":"read_resource","params":{}})", true},
               Case{R"({"id":1,"method":"refresh","params":{"servers":{}}})", true});
  INFO(each.text);
  REQUIRE(json::valid(each.text));
  Request request;
  const RequestError error = parse_request(each.text, &request);
  CHECK(error.what != nullptr);
  CHECK(error.has_id == each.has_id);
}

TEST_CASE("definitions: empty values are removed, and other values are kept") {
  std::vector<std::string> notes;
  CHECK(translate_definitions(
            R"([{"name":"a","url":"","command":"x","args":[ ],"env":{},"headers":{},
               "bearer_token":null,"enabled":true,"source":"manual","pool_safe_tools":[]},
               {"name":"b","url":"http://h/","command":null,"headers":{"X":"y"},"timeout_secs":30}])",
            {}, &notes) ==
        R"([{"name":"a","command":"x","enabled":true,"source":"manual"},)"
        R"({"name":"b","url":"http://h/","headers":{"X":"y"},"timeout":30000}])");
  CHECK(notes.empty());
  CHECK(translate_definitions("[]", {}, &notes) == "[]");
  CHECK(
      translate_definitions(
          R"([1,{"name":"","auth":{"kind":"bearer","credential_ref":"CANARY"},"timeout_secs":"x"}])",
          {}, &notes) == R"([{"name":""}])");
  CHECK(notes.size() == 3);
  for (const std::string &note : notes) CHECK(note.find("CANARY") == std::string::npos);
  notes.clear();
  for (const char *seconds : {"0", "1.5", "-1", "86401"}) {
    CHECK(translate_definitions(std::string(R"([{"name":"a","timeout_secs":)") + seconds + "}]", {},
                                &notes) == R"([{"name":"a"}])");
  }
  CHECK(notes.size() == 4);
}

TEST_CASE("definitions: slow starters get the longer time-out, unless they set one") {
  std::vector<std::string> notes;
  const SlowStarters slow{{"npx", "uvx"}, 120'000};
  CHECK(translate_definitions(
            R"([{"command":"npx"},{"command":"/usr/bin/uvx","connect_timeout":5},{"command":"x"},)"
            R"({"command":"/a/uvx","startup_timeout_sec":9},{"url":"npx"}])",
            slow, &notes) == R"([{"command":"npx","connect_timeout":120000},)"
                             R"({"command":"/usr/bin/uvx","connect_timeout":5},{"command":"x"},)"
                             R"({"command":"/a/uvx","startup_timeout_sec":9},{"url":"npx"}])");
}

TEST_CASE("A07 A08 A09 replies: records have the fields of the protocol") {
  CHECK(error_reply(7, "no \"x\"") == R"({"id":7,"error":"no \"x\""})");
  CHECK(servers_reply(1, "[]") == R"({"id":1,"servers":[]})");
  CHECK(
      servers_reply(
          1,
          R"([{"name":"a","type":"stdio","url":"","enabled":true,"source":"manual","is_stdio":true,)"
          R"("state":"failed","reason":"gone","connected":false,"restarts":0,"tool_count":1,)"
          R"("resource_count":2,"prompt_count":3}])") ==
      R"({"id":1,"servers":[{"name":"a","url":"","enabled":true,"source":"manual",)"
      R"("is_stdio":true,"connected":false,"tool_count":1,"resource_count":2,"prompt_count":3,)"
      R"("reason":"gone"}]})");
  CHECK(
      items_reply(
          2, Method::list_tools,
          R"([{"server":"a","name":"a__t","original_name":"t","timeout_ms":1500,"item":{"name":"t",)"
          R"("description":"d","inputSchema":{"type":"object"},"annotations":{"title":"T",)"
          R"("readOnlyHint":true,"other":1}}},{"server":"a","name":"a__u","original_name":"u",)"
          R"("item":{"name":"u","inputSchema":{}}}])") ==
      R"({"id":2,"tools":[{"namespaced_name":"a__t","original_name":"t","description":"d",)"
      R"("input_schema":{"type":"object"},"server_name":"a","annotations":{"title":"T",)"
      R"("read_only_hint":true},"timeout_secs":2},{"namespaced_name":"a__u","original_name":"u",)"
      R"("description":null,"input_schema":{},"server_name":"a","annotations":null}]})");
  CHECK(items_reply(3, Method::list_resources,
                    R"([{"server":"a","name":"capsem://a/file:///x","original_name":"file:///x",)"
                    R"("item":{"uri":"file:///x","name":"X","mimeType":"text/plain"}}])") ==
        R"({"id":3,"resources":[{"namespaced_uri":"capsem://a/file:///x",)"
        R"("original_uri":"file:///x","name":"X","description":null,"mime_type":"text/plain",)"
        R"("server_name":"a"}]})");
  CHECK(items_reply(4, Method::list_prompts,
                    R"([{"server":"a","name":"a__p","original_name":"p","item":{"name":"p",)"
                    R"("arguments":[{"name":"x"}]}}])") ==
        R"({"id":4,"prompts":[{"namespaced_name":"a__p","original_name":"p","description":null,)"
        R"("arguments":[{"name":"x"}],"server_name":"a"}]})");
}
