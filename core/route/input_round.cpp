#include "route/input_round.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "mcp/for_each.hpp"

namespace bulkhead {
namespace {

struct InputKind {
  std::string_view method;  // JSON token
  mcp::Method known;
};
constexpr InputKind input_kinds[] = {
    {R"("elicitation/create")", mcp::Method::elicitation_create},
    {R"("sampling/createMessage")", mcp::Method::sampling_create_message},
    {R"("roots/list")", mcp::Method::roots_list}};

// Returns true if a client with these capabilities can receive this request. An elicitation
// capability without modes means that forms are supported.
bool admits(ClientCaps caps, mcp::Method method, std::string_view params) {
  const auto has = [caps](ClientCaps all) { return (caps & all) == all; };
  if (method == mcp::Method::roots_list) return has(cap::roots);
  if (method == mcp::Method::sampling_create_message) {
    const bool tools =
        !mcp::member(params, "tools").empty() || !mcp::member(params, "toolChoice").empty();
    return has(tools ? cap::sampling | cap::sampling_tools : cap::sampling);
  }
  const std::string_view mode = mcp::member(params, "mode");
  if (mode == R"("url")") return has(cap::elicitation | cap::elicitation_url);
  if (!mode.empty() && mode != R"("form")") return false;
  return has(cap::elicitation) && (has(cap::elicitation_form) || !has(cap::elicitation_url));
}

}  // namespace

Result<InputRound> InputRound::read(std::string_view result, ClientCaps caps,
                                    const std::set<std::string> &answered) {
  InputRound round;
  const std::string_view requests = mcp::member(result, "inputRequests");
  const std::string_view state = mcp::member(result, "requestState");
  if (requests.empty() && state.empty()) {
    return fail(BH_E_PROTOCOL, "asks for input without requests and without a state");
  }
  if (!state.empty() && !state.starts_with('"')) {
    return fail(BH_E_PROTOCOL, "sent a request state that is not a string");
  }
  if (state.size() > max_state_bytes) {
    return fail(BH_E_LIMIT,
                "sent a request state of more than " + std::to_string(max_state_bytes) + " bytes");
  }
  if (!requests.empty() && !requests.starts_with('{')) {
    return fail(BH_E_PROTOCOL, "sent input requests that are not an object");
  }
  round.state_ = state;
  round.bytes_ = state.size();
  if (requests.empty()) return round;
  if (requests.size() > max_bytes) {
    return fail(BH_E_LIMIT, "asks for input of more than " + std::to_string(max_bytes) + " bytes");
  }
  if (mcp::has_duplicate_members(requests)) {
    return fail(BH_E_PROTOCOL, "sent input requests with duplicate members");
  }
  Result<void> read;
  mcp::for_each_member(requests, [&](std::string_view key, std::string_view request) {
    if (answered.contains(std::string(key))) return true;
    read = round.add(key, request, caps);
    return read.has_value();
  });
  if (!read) return std::unexpected(read.error());
  return round;
}

Result<void> InputRound::add(std::string_view key, std::string_view request, ClientCaps caps) {
  bytes_ += key.size() + request.size();
  if (requests_.size() == max_requests) {
    return fail(BH_E_LIMIT, "asks for more than " + std::to_string(max_requests) + " inputs");
  }
  if (bytes_ > max_bytes) {
    return fail(BH_E_LIMIT, "sent input requests and a request state of more than " +
                                std::to_string(max_bytes) + " bytes in total");
  }
  if (!request.starts_with('{')) {
    return fail(BH_E_PROTOCOL, "sent an input request that is not an object");
  }
  const std::string_view method = mcp::member(request, "method");
  const auto kind = std::find_if(std::begin(input_kinds), std::end(input_kinds),
                                 [&](const InputKind &one) { return one.method == method; });
  if (kind == std::end(input_kinds)) {
    return fail(BH_E_PROTOCOL, "asks for an unknown kind of input");
  }
  std::string_view params = mcp::member(request, "params");
  if (params.empty() && kind->known == mcp::Method::roots_list) params = "{}";
  if (!params.starts_with('{')) {
    return fail(BH_E_PROTOCOL, "sent an input request without params");
  }
  if (!admits(caps, kind->known, params)) {
    return fail(BH_E_DENIED, "asks for " + std::string(mcp::to_string(kind->known)) +
                                 ", which requires a capability that was not declared to it");
  }
  requests_.push_back({std::string(key), kind->known, std::string(params), {}});
  return {};
}

bool InputRound::answer(std::size_t request, std::string_view result) {
  if (request >= requests_.size() || !result.starts_with('{')) return false;
  Request &asked = requests_[request];
  if (!asked.answer.empty() || answer_bytes_ + result.size() > max_bytes) return false;
  asked.answer = result;
  answer_bytes_ += result.size();
  ++answered_;
  return true;
}

std::string InputRound::members() const {
  std::string out;
  if (!requests_.empty()) {
    out += R"("inputResponses":{)";
    for (const Request &request : requests_) {
      if (request.answer.empty()) continue;
      if (!out.ends_with('{')) out += ',';
      out.append(request.key).append(":").append(request.answer);
    }
    out += "},";
  }
  if (!state_.empty()) out.append(R"("requestState":)").append(state_).append(",");
  return out;
}

}  // namespace bulkhead
