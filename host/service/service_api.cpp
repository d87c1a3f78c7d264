#include "service/service_api.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "profile/server_entry.hpp"
#include "service/approval_json.hpp"
#include "service/join_json.hpp"
#include "service/metrics_server.hpp"

namespace bulkhead::program {
namespace {

using bh::json::append_member;

// ---- responses ---------------------------------------------------------------------------------

// The reference API manages several sessions. Here, each socket belongs to a single gateway, which
// is reported as the only session.
constexpr std::string_view gateway_id = "gateway";
constexpr std::string_view connector_mode = "bulkhead.profile/1";

// Returns the response to a reload that failed because of errors in the profile.
ControlAnswer not_reloaded(const Refusal &refusal) {
  std::string out = R"({"success":false,"reloaded":0,"failed_session_count":1,)";
  out += R"("failed_session_ids":["gateway"],"failures":[)";
  for (const std::string &mistake : refusal.mistakes) {
    out += out.ends_with('[') ? "{" : ",{";
    append_member(&out, "session_id", gateway_id);
    append_member(&out, "message", mistake);
    out += '}';
  }
  out += ']';
  append_member(&out, "message", refusal.message);
  return {500, out + "}"};
}

int http_status(bh_status code) {
  switch (code) {
    case BH_E_INVALID:
      return 400;
    case BH_E_NOT_FOUND:
      return 404;
    case BH_E_DENIED:
      return 409;
    case BH_E_LIMIT:
    case BH_E_UNAVAILABLE:
      return 503;
    default:
      return 500;
  }
}

ControlAnswer refused(const ServiceAnswer &answer) {
  Refusal refusal;
  from_bytes(answer.value, &refusal);
  if (!refusal.mistakes.empty()) return not_reloaded(refusal);
  if (!refusal.parts.empty()) return {http_status(answer.code), join_refusal_json(refusal)};
  return {http_status(answer.code), error_body(refusal.message)};
}

std::string json_of(const ServiceStatus &status) {
  return snapshot_json(status.process, status.host);
}

// Returns how much of the change took effect: "all", "part" or "none".
std::string_view extent_of(const ApplyReport &report) {
  if (report.needs_restart.empty()) return "all";
  return report.nothing_applied() ? "none" : "part";
}

void append_mark(std::string *out, const PolicyMark &mark,
                 const std::vector<std::string> &changes) {
  *out += ",\"policy\":{";
  append_member(out, "generation", mark.generation);
  append_member(out, "rules", mark.rules);
  append_member(out, "digest", mark.digest);
  append_member(out, "changes", changes);
  *out += '}';
}

std::string json_of(const Reloaded &done) {
  const std::string_view extent = extent_of(done.report);
  const bool all = extent == "all";
  std::string out = all ? R"({"success":true,"reloaded":1)" : R"({"success":false,"reloaded":)";
  if (!all) out += extent == "none" ? "0" : "1";
  out += R"(,"failed_session_count":0,"failed_session_ids":[],"failures":[],"message":)";
  if (all) {
    out += "null";
  } else {
    bh::json::append_quoted(&out, extent == "none"
                                      ? "nothing was changed: all changes need a restart"
                                      : "reloaded in part: some changes need a restart");
  }
  append_member(&out, "applied", extent);
  append_member(&out, "added", done.report.added);
  append_member(&out, "changed", done.report.changed);
  append_member(&out, "adjusted", done.report.adjusted);
  append_member(&out, "removed", done.report.removed);
  out += ",\"unchanged\":" + std::to_string(done.report.unchanged) + ",\"not_connected\":[";
  for (const auto &[name, reason] : done.not_connected) {
    out += out.ends_with('[') ? "{" : ",{";
    append_member(&out, "name", name);
    append_member(&out, "reason", reason);
    out += '}';
  }
  out += ']';
  append_member(&out, "settings", done.report.settings);
  append_member(&out, "files", done.report.files);
  append_member(&out, "needs_restart", done.report.needs_restart);
  append_mark(&out, done.report.policy_mark, done.report.policy);
  append_member(&out, "notes", done.notes);
  return out + "}";
}

std::string json_of(const ConnectorItem &item) {
  std::string out = "{";
  append_member(&out, "id", item.id);
  append_member(&out, "source", item.source);
  append_member(&out, "source_profile", item.source_profile);
  const std::string_view ours = item.editable ? "true" : "false";
  out.append(",\"direct\":").append(ours).append(",\"editable\":").append(ours);
  return out + ",\"server\":" + item.server + "}";
}

std::string json_of(const ConnectorList &list) {
  std::string out = "{";
  append_member(&out, "mode", connector_mode);
  append_member(&out, "profile_id", list.profile_id);
  out += ",\"servers\":[";
  for (const ConnectorItem &item : list.servers) {
    if (!out.ends_with('[')) out += ',';
    out += json_of(item);
  }
  return out + "]}";
}

std::string json_of(const ConnectorRemoved &removed) {
  std::string out = "{";
  append_member(&out, "mode", connector_mode);
  append_member(&out, "profile_id", removed.profile_id);
  append_member(&out, "server_id", removed.id);
  return out + ",\"removed\":true}";
}

std::string json_of(const PluginSwapped &done) {
  const auto version = [](const std::string &number, const std::string &sha256) {
    std::string out = "{";
    append_member(&out, "version", number);
    append_member(&out, "sha256", sha256);
    return out + '}';
  };
  std::string out = "{";
  append_member(&out, "instance", done.id);
  append_member(&out, "plugin", done.plugin);
  append_member(&out, "from", bh::json::Raw{version(done.from_version, done.from_sha256)});
  append_member(&out, "to", bh::json::Raw{version(done.to_version, done.to_sha256)});
  if (done.rollback_until_ms != 0) append_member(&out, "rollback_until", done.rollback_until_ms);
  return out + '}';
}

std::string json_of(const ApprovalList &list) {
  return approvals_json(list, bh::unix_ms());
}

std::string json_of(const JoinAnswer &joined) {
  std::string out = "{";
  append_member(&out, "path", joined.path);
  append_member(&out, "token", joined.token);
  return out + "}";
}

ControlAnswer answered(const std::string &) {
  return {200, R"({"answered":true})"};
}

template <class T>
ControlAnswer render(const std::string &value) {
  T typed;
  if (!from_bytes(value, &typed)) return {500, error_body("the gateway sent an invalid response")};
  return {200, json_of(typed)};
}

// ---- requests ----------------------------------------------------------------------------------

// Encodes the value of a request. `id` is the last segment of the path.
using Encode = Result<std::string> (*)(const std::string &body, std::string_view id);

Result<std::string> no_value(const std::string &, std::string_view) {
  return std::string();
}

Result<std::string> definition(const std::string &body, std::string_view) {
  const auto entry = read_server_entry(body);
  if (!entry) return std::unexpected(entry.error());
  return to_bytes(*entry);
}

Result<std::string> id_of_path(const std::string &, std::string_view id) {
  return to_bytes(std::string(id));
}

Result<std::string> look(const std::string &, std::string_view) {
  return to_bytes(ApprovalWatch{});
}

Result<std::string> watch(const std::string &body, std::string_view) {
  const auto wanted = read_approval_watch(body);
  if (!wanted) return std::unexpected(wanted.error());
  return to_bytes(*wanted);
}

Result<std::string> decision(const std::string &body, std::string_view id) {
  const auto answer = read_approval_answer(body, id);
  if (!answer) return std::unexpected(answer.error());
  return to_bytes(*answer);
}

// The body is {} or {"file": "/..."}.
Result<std::string> new_file(const std::string &body, std::string_view id) {
  PluginSwapRequest request{std::string(id), {}, false};
  if (!body.empty()) {
    if (!mcp::valid_json(body) || !body.starts_with('{')) {
      return fail(BH_E_INVALID, "the body must be a JSON object");
    }
    request.file = bh::json::member_text(body, "file");
    if (!mcp::member(body, "file").empty() && !request.file.starts_with('/')) {
      return fail(BH_E_INVALID, "file: must be an absolute path");
    }
  }
  return to_bytes(request);
}

Result<std::string> former_version(const std::string &, std::string_view id) {
  return to_bytes(PluginSwapRequest{std::string(id), {}, true});
}

Result<std::string> marks(const std::string &body, std::string_view) {
  const auto wanted = read_join_request(body);
  if (!wanted) return std::unexpected(wanted.error());
  return to_bytes(*wanted);
}

struct Route {
  std::string_view method;
  std::string_view path;  // if it ends with '/', an ID must follow
  ServiceRequest request;
  Encode encode;
  ControlAnswer (*render)(const std::string &value);
};

constexpr Route routes[] = {
    {"GET", "/status", ServiceRequest::status, no_value, render<ServiceStatus>},
    {"GET", "/metrics", ServiceRequest::status, no_value, metrics_answer},
    {"POST", "/reload-config", ServiceRequest::reload, no_value, render<Reloaded>},
    {"GET", "/mcp/connectors", ServiceRequest::list_connectors, no_value, render<ConnectorList>},
    {"POST", "/mcp/connectors", ServiceRequest::add_connector, definition, render<ConnectorItem>},
    {"DELETE", "/mcp/connectors/", ServiceRequest::remove_connector, id_of_path,
     render<ConnectorRemoved>},
    {"POST", "/mcp/restart/", ServiceRequest::restart_server, id_of_path, render<Reloaded>},
    {"POST", "/plugins/swap/", ServiceRequest::swap_plugin, new_file, render<PluginSwapped>},
    {"POST", "/plugins/rollback/", ServiceRequest::swap_plugin, former_version,
     render<PluginSwapped>},
    {"POST", "/join", ServiceRequest::join, marks, render<JoinAnswer>},
    {"GET", "/confirm/pending", ServiceRequest::list_approvals, look, render<ApprovalList>},
    {"POST", "/confirm/watch", ServiceRequest::list_approvals, watch, render<ApprovalList>},
    {"POST", "/confirm/", ServiceRequest::answer_approval, decision, answered},
};

bool leads_to(std::string_view path, const Route &route, std::string_view *id) {
  if (!route.path.ends_with('/')) return path == route.path;
  if (!path.starts_with(route.path)) return false;
  *id = path.substr(route.path.size());
  return !id->empty() && id->find('/') == std::string_view::npos;
}

}  // namespace

ServiceApi::ServiceApi(Reactor &reactor, int listener, ControlServer::Admit admit, AskService ask)
    : ask_(std::move(ask)),
      server_(reactor, listener, std::move(admit),
              [this](const ControlRequest &request, ControlServer::Reply reply) {
                handle(request, std::move(reply));
              }) {}

void ServiceApi::handle(const ControlRequest &request, ControlServer::Reply reply) const {
  std::string others;
  for (const Route &route : routes) {
    std::string_view id;
    if (!leads_to(request.path, route, &id)) continue;
    if (request.method != route.method) {
      others.append(others.empty() ? "" : " and ").append(route.method);
      continue;
    }
    auto value = route.encode(request.body, id);
    if (!value) return reply({http_status(value.error().code), error_body(value.error().text)});
    return ask_(route.request, *std::move(value),
                [&route, reply = std::move(reply)](const ServiceAnswer &answer) {
                  reply(answer.code == BH_OK ? route.render(answer.value) : refused(answer));
                });
  }
  if (others.empty()) return reply({404, error_body("unknown path")});
  reply({405, error_body("method not allowed; this path supports " + others)});
}

}  // namespace bulkhead::program
