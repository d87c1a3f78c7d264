// The members of params._meta that the gateway adds to each request of a connection.
//
// Used on the I/O thread. Owned by the lane.
#pragma once

#include <string>
#include <string_view>

#include "mcp/for_each.hpp"
#include "route/message.hpp"
#include "route/removed_members.hpp"
#include "route/splice.hpp"

namespace bulkhead {

class RequestMeta {
 public:
  // `members` are the members of a JSON object, without its braces; empty if there are none.
  void set(std::string_view members) {
    inside_.clear();
    whole_.clear();
    if (members.empty()) return;
    inside_.append(members).append(",");
    whole_.append(R"("_meta":{)").append(members).append("},");
  }
  bool empty() const noexcept { return whole_.empty(); }
  // Adds the members to a request whose params are a non-empty object. Requires !empty(). The
  // client's own members with a reserved name are removed: they concern the client's connection,
  // and a server could prefer them. Allocates only for names with escapes.
  void add_to(Splice *splice, const Message &request) const {
    const mcp::Range meta = request.scan->meta;
    if (meta.empty()) return splice->insert(request.scan->params.begin + 1, whole_);
    RemovedMembers removed(request.bytes);
    bool others = false, fits = true;
    mcp::for_each_member(request[meta], [&](std::string_view key, std::string_view value) {
      if (!is_reserved(key)) {
        others = true;
        return;
      }
      const char *start = request.bytes.data();
      fits = fits && removed.add({static_cast<std::uint32_t>(key.data() - start),
                                  static_cast<std::uint32_t>(value.data() + value.size() - start)});
    });
    const std::string_view inside(inside_);
    splice->insert(meta.begin + 1, others ? inside : inside.substr(0, inside.size() - 1));
    for (const mcp::Range range : removed.ranges()) splice->remove(range);
    if (!fits) splice->reject();
  }
  // The same for params alone, which are an object or empty.
  std::string added_to(std::string_view params) const {
    if (whole_.empty()) return std::string(params);
    const std::string_view meta = std::string_view(whole_).substr(0, whole_.size() - 1);
    if (params.size() <= 2) return std::string("{").append(meta).append("}");
    return std::string("{").append(whole_).append(params.substr(1));
  }

  // Returns true if this name of a member of _meta (a JSON token) belongs to MCP.
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
