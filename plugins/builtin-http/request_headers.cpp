#include "builtin-http/request_headers.hpp"

#include <rapidjson/document.h>

namespace builtin_http {

bool read_headers(std::string_view arguments, std::vector<Header> *out, std::string *problem) {
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag>(arguments.data(), arguments.size());
  const bool is_object = !root.HasParseError() && root.IsObject() && root.HasMember("headers") &&
                         root["headers"].IsObject();
  if (!is_object || root["headers"].MemberCount() > max_request_headers) {
    *problem = "the argument \"headers\" must be an object with at most " +
               std::to_string(max_request_headers) + " strings";
    return false;
  }
  for (const auto &member : root["headers"].GetObject()) {
    std::string name(member.name.GetString(), member.name.GetStringLength());
    if (!member.value.IsString()) {
      *problem = "the header \"" + name.substr(0, 100) + "\" must be a string";
      return false;
    }
    out->push_back(
        {std::move(name), std::string(member.value.GetString(), member.value.GetStringLength())});
  }
  return true;
}

}  // namespace builtin_http
