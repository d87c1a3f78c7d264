#include "definition.hpp"

#include <rapidjson/document.h>

#include <array>

#include "bulkhead/cpp/basics.hpp"
#include "http-codec/text.hpp"

namespace connector_http {

using bh::equal_ignoring_case;
namespace {

constexpr std::size_t headers_max = 100;
constexpr std::size_t header_bytes_max = 16 * 1024;

// Server definitions must not contain these headers, because the plugin or HTTP framing sets them.
constexpr std::array reserved{"accept",         "content-encoding",
                              "content-length", "content-type",
                              "connection",     "expect",
                              "host",           "keep-alive",
                              "last-event-id",  "mcp-protocol-version",
                              "mcp-session-id", "te",
                              "trailer",        "transfer-encoding",
                              "upgrade",        "proxy-connection"};

bool is_token(std::string_view s) {
  if (s.empty() || s.size() > 256) return false;
  for (char c : s) {
    const bool alnum = bh::is_letter_or_digit(c);
    if (!alnum && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos)
      return false;
  }
  return true;
}

bool is_header_value(std::string_view s) {
  if (s.size() > header_bytes_max) return false;
  for (char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if ((u < 0x20 && u != '\t') || u == 0x7F) return false;
  }
  return true;
}

bh_status refuse(bh_error *error, const std::string &text) {
  return bh::fail(error, BH_E_INVALID, text);
}

bh_status add_header(std::string_view name, std::string_view value, Definition *out,
                     bh_error *error) {
  if (!is_token(name)) return refuse(error, "headers: a name is empty or malformed");
  for (std::string_view r : reserved) {
    if (equal_ignoring_case(name, r)) {
      return refuse(error, "headers: " + std::string(name) + " is set by the gateway");
    }
  }
  if (!is_header_value(value)) {
    return refuse(error, "headers: the value of " + std::string(name) +
                             " contains a control byte or is longer than 16 KiB");
  }
  if (equal_ignoring_case(name, "user-agent")) out->has_user_agent = true;
  out->headers.append(name).append(": ").append(value).append("\r\n");
  return BH_OK;
}

}  // namespace

bh_status parse_definition(std::string_view json, Definition *out, bh_error *error) {
  rapidjson::Document doc;
  doc.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(json.data(),
                                                                                    json.size());
  if (doc.HasParseError() || !doc.IsObject())
    return refuse(error, "the definition is not an object");
  const auto type = doc.FindMember("type");
  if (type != doc.MemberEnd() && type->value.IsString()) {
    const std::string_view name(type->value.GetString(), type->value.GetStringLength());
    if (name != "http" && name != "sse" && name != "streamable-http" && name != "streamableHttp") {
      return refuse(error, "type must be http or sse");
    }
    out->http_sse_only = name == "sse";
  }
  const auto url = doc.FindMember("url");
  if (url == doc.MemberEnd() || !url->value.IsString()) return refuse(error, "url is missing");
  std::string why;
  auto parsed =
      parse_url(std::string_view(url->value.GetString(), url->value.GetStringLength()), &why);
  if (!parsed) return refuse(error, why);
  out->url = std::move(*parsed);
  const auto headers = doc.FindMember("headers");
  if (headers == doc.MemberEnd() || headers->value.IsNull()) return BH_OK;
  if (!headers->value.IsObject() || headers->value.MemberCount() > headers_max) {
    return refuse(error, "headers must be an object with at most 100 strings");
  }
  for (const auto &member : headers->value.GetObject()) {
    const std::string_view name(member.name.GetString(), member.name.GetStringLength());
    if (!member.value.IsString()) return refuse(error, "headers: a value is not a string");
    const std::string_view value(member.value.GetString(), member.value.GetStringLength());
    if (bh_status s = add_header(name, value, out, error); s != BH_OK) return s;
  }
  return BH_OK;
}

}  // namespace connector_http
