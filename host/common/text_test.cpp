#include "common/text.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead::program;

TEST_CASE("text from a server cannot control the terminal") {
  CHECK(printable("a\033[2Jb") == "a?[2Jb");
  CHECK(printable("two\nlines\t") == "two?lines?");
  CHECK(printable("two\nlines\t\r", true) == "two\nlines\t?");
  CHECK(printable("na\xC3\xAFve") == "na\xC3\xAFve");
  CHECK(printable("\xC2\x9B"
                  "2J") == "?2J");  // C1 control character
  CHECK(printable("\xE2\x80\xAE"
                  "gpj.exe") == "?gpj.exe");              // right-to-left override
  CHECK(printable("\xC3(\xED\xA0\x80\xF5") == "?(????");  // invalid, surrogate, out of range
  CHECK(printable("\xE2\x82") == "??");
  CHECK(printable("\xC0\x80") == "??");  // overlong encoding
}

TEST_CASE("a line is truncated at a column and never inside a character") {
  CHECK(first_line("\n one \ntwo", 10) == "one");
  CHECK(first_line("abcdef", 6) == "abcdef");
  CHECK(first_line("abcdef", 5) == "abcd…");
  CHECK(first_line("äöüäöü", 4) == "äöü…");
  CHECK(first_line("", 4).empty());
}

TEST_CASE("nouns are plural except after 1") {
  CHECK(counted(0, "tool") == "0 tools");
  CHECK(counted(1, "tool") == "1 tool");
  CHECK(counted(12, "recorded call") == "12 recorded calls");
}

TEST_CASE("durations are formatted with one or two units") {
  CHECK(duration(0) == "0 ms");
  CHECK(duration(999) == "999 ms");
  CHECK(duration(59'999) == "59 s");
  CHECK(duration(60'000) == "1 min");
  CHECK(duration(192'000) == "3 min 12 s");
  CHECK(duration(7'500'000) == "2 h 5 min");
  CHECK(duration(90'000'000) == "1 d 1 h");
}

TEST_CASE("a table keeps empty columns if requested") {
  Table table({"x", "longer", ">n"}, Table::Empty::keep);
  CHECK(table.str() == "x  longer  n\n");
  table.add({"", "", "1"});
  table.add({"a", "", "22"});
  CHECK(table.str() ==
        "x  longer   n\n"
        "            1\n"
        "a          22\n");
}

TEST_CASE("a table aligns its columns and omits empty columns") {
  Table table({"NAME", ">N", "EMPTY", "WHY"});
  table.add({"ä", "5", "", "because"});
  table.add({"longer", "1234"});
  CHECK(table.str("  ") ==
        "  NAME       N  WHY\n"
        "  ä          5  because\n"
        "  longer  1234\n");
}

TEST_CASE("a growing table prints its headers once and stays aligned") {
  Table table({"NAME", ">N", "NOTE"});
  CHECK(table.take_rows() == "NAME  N  NOTE\n");
  CHECK(table.take_rows().empty());
  table.add({"a", "1"});
  table.add({"longer", "22", "x"});
  CHECK(table.take_rows() ==
        "a        1\n"
        "longer  22  x\n");
  table.add({"b", "3", "y"});
  CHECK(table.take_rows() == "b        3  y\n");
  CHECK(table.empty());
}
