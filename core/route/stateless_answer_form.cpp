#include <algorithm>
#include <array>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/member_value.hpp"
#include "route/answer_form.hpp"
#include "route/call_input.hpp"
#include "route/json_rpc.hpp"
#include "route/protocol.hpp"
#include "route/removed_members.hpp"
#include "route/repeated_request.hpp"
#include "route/request_meta.hpp"
#include "route/stateless_server_edge.hpp"
#include "route/task_forms.hpp"

namespace bulkhead {
namespace {

constexpr std::int32_t header_mismatch = -32020;

std::int32_t code_of(std::string_view error) {
  return read_error_code(error).value_or(0);
}

std::string message_of(std::string_view error) {
  constexpr std::size_t most = 300;
  const std::string_view token = mcp::member(error, "message");
  std::string scratch;
  return token.starts_with('"') ? std::string(mcp::unquote(token, &scratch).substr(0, most)) : "";
}

// Returns true if the error, which has the code for invalid params, reports a missing resource.
// Servers of this revision include the resource's URI in such an error. Otherwise, the error is
// recognized by its message.
bool is_missing_resource(std::string_view error) {
  const std::string_view data = mcp::member(error, "data");
  if (data.starts_with('{') && !mcp::member(data, "uri").empty()) return true;
  const std::string text = message_of(error);
  constexpr std::string_view phrase = "not found";
  return std::search(text.begin(), text.end(), phrase.begin(), phrase.end(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b;
         }) != text.end();
}

// Returns the capabilities that a server requires according to its error, or an empty text.
std::string_view required_capabilities(std::string_view error) {
  const std::string_view data = mcp::member(error, "data");
  return data.starts_with('{') ? mcp::member(data, "requiredCapabilities") : std::string_view{};
}

// Returns true if a client with these capabilities lacks one that the server requires. Capabilities
// that the gateway does not know do not count, because it never passes them on.
bool lacks(ClientCaps caps, std::string_view required) {
  if (!required.starts_with('{')) return false;
  const auto with_form = [](ClientCaps some) {
    const bool modes = (some & (cap::elicitation_form | cap::elicitation_url)) != 0;
    return (some & cap::elicitation) != 0 && !modes ? some | cap::elicitation_form : some;
  };
  ClientCaps wanted = with_form(parse_client_caps(required)) & ~cap::roots_changed;
  if (declares_tasks(required)) wanted |= cap::tasks;
  return (wanted & ~with_form(caps)) != 0;
}

std::string missing_features(std::string_view required) {
  std::string names;
  if (required.starts_with('{')) {
    mcp::for_each_member(required, [&](std::string_view key, std::string_view) {
      // Policy rules do not evaluate member names, so the error text contains only known names.
      constexpr std::string_view known[] = {"elicitation", "extensions", "roots", "sampling"};
      const auto name =
          std::find_if(std::begin(known), std::end(known), [key](std::string_view one) {
            return mcp::json::same_text(key.substr(1, key.size() - 2), one);
          });
      if (name == std::end(known)) return;
      names.append(names.empty() ? "" : ", ").append(*name);
    });
  }
  return names.empty() ? "a capability" : names;
}

// Returns a _meta object without its reserved members. Returns an empty string if no other members
// are left, and nullopt if there are no reserved members to remove.
std::optional<std::string> without_reserved(std::string_view meta) {
  if (!meta.starts_with('{')) return std::nullopt;
  std::string kept = "{";
  bool reserved = false;
  mcp::for_each_member(meta, [&](std::string_view key, std::string_view value) {
    if (RequestMeta::is_reserved(key)) {
      reserved = true;
      return;
    }
    if (kept.size() > 1) kept += ',';
    kept.append(key).append(":").append(value);
  });
  if (!reserved) return std::nullopt;
  return kept.size() == 1 ? std::string() : kept + "}";
}

// The structuredContent members of a result, except those whose names contain escape sequences.
struct StructuredContent {
  std::size_t count = 0;
  // Range of the last member whose value is not an object, including its name. Only MCP 2026-07-28
  // permits such values. The text of the result contains the same data.
  mcp::Range foreign{};
};

StructuredContent structured_content(const Message &answer) {
  constexpr std::string_view name = R"("structuredContent")";
  const std::string_view result = answer[answer.scan->result];
  StructuredContent out;
  if (result.find(name) == std::string_view::npos) return out;
  mcp::for_each_member(result, [&](std::string_view key, std::string_view value) {
    if (key != name) return;
    ++out.count;
    const auto begin = static_cast<std::uint32_t>(key.data() - answer.bytes.data());
    const auto end = value.data() + value.size() - answer.bytes.data();
    if (!value.starts_with('{')) out.foreign = {begin, static_cast<std::uint32_t>(end)};
  });
  return out;
}

class StatelessAnswerForm final : public AnswerForm {
 public:
  std::string problem(const Message &answer, mcp::Method method, bool task) const override {
    const mcp::Scan &scan = *answer.scan;
    if (scan.kind != mcp::Kind::result) return {};
    if (scan.result_twice) return "sent a result with a duplicate member";
    if (!answer[scan.result].starts_with('{')) return "sent a result that is not an object";
    if (scan.result_type.empty()) return {};  // complete
    const std::string_view type = mcp::member_value(answer[scan.result_type]);
    if (type == R"("complete")") return {};
    if (type == R"("input_required")" && may_be_repeated(method)) return {};
    if (type == R"("task")" && task) return {};
    return "sent a result with the unknown type " + std::string(type.substr(0, 40));
  }

