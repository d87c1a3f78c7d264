#include <catch2/catch.hpp>

#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

using namespace tool_kit;

TEST_CASE("arguments are read with their types") {
  Arguments a(R"({"path":"a\u00e9","n":7,"big":5.0,"on":true,"none":null,"how":"b"})");
  CHECK(a.text("path") == "a\xC3\xA9");
  CHECK(a.text("none", "x") == "x");
  CHECK(a.text("absent", "y") == "y");
  CHECK(a.whole("n", 1, 0, 10) == 7);
  CHECK(a.whole("big", 1, 0, 10) == 5);
  CHECK(a.whole("absent", 3, 0, 10) == 3);
  CHECK(a.flag("on", false));
  CHECK(a.choice("how", {"a", "b"}) == "b");
  CHECK(a.choice("absent", {"a", "b"}) == "a");
  CHECK(a.problem().empty());
  CHECK(Arguments("").problem().empty());
  CHECK(Arguments("{}").problem().empty());
}

TEST_CASE("arrays of strings are accepted, and other arrays are rejected") {
  Arguments a(R"({"a":["x","y\n"],"b":[]})");
  CHECK(a.texts("a") == std::vector<std::string>{"x", "y\n"});
  CHECK(a.texts("b").empty());
  CHECK(a.texts("absent").empty());
  CHECK(a.problem().empty());
  for (const char *json : {R"({"v":[1]})", R"({"v":[["x"]]})", R"({"v":[{"x":"y"}]})",
                           R"({"v":["x",null]})", R"({"v":[null,"x"]})", R"({"v":"x"})"}) {
    Arguments one(json);
    one.texts("v");
    CHECK(one.problem() == "the argument \"v\" must be an array of strings");
  }
}

TEST_CASE("argument errors are reported") {
  const auto problem = [](const char *json) {
    Arguments a(json);
    a.text("path");
    a.whole("n", 1, 1, 10);
    a.flag("on", false);
    a.choice("how", {"a", "b"});
    return a.problem();
  };
  CHECK(problem("[]").find("not a valid JSON object") != std::string::npos);
  CHECK(problem("3").find("not a valid JSON object") != std::string::npos);
  CHECK(problem("{").find("not a valid JSON object") != std::string::npos);
  CHECK(problem("{\"path\":\"\xFF\"}").find("not a valid JSON object") != std::string::npos);
  std::string many = R"({"n":1)";
  for (int i = 1; i < 64; ++i) many += ",\"a" + std::to_string(i) + "\":0";
  CHECK(problem((many + "}").c_str()).find("64 arguments") == std::string::npos);
  CHECK(problem((many + ",\"b\":0}").c_str()) == "there are more than 64 arguments");
  CHECK(problem(R"({"path":5})") == "the argument \"path\" must be a string");
  CHECK(problem(R"({"path":["a"]})") == "the argument \"path\" must be a string");
  CHECK(problem(R"({"path":{"a":{}}})") == "the argument \"path\" must be a string");
  for (const char *json :
       {R"({"n":0})", R"({"n":11})", R"({"n":-1})", R"({"n":1.5})", R"({"n":"1"})", R"({"n":1e99})",
        R"({"n":99999999999999999999999999})"}) {
    INFO(json);
    CHECK(problem(json) == "the argument \"n\" must be a whole number from 1 to 10");
  }
  CHECK(problem(R"({"n":1e999999999999999999})") ==
        "the arguments contain a number that is too large");
  CHECK(problem(R"({"on":1})") == "the argument \"on\" must be true or false");
  CHECK(problem(R"({"how":"c"})") == "the argument \"how\" must be one of: a, b");
  CHECK(problem(R"({"other":1})") == "unknown argument \"other\"");
  CHECK(problem(R"({"path":"a","path":"b"})") ==
        "the argument \"path\" is specified more than once");
}

TEST_CASE("results are valid JSON") {
  CHECK(text_result("x") == R"({"content":[{"type":"text","text":"x"}]})");
  CHECK(text_result("x", "{}") ==
        R"({"content":[{"type":"text","text":"x"}],"structuredContent":{}})");
  CHECK(error_result("no") == R"({"content":[{"type":"text","text":"Error: no"}],"isError":true})");
}
