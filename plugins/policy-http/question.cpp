#include "policy-http/question.hpp"

#include <bulkhead/cpp/basics.hpp>
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <rapidjson/document.h>
#include <sodium.h>

#include <algorithm>
#include <vector>

namespace policy_http {
namespace {

using bh::json::Writer;

std::string hex(const unsigned char *bytes, std::size_t n) {
  return bh::hex({reinterpret_cast<const char *>(bytes), n});
}

std::string sha256(std::string_view text) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char *>(text.data()), text.size());
  return "sha256:" + hex(hash, sizeof hash);
}

std::string random_id() {
  unsigned char bytes[16];
  randombytes_buf(bytes, sizeof bytes);
  return hex(bytes, sizeof bytes);
}

void put_known(Writer &out, std::string_view key, bh_str value) {
  if (value.n != 0) out.member(key, bh::view(value));
}

std::string_view name_key(std::string_view method) {
  if (method == "tools/call") return "tool_name";
  if (method.starts_with("prompts/")) return "prompt_name";
  return method.starts_with("resources/") ? "uri" : "name";
}

void put_subject(Writer &out, const bh_policy_request &r) {
  out.key("subject").begin_object();
  out.member("type", "mcp");
  out.member("method", bh::view(r.method));
  out.member("server_name", bh::view(r.server));
  out.member(name_key(bh::view(r.method)), bh::view(r.name));
  put_known(out, "principal", r.principal);
  put_known(out, "process_name", r.process_name);
  put_known(out, "transport", r.transport);
  put_known(out, "peer", r.peer);
  out.end_object();
}

// A member of params, other than the arguments, that is sent to the decision point.
struct Beside {
  std::string_view name, text;
};
std::vector<Beside> beside_of(const bh_policy_request &r) {
  std::vector<Beside> out;
  if (!BH_HAS(bh_policy_request, &r, extra)) return out;
  for (const auto &[name, text] : {Beside{"argument", bh::view(r.argument)},
                                   {"context", bh::view(r.context)},
                                   {"extra", bh::view(r.extra)}}) {
    if (!text.empty()) out.push_back({name, text});
  }
  return out;
}

// Writes the text, truncated to preview_bytes if it is longer. Returns true if the text was not
// truncated.
bool put_preview(Writer &out, const Config &config, std::string_view name, std::string_view text) {
  if (text.size() > config.preview_bytes) {
    out.member(std::string(name) + "_text", bh::cut_text(text, config.preview_bytes));
    return false;
  }
  out.member(name, bh::json::Raw{text});
  return true;
}

void put_texts(Writer &out, const Config &config, const std::vector<Beside> &texts) {
  out.key("preview").begin_object();
  bool whole = true;
  if (config.send == Send::preview) {
    for (const auto &[name, text] : texts) whole = put_preview(out, config, name, text) && whole;
  }
  if (!whole) {
    out.member("truncated", true);
  }
  out.end_object();
}

void put_hashes(Writer &out, const Config &config, const bh_policy_request &r,
                const std::vector<Beside> &texts) {
  out.key("hashes").begin_object();
  if (config.send != Send::names) {
    for (const auto &[name, text] : texts) out.member(name, sha256(text));
  }
  put_known(out, "definition", r.definition_hash);
  out.end_object();
}

// Returns the TRACE part of the trace parent "00-TRACE-SPAN-FLAGS" in _meta, or an empty string if
// the trace parent is missing or malformed.
std::string trace_of(std::string_view meta) {
  if (meta.empty()) return {};
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag>(meta.data(), meta.size());
  if (root.HasParseError() || !root.IsObject()) return {};
  const auto at = root.FindMember("traceparent");
  if (at == root.MemberEnd() || !at->value.IsString()) return {};
  const std::string_view text(at->value.GetString(), at->value.GetStringLength());
  if (text.size() < 55 || text[2] != '-' || text[35] != '-') return {};
  const std::string_view trace = text.substr(3, 32);
  return bh::is_lower_hex(trace) ? std::string(trace) : std::string();
}

void put_audit(Writer &out, const bh_policy_request &r) {
  out.key("audit_context").begin_object();
  out.member("gateway", "bulkhead");
  out.member("session_calls", r.session_calls);
  out.member("session_age_ms", r.session_age_ns / 1'000'000);
  out.end_object();
}

}  // namespace

Question make_question(const Config &config, const bh_policy_request &request, bool response,
                       std::string_view text) {
  const std::string_view name = response ? "result" : "arguments";
  const bool approved = (request.flags & BH_REQUEST_APPROVED) != 0;
  Question out;
  out.response = response;
  out.decision_id = random_id();
  std::string all;
  Writer asked(&all);
  asked.begin_object();
  asked.member("session_id", std::to_string(request.session));
  asked.member("on", response ? "mcp.response" : "mcp.request");
  put_subject(asked, request);
  std::vector<Beside> texts = response ? std::vector<Beside>() : beside_of(request);
  if (!text.empty()) texts.insert(texts.begin(), {name, text});
  put_texts(asked, config, texts);
  put_hashes(asked, config, request, texts);
  asked.member("approved", approved);
  asked.end_object();
  out.key = sha256(all);

  std::string body;
  Writer head(&body);
  head.begin_object();
  head.member("spec_version", spec_version);
  head.member("decision_id", out.decision_id);
  head.member("trace_id", trace_of(bh::view(request.meta)));
  put_audit(head, request);
  head.end_object();
  body.back() = ',';  // the comma joins the members of the two objects
  body.append(std::string_view(all).substr(1));
  out.body = config.style == Style::opa ? "{\"input\":" + body + "}" : std::move(body);
  return out;
}

}  // namespace policy_http