  bool is_foreign(const Message &answer) const override {
    if (answer.scan->kind != mcp::Kind::error) return false;
    const std::int32_t error_code = code_of(answer[answer.scan->error]);
    return error_code == code::method_not_found || error_code == code::invalid_request ||
           error_code == code::unsupported_revision;
  }

  bool is_header_mismatch(const Message &answer) const override {
    return answer.scan->kind == mcp::Kind::error &&
           code_of(answer[answer.scan->error]) == header_mismatch;
  }

  bool is_interim(const Message &answer) const override {
    const mcp::Range type = answer.scan->result_type;
    return !type.empty() && mcp::member_value(answer[type]) == R"("input_required")";
  }

  void edit(const Message &answer, Splice *splice, std::string *room) const override {
    const mcp::Scan &scan = *answer.scan;
    const StructuredContent structured = structured_content(answer);
    if (scan.result_escapes || structured.count > 1) {
      *room = edited(answer[scan.result]);
      return splice->replace(scan.result, *room);
    }
    std::array<mcp::Range, 5> gone;
    std::size_t count = 0;
    const auto remove = [&](mcp::Range member) {
      if (member.empty()) return;
      std::size_t at = count++;
      for (; at > 0 && gone[at - 1].begin > member.begin; --at) gone[at] = gone[at - 1];
      gone[at] = member;
    };
    remove(scan.result_type);
    remove(scan.ttl_ms);
    remove(scan.cache_scope);
    remove(structured.foreign);
    const std::string_view meta = mcp::member_value(answer[scan.result_meta]);
    if (auto kept = without_reserved(meta); kept.has_value() && kept->empty()) {
      remove(scan.result_meta);
    } else if (kept.has_value()) {
      *room = std::move(*kept);
      const std::uint32_t end = scan.result_meta.end;
      splice->replace({end - static_cast<std::uint32_t>(meta.size()), end}, *room);
    }
    RemovedMembers removed(answer.bytes);
    for (std::size_t i = 0; i < count; ++i) removed.add(gone[i]);
    for (const mcp::Range range : removed.ranges()) splice->remove(range);
  }

  std::string edited(std::string_view result) const override {
    if (!result.starts_with('{')) return std::string(result);
    std::string out = "{";
    mcp::for_each_member(result, [&](std::string_view key, std::string_view value) {
      const auto is = [name = key.substr(1, key.size() - 2)](std::string_view text) {
        return mcp::json::same_text(name, text);
      };
      if (is("resultType") || is("ttlMs") || is("cacheScope")) return;
      if (is("structuredContent") && !value.starts_with('{')) return;
      std::optional<std::string> meta;
      if (is("_meta")) meta = without_reserved(value);
      if (meta.has_value() && meta->empty()) return;
      if (out.size() > 1) out += ',';
      out.append(key).append(":").append(meta.has_value() ? std::string_view(*meta) : value);
    });
    return out + "}";
  }

  std::optional<ReplacedError> replace(mcp::Method method, std::string_view error,
                                       const ErrorRecipient &client) const override {
    const std::int32_t error_code = code_of(error);
    if (is_hop_error(error_code)) return replace_hop_error(method, error, error_code, client);
    const bool missing = error_code == code::invalid_params &&
                         method == mcp::Method::resources_read && is_missing_resource(error);
    if (missing && !client.same_generation) return ReplacedError{code::resource_not_found, {}};
    return std::nullopt;
  }

 private:
  // Replaces an error that concerns only the gateway's own request to the server. An error about a
  // missing capability is not replaced for clients of this revision that lack the capability,
  // because they can react to it.
  static std::optional<ReplacedError> replace_hop_error(mcp::Method method, std::string_view error,
                                                        std::int32_t error_code,
                                                        const ErrorRecipient &client) {
    if (error_code != code::missing_capability) {
      return ReplacedError{code::internal_error,
                           "the server rejected the gateway's request (error " +
                               std::to_string(error_code) + "): " + message_of(error)};
    }
    const std::string_view required = required_capabilities(error);
    const bool lacking = lacks(client.caps, required);
    if (client.same_generation && lacking) return std::nullopt;
    const std::string text = "the server requires " + missing_features(required) +
                             (lacking ? ", which this client has not declared"
                                      : ", which the gateway does not pass on to this server");
    if (client.same_generation || method != mcp::Method::tools_call) {
      return ReplacedError{code::internal_error, text};
    }
    return ReplacedError{0, text};
  }
};

}  // namespace

const AnswerForm &stateless_answer_form() noexcept {
  static const StatelessAnswerForm form;
  return form;
}

}  // namespace bulkhead
