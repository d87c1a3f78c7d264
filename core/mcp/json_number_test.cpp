#include "mcp/json_number.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace bulkhead::mcp;

TEST_CASE("numbers: equal values are equal in any notation, and different values are not") {
  const std::string many(400, '0');
  const std::vector<std::vector<std::string>> values = {
      {"0", "-0", "0.0", "-0.000", "0e5", "0E-7", "0e99999999999999999999", "0." + many},
      {"42", "42.0", "4.2e1", "420e-1", "0.42E+2", "42.000e0", "0.00042e5", "42e00000000000000000"},
      {"-42", "-42.0", "-4.2e+1"},
      {"10", "1e1", "1.0E1", "10.0", "0.01e3"},
      {"1", "1.0", "10e-1", "1" + many + "e-400"},
      {"1" + many, "1e400", "10e399"},
      {"0.1", "1e-1", "0.10", "0.0001e3"},
      {"0.1000000000000000055511151231257827"},  // equals 0.1 as a double
      {"9007199254740993", "9007199254740993.0"},
      {"9007199254740992"},
      {"1e999999999999999"},
      {"1e999999999999998", "10e999999999999997"},
      {"1.01"},
      {"10.1", "1.01e1"},
      {"101"}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string &a : values[i]) {
      REQUIRE(is_json_number(a));
      for (std::size_t k = 0; k < values.size(); ++k) {
        for (const std::string &b : values[k]) {
          INFO(a << " and " << b);
          CHECK((Decimal(a) == Decimal(b)) == (i == k));
        }
      }
    }
  }
}

TEST_CASE("numbers: an exponent that is too long is compared as written") {
  CHECK(Decimal("1e9999999999999999") == Decimal("1e9999999999999999"));
  CHECK_FALSE(Decimal("1e9999999999999999") == Decimal("1.0e9999999999999999"));
  CHECK_FALSE(Decimal("1e9999999999999999") == Decimal("1e-9999999999999999"));
  CHECK_FALSE(Decimal("1e9999999999999999") == Decimal("1"));
  CHECK_FALSE(Decimal("1e9999999999999999").is_integer());
}

TEST_CASE("numbers: safe integers are exact") {
  CHECK(Decimal("42").safe_integer() == 42);
  CHECK(Decimal("-4.2e1").safe_integer() == -42);
  CHECK(Decimal("-0").safe_integer() == 0);
  CHECK(Decimal("9007199254740991").safe_integer() == 9007199254740991);
  CHECK(Decimal("-9007199254740991").safe_integer() == -9007199254740991);
  CHECK(Decimal("9e15").safe_integer() == 9000000000000000);
  for (const char *none : {"9007199254740992", "-9007199254740992", "1e16", "1e400", "1.5", "1e-1",
                           "99999999999999999999999", "1e99999999999999999"}) {
    INFO(none);
    CHECK_FALSE(Decimal(none).safe_integer());
  }
}

TEST_CASE("numbers: only JSON's grammar is a number") {
  for (const char *bad : {"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x10", " 1", "1 ", "1,0",
                          "NaN", "Infinity", "--1", "1_000", "true"}) {
    INFO(bad);
    CHECK_FALSE(is_json_number(bad));
  }
}
