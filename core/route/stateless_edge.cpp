#include "route/stateless_edge.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/mirrored_headers.hpp"
#include "route/claimed_name.hpp"
#include "route/handshake.hpp"
#include "route/list_requests.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

// Returns true if the value of MCP-Protocol-Version is, as text, not less than stateless_revision.
bool is_stateless(const WireHeaders &headers) {
  return std::any_of(headers.begin(), headers.end(), [](const bh_header &header) {
    return bh::equal_ignoring_case(bh::view(header.name), "mcp-protocol-version") &&
           bh::view(header.value) >= stateless_revision;
  });
}

bool has_method(mcp::Method method) {
  using enum mcp::Method;
  switch (method) {
    case server_discover:
    case tools_list:
    case tools_call:
    case resources_list:
    case resources_templates_list:
    case resources_read:
    case prompts_list:
    case prompts_get:
    case completion_complete:
    case subscriptions_listen:
    case tasks_get:
    case tasks_update:
    case tasks_cancel:
      return true;
    default:
      return false;
  }
}

// Returns true if the request may be sent only by clients that declare the tasks extension.
bool requires_tasks(const Message &request) {
  const mcp::Scan &scan = *request.scan;
  if (scan.method != mcp::Method::subscriptions_listen) return is_task_method(scan.method);
  const std::string_view params = request[scan.params];
  const std::string_view filter =
      params.starts_with('{') ? mcp::member(params, "notifications") : std::string_view{};
  return filter.starts_with('{') && !mcp::member(filter, "taskIds").empty();
}

bool is_cacheable(mcp::Method method) {
  return listed_kind(method).has_value() || method == mcp::Method::resources_read;
}

std::string missing(std::string_view member) {
  return "params._meta[\"io.modelcontextprotocol/" + std::string(member) + "\"] is missing: MCP " +
         std::string(stateless_revision) + " requires it in each request";
}

}  // namespace

// A request that does not state the revision in its body is still handled here if its method or
// headers indicate the revision, so that the client learns what is missing. A request that had to
// wait has already been admitted here.
bool StatelessEdge::speaks(const Session &s, const Message &message,
                           const WireHeaders *headers) const {
  const mcp::Scan &scan = *message.scan;
  if (scan.kind == mcp::Kind::request) {
    if (scan.modern) return true;
    if (scan.method == mcp::Method::server_discover && !s.initialized) return true;
    if (s.is_sessionless() && s.view != nullptr) return true;
    return s.is_sessionless() && scan.method != mcp::Method::initialize && headers != nullptr &&
           is_stateless(*headers);
  }
  if (scan.kind != mcp::Kind::notification) return false;
  if (scan.modern) return true;
  return scan.method == mcp::Method::notifications_cancelled &&
         pending(s, message[scan.request_id]) != nullptr;
}

// ---- requests --------------------------------------------------------------------------------

void StatelessEdge::request(Session &s, Incoming &request) {
  if (s.is_sessionless() && s.view != nullptr) return answer(s, request);  // it has waited
  if (!admits(request)) return;
  if (s.is_sessionless()) {
    return needs_.count_request(s, request) ? begin(s, request)
                                            : refuse_more(request, "from this client");
  }
  Session *own = needs_.open_request(s, request);
  if (own == nullptr) {
    const Limits &limits = needs_.profile.limits;
    const bool listens = request.message.scan->method == mcp::Method::subscriptions_listen;
    if (!listens && s.load->requests >= limits.in_flight_per_session) {
      return refuse_more(request, "on this connection");
    }
    return needs_.answers.error(request, code::internal_error,
                                "too many requests are in flight in total (limits.sessions = " +
                                    std::to_string(limits.sessions) + "); wait for responses");
  }
  request.reply.session = own->handle;
  begin(*own, request);
  // For the status only.
  if (!s.initialized) {
    s.claimed_name = last_name_;
    s.has_sessionless = true;
  }
}

