#include <rapidjson/reader.h>

#include <string>

#include "defects.hpp"

namespace {

struct Handler : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
  double number = 0;
  bool Double(double value) {
    number = value;
    return true;
  }
};

template <unsigned flags>
bool parse(const std::string &text, Handler *handler) {
  rapidjson::StringStream stream(text.c_str());
  rapidjson::Reader reader;
  return !reader.Parse<flags>(stream, *handler).IsError();
}

// CVE-2024-38517: subtracting the number of digits after the point makes the exponent less than
// INT_MIN.
bool exponent() {
  Handler handler;
  return parse<0>("1." + std::string(100, '0') + "1e-2147483639", &handler) && handler.number == 0;
}

// The escape of a low surrogate without a preceding high surrogate becomes invalid UTF-8.
bool low_surrogate() {
  Handler handler;
  return !parse<0>("\"\\uDC00\"", &handler) && !parse<0>("\"\\udfff x\"", &handler);
}

// Numbers with more digits than a double can represent become unrelated values.
bool full_precision() {
  Handler handler;
  constexpr unsigned flags = rapidjson::kParseFullPrecisionFlag;
  return parse<flags>("18446744073709551615.5", &handler) &&
         handler.number == 18446744073709551616.0 &&
         parse<flags>("0." + std::string(400, '0') + std::string(800, '1'), &handler) &&
         handler.number == 0;
}

}  // namespace

int main() {
  probe("exponent", exponent);
  probe("low-surrogate", low_surrogate);
  probe("full-precision", full_precision);
}
