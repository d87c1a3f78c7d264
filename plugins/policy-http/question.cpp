#include "policy-http/question.hpp"

#include <bulkhead/cpp/basics.hpp>

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sodium.h>

#include <algorithm>
#include <vector>

namespace policy_http {
namespace {

using Buffer = rapidjson::StringBuffer;
using Writer = rapidjson::Writer<Buffer>;

std::string hex(const unsigned char *bytes, std::size_t n) {
  std::string out(2 * n + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes, n);
  out.pop_back();
  return out;
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

void put(Writer &out, std::string_view key, std::string_view value) {
  out.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
  out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void put_known(Writer &out, std::string_view key, bh_str value) {
  if (value.n != 0) put(out, key, bh::view(value));
}

// The beginning of a text, cut between characters.
std::string_view cut(std::string_view text, std::uint64_t max) {
  std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(text.size(), max));
  while (n < text.size() && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return text.substr(0, n);
}

std::string_view name_key(std::string_view method) {
  if (method == "tools/call") return "tool_name";
  if (method.starts_with("prompts/")) return "prompt_name";
  return method.starts_with("resources/") ? "uri" : "name";
}

void put_subject(Writer &out, const bh_policy_request &r) {
  out.Key("subject");
  out.StartObject();
  put(out, "type", "mcp");
  put(out, "method", bh::view(r.method));
  put(out, "server_name", bh::view(r.server));
  put(out, name_key(bh::view(r.method)), bh::view(r.name));
  put_known(out, "principal", r.principal);
  put_known(out, "process_name", r.process_name);
  put_known(out, "transport", r.transport);
  put_known(out, "peer", r.peer);
  out.EndObject();
}

// Members of params that are sent beside the arguments: "argument", "context", "extra".
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

// Returns true if the text is complete.
bool put_preview(Writer &out, const Config &config, std::string_view name, std::string_view text) {
  if (text.size() > config.preview_bytes) {
    put(out, std::string(name) + "_text", cut(text, config.preview_bytes));
    return false;
  }
  out.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
  out.RawValue(text.data(), text.size(), rapidjson::kObjectType);
  return true;
}

void put_texts(Writer &out, const Config &config, const std::vector<Beside> &texts) {
  out.Key("preview");
  out.StartObject();
  bool whole = true;
  if (config.send == Send::preview) {
    for (const auto &[name, text] : texts) whole = put_preview(out, config, name, text) && whole;
  }
  if (!whole) {
    out.Key("truncated");
    out.Bool(true);
  }
  out.EndObject();
}

void put_hashes(Writer &out, const Config &config, const bh_policy_request &r,
                const std::vector<Beside> &texts) {
  out.Key("hashes");
  out.StartObject();
  if (config.send != Send::names) {
    for (const auto &[name, text] : texts) put(out, name, sha256(text));
  }
  put_known(out, "definition", r.definition_hash);
  out.EndObject();
}

// The trace parent "00-TRACE-SPAN-FLAGS" of _meta; empty if absent or malformed.
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
  const bool fits = trace.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return fits ? std::string(trace) : std::string();
}

void put_audit(Writer &out, const bh_policy_request &r) {
  out.Key("audit_context");
  out.StartObject();
  put(out, "gateway", "bulkhead");
  out.Key("session_calls");
  out.Uint64(r.session_calls);
  out.Key("session_age_ms");
  out.Uint64(r.session_age_ns / 1'000'000);
  out.EndObject();
}

}  // namespace

Question make_question(const Config &config, const bh_policy_request &request, bool response,
                       std::string_view text) {
  const std::string_view name = response ? "result" : "arguments";
  const bool approved = (request.flags & BH_REQUEST_APPROVED) != 0;
  Question out;
  out.response = response;
  out.decision_id = random_id();
  Buffer asked_bytes;
  Writer asked(asked_bytes);
  asked.StartObject();
  put(asked, "session_id", std::to_string(request.session));
  put(asked, "on", response ? "mcp.response" : "mcp.request");
  put_subject(asked, request);
  std::vector<Beside> texts = response ? std::vector<Beside>() : beside_of(request);
  if (!text.empty()) texts.insert(texts.begin(), {name, text});
  put_texts(asked, config, texts);
  put_hashes(asked, config, request, texts);
  asked.Key("approved");
  asked.Bool(approved);
  asked.EndObject();
  const std::string_view all(asked_bytes.GetString(), asked_bytes.GetSize());
  out.key = sha256(all);

  Buffer head_bytes;
  Writer head(head_bytes);
  head.StartObject();
  put(head, "spec_version", spec_version);
  put(head, "decision_id", out.decision_id);
  put(head, "trace_id", trace_of(bh::view(request.meta)));
  put_audit(head, request);
  head.EndObject();
  std::string body(head_bytes.GetString(), head_bytes.GetSize() - 1);
  body.append(",").append(all.substr(1));
  out.body = config.style == Style::opa ? "{\"input\":" + body + "}" : std::move(body);
  return out;
}

}  // namespace policy_http