void StatelessEdge::refuse_more(Incoming &request, std::string_view whose) {
  needs_.answers.error(request, code::internal_error,
                       "too many requests are in flight " + std::string(whose) +
                           " (limits.in_flight_per_session = " +
                           std::to_string(needs_.profile.limits.in_flight_per_session) +
                           "); wait for responses");
}

// Checks whether the revision permits the request, and whether the request contains the members
// that each request must contain. If not, sends an error response and returns false.
bool StatelessEdge::admits(Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (request.reply.batch != 0) {
    refuse(request, code::invalid_request,
           "a request of MCP " + std::string(stateless_revision) + " cannot be part of a batch",
           400);
    return false;
  }
  if (!revision_fits(request) || !method_exists(request)) return false;
  if (scan.meta_capabilities.empty()) {
    refuse(request, code::invalid_params, missing("clientCapabilities"), 400);
    return false;
  }
  if (requires_tasks(request.message) && !declares_tasks(request.message[scan.meta_capabilities])) {
    refuse(request, code::missing_capability,
           "requests about tasks require the client capability extensions[\"" +
               std::string(tasks_extension) + "\"]",
           400, tasks_required);
    return false;
  }
  std::string scratch;
  if (!scan.meta_log_level.empty() &&
      parse_log_level(mcp::unquote(request.message[scan.meta_log_level], &scratch)) < 0) {
    refuse(request, code::invalid_params,
           "params._meta[\"io.modelcontextprotocol/logLevel\"] must be one of debug, info, notice, "
           "warning, error, critical, alert, emergency",
           0);
    return false;
  }
  return true;
}

bool StatelessEdge::revision_fits(Incoming &request) {
  const mcp::Range range = request.message.scan->meta_revision;
  if (range.empty()) {
    refuse(request, code::invalid_params, missing("protocolVersion"), 400);
    return false;
  }
  if (request.headers != nullptr && !headers_match(request)) return false;
  std::string scratch;
  const std::string_view revision = mcp::unquote(request.message[range], &scratch);
  if (revision == stateless_revision) return true;
  std::string data = R"({"supported":[")";
  data.append(stateless_revision).append(R"("],"requested":)");
  bh::json::append_quoted(&data, bh::cut_text(revision, 100));
  refuse(request, code::unsupported_revision,
         "requests of this protocol version are not supported; for versions up to " +
             std::string(revisions.back()) + ", send initialize",
         400, data + "}");
  return false;
}

bool StatelessEdge::headers_match(Incoming &request) {
  mcp::MirroredScratch scratch;
  const auto values = mcp::mirrored_values(request.message.bytes, *request.message.scan, &scratch);
  const auto fault = mcp::check_mirrored_headers(values, *request.headers);
  if (!fault) return true;
  refuse(request, mcp::header_mismatch, fault->text, 400);
  return false;
}

bool StatelessEdge::method_exists(Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (has_method(scan.method) && is_exposed(needs_.profile.expose, scan.method)) return true;
  std::string scratch;
  const std::string_view method = mcp::unquote(request.message[scan.method_text], &scratch);
  refuse(request, code::method_not_found,
         "Method not found: " + std::string(bh::cut_text(method, 100)), 404);
  return false;
}

void StatelessEdge::refuse(Incoming &request, std::int32_t error_code, std::string_view text,
                           std::uint32_t http_status, std::string_view data) {
  ++needs_.counters.refused_messages;
  needs_.answers.error(request, error_code, text, http_status, data);
}

void StatelessEdge::begin(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  last_name_ = claimed_name(request.message[scan.meta_client_info], last_name_);
  s.claimed_name = last_name_;
  s.has_sessionless = true;
  admit(s, request);
  if (declares_tasks(request.message[scan.meta_capabilities])) s.caps |= cap::tasks;
  s.revision = newest_revision;  // has the same message forms as 2026-07-28
  s.repeats_requests = may_be_repeated(scan.method);
  std::string scratch;
  // The stream of a subscriptions/listen request never carries log messages.
  if (!scan.meta_log_level.empty() && scan.method != mcp::Method::subscriptions_listen) {
    s.log_level = parse_log_level(mcp::unquote(request.message[scan.meta_log_level], &scratch));
  }
  needs_.views.join(s);
  answer(s, request);
}

