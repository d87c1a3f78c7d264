// The texts of notifications and the result of subscriptions/listen. Used on the I/O thread.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// The member of _meta that names the listen; `id` is the id token of its request.
inline std::string subscription_member(std::string_view id) {
  return std::string(R"("io.modelcontextprotocol/subscriptionId":)").append(id);
}

// `method` follows "notifications/"; `members` are further members of params, without braces.
inline std::string listen_notification(std::string_view method, std::string_view id,
                                       std::string_view members = {}) {
  std::string text = R"({"jsonrpc":"2.0","method":"notifications/)";
  text.append(method).append(R"(","params":{"_meta":{)").append(subscription_member(id));
  text.append(members.empty() ? "}" : "},").append(members);
  return text.append("}}");
}

inline std::string listen_result(std::string_view id, std::string_view server_info) {
  return R"({"resultType":"complete","_meta":{)" + subscription_member(id) +
         R"(,"io.modelcontextprotocol/serverInfo":)" + std::string(server_info) + "}}";
}

}  // namespace bulkhead
