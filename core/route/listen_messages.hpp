// Composes the notifications and the result of subscriptions/listen. Used on the reactor thread.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns the member of _meta that identifies the listen request. `id` is the id token of that
// request.
inline std::string subscription_member(std::string_view id) {
  return std::string(R"("io.modelcontextprotocol/subscriptionId":)").append(id);
}

// `method` is the part after "notifications/". `members` are the other members of params, without
// braces.
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