// Sets the capabilities of the request's session. A subscriptions/listen request does not keep its
// set in use.
void StatelessEdge::admit(Session &s, const Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  const auto admitted =
      capability_sets_.admit(parse_client_caps(request.message[scan.meta_capabilities]),
                             request.start_ns, CapabilitySets::idle_ns(needs_.profile.limits));
  if (admitted.replaced != 0) replace(admitted.replaced);
  s.caps = admitted.caps;
  if (scan.method != mcp::Method::subscriptions_listen) s.capability_set = admitted.use;
}

// Ends the use of the set: its lanes are closed, and its subscriptions/listen requests get their
// result, after which clients send them again.
void StatelessEdge::replace(ClientCaps set) {
  for (const bh_session handle : needs_.sessions.handles()) {
    const Session *s = needs_.sessions.find(handle);
    if (s == nullptr || (s->caps & cap::shareable) != set || !needs_.listens.has(*s)) continue;
    needs_.listens.finish(*s);
  }
  needs_.views.retire(set);
}

void StatelessEdge::answer(Session &s, Incoming &request) {
  const mcp::Method method = request.message.scan->method;
  if (method == mcp::Method::server_discover) {
    return needs_.answers.result(request, discover_result(s, needs_.profile));
  }
  if (method == mcp::Method::subscriptions_listen) return needs_.listens.begin(s, request);
  use_server_name();
  request.reply.form = is_cacheable(method) ? &cacheable_ : &plain_;
  if (s.repeats_requests) return answer_call(s, request);
  needs_.requests.answer(s, request);
}

// If the request has to wait for lists, this function is called again afterwards, and the state is
// opened a second time.
void StatelessEdge::answer_call(Session &s, Incoming &request) {
  const Repetition repetition = Repetition::of(request.message);
  if (!repetition.responses.empty() && !repetition.responses.starts_with('{')) {
    return refuse(request, code::invalid_params, "inputResponses must be an object", 0);
  }
  if (repetition.state.empty()) return needs_.requests.answer(s, request);
  const auto opened =
      needs_.states.open(s, request.message, repetition.state, needs_.reactor.now_ns());
  if (!opened) return refuse(request, code::invalid_params, opened.error(), 0);
  if (const auto *ticket = std::get_if<ParkedTicket>(&*opened)) {
    return needs_.inputs.repeat(s, request, *ticket, repetition.responses);
  }
  request.state = std::get_if<RequestState>(&*opened);
  needs_.requests.answer(s, request);
  request.state = nullptr;
}

// Updates the server name in the response forms if it has changed in the profile.
void StatelessEdge::use_server_name() {
  if (server_name_ == needs_.profile.server_name && !server_name_.empty()) return;
  server_name_ = needs_.profile.server_name;
  const std::string info = server_info(needs_.profile);
  plain_.set_server_info(info);
  cacheable_.set_server_info(info);
}

// ---- notifications ---------------------------------------------------------------------------

// Handles only cancellation. Over HTTP, clients cancel a request by closing its stream instead, and
// notifications have no effect.
void StatelessEdge::notification(Session &s, const Message &message) {
  if (message.scan->method != mcp::Method::notifications_cancelled) return;
  const std::string_view id = message[message.scan->request_id];
  Session *own = pending(s, id);
  if (own == nullptr) return;
  if (needs_.listens.has(*own)) return needs_.listens.cancel(*own);
  if (needs_.inputs.has(*own)) return needs_.inputs.cancel(*own, message);
  if (Call *call = own->open_calls.head) return needs_.ends.cancel(*call, message);
  if (const auto reply = needs_.views.cancel_waiting(*own, id)) needs_.answers.none(*reply);
}

Session *StatelessEdge::pending(const Session &connection, std::string_view id) const {
  for (const bh_session handle : connection.requests) {
    Session *own = needs_.sessions.find(handle);
    if (own != nullptr && own->request_id == id) return own;
  }
  return nullptr;
}

}  // namespace bulkhead
