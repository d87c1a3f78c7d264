// The members of params._meta that the gateway adds to each request of a connection.
//
// Owner: the lane. Used on the reactor thread.
#pragma once

#include <string>
#include <string_view>

#include "route/message.hpp"
#include "route/splice.hpp"

namespace bulkhead {

class RequestMeta {
 public:
  // `members` contains the members of a JSON object without its braces. May be empty.
  void set(std::string_view members) {
    inside_.clear();
    whole_.clear();
    if (members.empty()) return;
    inside_.append(members).append(",");
    whole_.append(R"("_meta":{)").append(members).append("},");
  }
  bool empty() const noexcept { return whole_.empty(); }
  // Adds the members to a request whose params are a non-empty object. Requires !empty(). Never
  // allocates. If the client has sent members with the same names, they must already have been
  // removed (client_meta.hpp). `has_members` is true if the client's _meta still has other members.
  void add_to(Splice *splice, const Message &request, bool has_members) const noexcept {
    const mcp::Range meta = request.scan->meta;
    if (meta.empty()) return splice->insert(request.scan->params.begin + 1, whole_);
    const std::string_view inside(inside_);
    splice->insert(meta.begin + 1, has_members ? inside : inside.substr(0, inside.size() - 1));
  }
  // Like add_to(), but takes and returns only the params. They must be an object or empty.
  std::string added_to(std::string_view params) const {
    if (whole_.empty()) return std::string(params);
    const std::string_view meta = std::string_view(whole_).substr(0, whole_.size() - 1);
    if (params.size() <= 2) return std::string("{").append(meta).append("}");
    return std::string("{").append(whole_).append(params.substr(1));
  }

  // Returns true if this _meta key (a JSON token) is reserved by MCP.
  static bool is_reserved(std::string_view key) {
    constexpr std::string_view prefix = "\"io.modelcontextprotocol/";
    if (key.find('\\') == std::string_view::npos) return key.starts_with(prefix);
    std::string scratch;
    return mcp::unquote(key, &scratch).starts_with(prefix.substr(1));
  }

 private:
  std::string inside_, whole_;  // with a trailing comma
};

}  // namespace bulkhead
