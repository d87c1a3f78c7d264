#include "telemetry-otlp/span.hpp"

#include <bulkhead/cpp/basics.hpp>
#include <bulkhead/cpp/json_reader.hpp>
#include <bulkhead/cpp/record_names.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>

#include "telemetry-otlp/writer.hpp"

namespace otlp {
namespace {

constexpr int kind_internal = 1, kind_server = 2, status_ok = 1, status_error = 2;

// Computes an FNV-1a hash that is never 0.
std::uint64_t digest(std::string_view text, std::uint64_t number, std::uint64_t seed) {
  std::uint64_t hash = 14'695'981'039'346'656'037U ^ seed;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 1'099'511'628'211U; };
  for (const char c : text) add(static_cast<unsigned char>(c));
  for (int i = 0; i < 8; ++i) add(static_cast<unsigned char>(number >> (8 * i)));
  return hash == 0 ? 1 : hash;  // an ID of zeros is invalid
}

std::string hex(std::uint64_t number) {
  number = __builtin_bswap64(number);
  return bh::hex({reinterpret_cast<const char *>(&number), sizeof number});
}

bool is_hex(std::string_view text, std::size_t n) {
  return text.size() == n && bh::is_lower_hex(text) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string trace_of(const bh_record &r) {
  const std::string_view known =
      BH_HAS(bh_record, &r, trace_id) ? bh::view(r.trace_id) : std::string_view();
  if (is_hex(known, 32)) return std::string(known);
  return hex(digest("session", r.session, 1)) + hex(digest("session", r.session, 2));
}

std::string_view name_key(std::string_view method) {
  if (method == "tools/call") return "gen_ai.tool.name";
  if (method == "prompts/get") return "gen_ai.prompt.name";
  if (method.starts_with("resources/")) return "mcp.resource.uri";
  return "bulkhead.name";
}

std::string masked(bh_str text, const Mask &mask) {
  const std::string_view plain = bh::view(text);
  return mask && !plain.empty() ? mask(plain) : std::string(plain);
}

void put_attributes(Writer &out, const bh_record &r, const Mask &mask) {
  out.key("attributes").begin_array();
  put_known(out, "mcp.method.name", masked(r.method, mask));
  put_known(out, name_key(bh::view(r.method)), masked(r.name, mask));
  put_attribute(out, "mcp.session.id", std::to_string(r.session));
  put_known(out, "bulkhead.server", bh::view(r.server));
  put_attribute(out, "bulkhead.outcome", bh::outcome_name(r.outcome));
  put_known(out, "bulkhead.policy.rule", masked(r.rule, mask));
  if (BH_HAS(bh_record, &r, action))
    put_known(out, "bulkhead.policy.action", bh::action_name(r.action));
  put_known(out, "bulkhead.transport", bh::view(r.transport));
  put_known(out, "bulkhead.principal", masked(r.principal, mask));
  put_known(out, "bulkhead.process_name", masked(r.process_name, mask));
  if (BH_HAS(bh_record, &r, claimed_name))
    put_known(out, "bulkhead.claimed_name", masked(r.claimed_name, mask));
  if (BH_HAS(bh_record, &r, server_revision)) {
    put_known(out, "mcp.protocol.version", bh::revision_text(r.client_revision));
    put_known(out, "bulkhead.server_protocol_version", bh::revision_text(r.server_revision));
  }
  put_number(out, "bulkhead.bytes_in", r.bytes_in);
  put_number(out, "bulkhead.bytes_out", r.bytes_out);
  if (r.outcome != BH_OUTCOME_OK) put_attribute(out, "error.type", bh::outcome_name(r.outcome));
  out.end_array();
}

// Opens the span of a record; the caller adds attributes and status.
void begin_span(Writer &out, const bh_record &r, std::string_view title, int kind) {
  const std::string trace = trace_of(r);
  out.begin_object().member("traceId", trace).member("spanId", hex(digest(trace, r.number, 0)));
  out.member("name", bh::cut_text(title, max_text)).member("kind", kind);
  out.member("startTimeUnixNano", std::to_string(r.start_unix_ns));
  out.member("endTimeUnixNano", std::to_string(r.start_unix_ns + r.duration_ns));
}

void put_status(Writer &out, int code) {
  out.key("status").begin_object().member("code", code).end_object();
}

// Returns the text of a string or number in the record's detail.
std::string detail(const bh_record &r, std::string_view name, const Mask &mask) {
  const std::string_view value = bh::json::member(bh::view(r.detail), name);
  const std::string text =
      bh::json::is_string(value) ? bh::json::unquote(value) : std::string(value);
  return masked(bh::str(text), mask);
}

std::string change_json(const bh_record &r, const Mask &mask) {
  const bool plugin = r.kind == BH_RECORD_PLUGIN;
  std::string text;
  Writer out(&text);
  begin_span(out, r, plugin ? "plugin change" : "policy change", kind_internal);
  out.key("attributes").begin_array();
  if (plugin) {
    put_known(out, "bulkhead.plugin", detail(r, "plugin", mask));
    put_known(out, "bulkhead.plugin.change", detail(r, "change", mask));
  } else {
    put_known(out, "bulkhead.policy.generation", detail(r, "generation", mask));
    put_known(out, "bulkhead.policy.rules", detail(r, "rules", mask));
    put_known(out, "bulkhead.policy.digest", detail(r, "digest", mask));
    put_known(out, "bulkhead.policy.policies", detail(r, "policies", mask));
    put_known(out, "bulkhead.policy.changes", detail(r, "changes", mask));
  }
  out.end_array();
  put_status(out, status_ok);
  out.end_object();
  return text;
}

}  // namespace

void put_attribute(Writer &out, std::string_view key, std::string_view value) {
  out.begin_object().member("key", key).key("value").begin_object();
  out.member("stringValue", bh::cut_text(value, max_text)).end_object().end_object();
}

void put_known(Writer &out, std::string_view key, std::string_view value) {
  if (!value.empty()) put_attribute(out, key, value);
}

void put_number(Writer &out, std::string_view key, std::uint64_t value) {
  out.begin_object().member("key", key).key("value").begin_object();
  out.member("intValue", std::to_string(value)).end_object().end_object();
}

std::string span_json(const bh_record &r, const Mask &mask) {
  const std::uint32_t kind = BH_HAS(bh_record, &r, detail) ? r.kind : 0;
  if (kind == BH_RECORD_PLUGIN || kind == BH_RECORD_POLICY) {
    return change_json(r, mask);
  }
  if (kind != BH_RECORD_CALL) return {};
  const std::string method = masked(r.method, mask);
  const bool named = method == "tools/call" || method == "prompts/get";
  const std::string title = named ? method + " " + masked(r.name, mask) : method;
  std::string text;
  Writer out(&text);
  begin_span(out, r, title, kind_server);
  put_attributes(out, r, mask);
  put_status(out, r.outcome == BH_OUTCOME_OK ? status_ok : status_error);
  out.end_object();
  return text;
}

std::string resource_json(std::string_view service_name) {
  std::string text;
  Writer out(&text);
  out.begin_object().key("attributes").begin_array();
  put_attribute(out, "service.name", service_name);
  out.end_array().end_object();
  return text;
}

std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n) {
  std::string out = R"({"resourceSpans":[{"resource":)" + resource_json(service_name) +
                    R"(,"scopeSpans":[{"scope":{"name":"bulkhead"},"spans":[)";
  for (std::size_t i = 0; i < n; ++i) out.append(i == 0 ? "" : ",").append(spans[i]);
  return out + "]}]}]}";
}

}  // namespace otlp
