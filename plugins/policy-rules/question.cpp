#include "question.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "cel/json_value.hpp"
#include "counters.hpp"
#include "uri.hpp"

namespace bulkhead::rules {
namespace {

using cel::Value;

constexpr char kNotKnown[] = "not known yet";
// Roots whose values are the same for all calls from one principal to one target.
constexpr std::uint64_t kConstantRoots = bit(kMethod) | bit(kServer) | bit(kTool) | bit(kPrompt) |
                                         bit(kUri) | bit(kUriNormalized) | bit(kPrincipal) |
                                         kDefinitionBits;

const rapidjson::Value &empty_object() {
  static const rapidjson::Value value(rapidjson::kObjectType);
  return value;
}
const rapidjson::Value &empty_array() {
  static const rapidjson::Value value(rapidjson::kArrayType);
  return value;
}

void append_strings(const rapidjson::Value &value, std::string *out) {
  if (value.IsString()) {
    if (!out->empty()) *out += '\n';
    out->append(value.GetString(), value.GetStringLength());
  } else if (value.IsObject()) {
    for (const auto &each : value.GetObject()) append_strings(each.value, out);
  } else if (value.IsArray()) {
    for (const auto &each : value.GetArray()) append_strings(each, out);
  }
}

// Returns the content of a result: the member that is defined for this method. All other content
// members are ignored, because a server could add them to hide the content.
const rapidjson::Value &content_of(const rapidjson::Value &result, std::string_view method) {
  const std::string_view name = method == "resources/read" ? "contents"
                                : method == "prompts/get"  ? "messages"
                                                           : "content";
  const rapidjson::Value *found = member(result, name);
  return found != nullptr && found->IsArray() ? *found : empty_array();
}

}  // namespace

std::string json_of(const rapidjson::Value &value) {
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  value.Accept(writer);
  return {out.GetString(), out.GetSize()};
}

void Question::begin(Event event, const Call &call, std::string_view result) {
  call_ = &call;
  event_ = event;
  filled_ = 0;
  body_ = event == Event::request    ? std::string_view{}
          : event == Event::response ? result
          : call.arguments.empty()   ? std::string_view("{}")
                                     : call.arguments;
  arguments_parsed_ = body_parsed_ = hosts_known_ = false;
  const bool is_call = event == Event::request || event == Event::response;
  const bool tool = call.method == "tools/call" || !is_call, prompt = call.method == "prompts/get";
  // A completion request refers to a prompt or a resource template, so both roots are set.
  const bool both = call.method == "completion/complete" && is_call;
  values_[kMethod] = Value::string(call.method);
  values_[kServer] = Value::string(call.server);
  values_[kTool] = Value::string(tool ? call.name : std::string_view{});
  values_[kPrompt] = Value::string(prompt || both ? call.name : std::string_view{});
  values_[kUri] = Value::string(call.uri());
  values_[kProcess] = Value::string(call.process_name);
  values_[kTransport] = Value::string(call.transport);
  values_[kPrincipal] = Value::string(call.principal);
  values_[kPeer] = Value::string(call.peer);
  values_[kClaimedName] = Value::string(call.claimed_name);
  values_[kSessionCalls] = Value::of(static_cast<std::int64_t>(call.session_calls));
  values_[kSessionAge] =
      Value::duration({static_cast<std::int64_t>(call.session_age_ns / 1'000'000'000),
                       static_cast<std::int32_t>(call.session_age_ns % 1'000'000'000)});
  filled_ =
      ((std::uint64_t{1} << kCommon) - 1) & ~bit(kSessionId) & ~bit(kTime) & ~bit(kUriNormalized);
  if (event == Event::request) {
    values_[kPinned] = Value::of(call.pin == BH_PIN_SAME);
    filled_ |= bit(kPinned);
  } else if (event == Event::notification) {
    values_[kRecipient] = Value::string(call.to_server ? "server" : "client");
    filled_ |= bit(kRecipient);
  }
}

const char *Question::parse_arguments() {
  if (!arguments_parsed_) {
    arguments_parsed_ = true;
    arguments_fault_ = arguments_.parse(call_->arguments.empty() ? "{}" : call_->arguments);
    if (arguments_fault_ == nullptr && !arguments_.value().IsObject())
      arguments_fault_ = "not an object";
  }
  return arguments_fault_;
}

const char *Question::parse_body() {
  if (!body_parsed_) {
    body_parsed_ = true;
    body_fault_ = result_.parse(body_);
    if (body_fault_ == nullptr && !result_.value().IsObject()) body_fault_ = "not an object";
  }
  return body_fault_;
}

void Question::fill_arguments(bool as_text) {
  if (parse_arguments() != nullptr) return;
  values_[kArguments] = cel::json_value(arguments_.value());
  if (!as_text) return;
  arguments_text_ = call_->arguments.empty() ? std::string() : json_of(arguments_.value());
  values_[kArgumentsText] = Value::string(arguments_text_);
}

// Sets the roots for the remaining members of params. A missing member has the value {}.
void Question::fill_beside() {
  const auto set = [&](Root root, JsonText *json, std::string_view text, const char *fault) {
    const bool good =
        json->parse(text.empty() ? "{}" : text) == nullptr && json->value().IsObject();
    values_[root] = good ? cel::json_value(json->value()) : Value::error(fault);
  };
  set(kExtra, &extra_, call_->extra, "the other members of params are not an object");
  set(kCompletion, &argument_, call_->argument, "the argument is not an object");
  set(kCompletionContext, &context_, call_->context, "the context is not an object");
}

void Question::fill_definition() {
  const bool known = !call_->definition.empty();
  if (known && definition_.parse(call_->definition) != nullptr) {
    const char *fault = "the tool's definition cannot be evaluated";
    values_[kAnnotations] = values_[kDescription] = Value::error(fault);
    return;
  }
  const rapidjson::Value &item = known ? definition_.value() : empty_object();
  const rapidjson::Value *annotations = member(item, "annotations");
  const rapidjson::Value *description = member(item, "description");
  const bool object = annotations != nullptr && annotations->IsObject();
  values_[kAnnotations] = cel::json_value(object ? *annotations : empty_object());
  values_[kDescription] = description != nullptr && description->IsString()
                              ? cel::json_value(*description)
                              : Value::string({});
}

void Question::fill_response() {
  const rapidjson::Value &result = result_.value();
  const rapidjson::Value *flag = member(result, "isError");
  const bool is_error = flag != nullptr && flag->IsBool() && flag->GetBool();
  values_[kIsError] = Value::of(is_error);
  values_[kStatus] = Value::string(is_error ? "error" : "ok");
  values_[kContent] = cel::json_value(content_of(result, call_->method));
  const rapidjson::Value *structured = member(result, "structuredContent");
  values_[kStructured] = structured != nullptr ? cel::json_value(*structured) : Value::absent();
  response_text_.clear();
  append_strings(result, &response_text_);
  values_[kText] = Value::string(response_text_);
}

// For a server-initiated request, a client response or a notification, sets the body roots from
// result_.
void Question::fill_body() {
  const rapidjson::Value &body = result_.value();
  values_[kCommon] = cel::json_value(body);
  response_text_.clear();
  append_strings(body, &response_text_);
  values_[kCommon + 1] = Value::string(response_text_);
  if (event_ == Event::input_response) {
    const rapidjson::Value *action = member(body, "action");
    values_[kInputAction] =
        Value::string(action != nullptr && action->IsString() ? text_of(*action) : "");
  }
}

void Question::fill(std::uint64_t slots) {
  slots &= ~filled_;
  if (slots == 0) return;
  if ((slots & bit(kSessionId)) != 0) {
    session_id_ = std::to_string(call_->session);
    values_[kSessionId] = Value::string(session_id_);
  }
  if ((slots & bit(kUriNormalized)) != 0) {
    const std::string_view uri = values_[kUri].text();
    uri_normalized_ = uri.empty() ? std::string() : normalized_uri(uri);
    values_[kUriNormalized] = is_ambiguous_uri(uri)
                                  ? Value::error("the URI of a file has \"..\" after '?' or '#'")
                                  : Value::string(uri_normalized_);
  }
  if ((slots & bit(kTime)) != 0) {
    const std::uint64_t now = unix_ms_();
    values_[kTime] = Value::timestamp(
        {static_cast<std::int64_t>(now / 1000), static_cast<std::int32_t>(now % 1000) * 1'000'000});
  }
  filled_ |= slots & (bit(kSessionId) | bit(kTime) | bit(kUriNormalized));
  if (event_ != Event::request) {
    if ((slots & body_bits(event_)) == 0) return;
    event_ == Event::response ? fill_response() : fill_body();
    filled_ |= body_bits(event_);
    return;
  }
  if ((slots & kArgumentBits) != 0) {
    fill_arguments((slots & bit(kArgumentsText)) != 0);
    filled_ |= bit(kArguments) | (slots & bit(kArgumentsText));
  }
  if ((slots & bit(kMeta)) != 0) {
    const bool good = meta_.parse(call_->meta.empty() ? "{}" : call_->meta) == nullptr &&
                      meta_.value().IsObject();
    values_[kMeta] = good ? cel::json_value(meta_.value()) : Value::error("_meta is not an object");
    filled_ |= bit(kMeta);
  }
  if ((slots & kBesideBits) != 0) {
    fill_beside();
    filled_ |= kBesideBits;
  }
  if ((slots & kDefinitionBits) != 0) {
    fill_definition();
    filled_ |= kDefinitionBits;
  }
}

const char *Question::find_hosts() {
  if (hosts_known_) return nullptr;
  hosts_.clear();
  if (const char *fault = parse_arguments()) return fault;
  collect_hosts(arguments_.value(), &hosts_);
  collect_hosts(call_->uri(), &hosts_);
  const std::pair<JsonText *, std::string_view> beside[] = {{&meta_, call_->meta},
                                                            {&argument_, call_->argument},
                                                            {&context_, call_->context},
                                                            {&extra_, call_->extra}};
  for (const auto &[json, text] : beside) {
    if (text.empty()) continue;
    if (const char *fault = json->parse(text)) return fault;
    collect_hosts(json->value(), &hosts_);
  }
  hosts_known_ = true;
  return nullptr;
}

std::set<std::string> Question::take_hosts() {
  return hosts_known_ ? std::move(hosts_) : std::set<std::string>();
}

void Question::clear_texts() {
  arguments_.clear();
  result_.clear();
}

std::string_view Question::changeable() const noexcept {
  return event_ == Event::request ? call_->arguments : body_;
}

void Question::hide_request() {
  for (std::uint32_t slot = kCommon; slot < kRoots; ++slot) {
    values_[slot] = Value::error(kNotKnown);
    filled_ |= bit(slot);
  }
}

void Question::hide_what_differs() {
  fill(kDefinitionBits | bit(kUriNormalized));
  for (std::uint32_t slot = 0; slot < kRoots; ++slot) {
    if ((kConstantRoots & bit(slot)) == 0) values_[slot] = Value::error(kNotKnown);
  }
  // If the name is a URI template, the URI that a call would use is not known.
  if (call_->name.find('{') != std::string_view::npos && !values_[kUri].text().empty())
    values_[kUri] = values_[kUriNormalized] = Value::error(kNotKnown);
  filled_ = ~0ull;
}

}  // namespace bulkhead::rules
