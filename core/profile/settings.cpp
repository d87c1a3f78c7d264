#include "profile/settings.hpp"

#include "bulkhead/cpp/text.hpp"
#include "profile/tcp_address.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::uint64_t kDay = 86'400'000;
constexpr std::uint64_t kGiB = 1ull << 30;

std::string refused_separator(const std::string &text) {
  if (text.empty()) return "the separator must not be empty";
  if (text.size() > 8) return "the separator is longer than 8 characters";
  for (const char c : text)
    if (c <= ' ' || c >= 0x7F) return "white space and characters outside ASCII are not allowed";
  return {};
}

std::string refused_scheme(const std::string &text) {
  bool good = !text.empty() && text.size() <= 32 && bh::is_letter(text[0]);
  for (const char c : text)
    good = good && (bh::is_letter_or_digit(c) || c == '+' || c == '-' || c == '.');
  if (!good) return "a URI scheme must be a letter followed by letters, digits, '+', '-' or '.'";
  for (const std::string_view taken : {"http", "https", "file", "ui", "data"})
    if (text == taken) return in_quotes(text) + " has a special meaning for clients";
  return {};
}

std::string refused_tool_name(std::string_view name) {
  constexpr std::size_t most = 256;
  if (name.empty()) return "a tool name must not be empty";
  if (name.size() > most) return "the name is longer than " + std::to_string(most) + " bytes";
  for (const char c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F)
      return "white space and control characters are not allowed";
  return {};
}

void read_aliases(const Key<Naming> &, const KeyValue &input, Naming &naming) {
  Diagnostics &diagnostics = input.diagnostics();
  const Node &table = input.value();
  if (!diagnostics.is_table(table, input.path)) return;
  if (table.members.size() > Naming::max_aliases)
    return input.reject("more than " + std::to_string(Naming::max_aliases) + " aliases");
  for (const Member &member : table.members) {
    const std::string at = join(input.path, member.name);
    auto tool = diagnostics.string(member.value, at);
    if (!tool) continue;
    std::string why = refused_tool_name(member.name);
    if (why.empty()) why = refused_tool_name(*tool);
    if (why.empty() && (*tool == member.name || table.find(*tool) != nullptr))
      why = "an alias must refer to a listed tool, not to another alias";
    if (!why.empty())
      diagnostics.error(member.value.place, at, std::move(why));
    else
      naming.aliases[member.name] = *std::move(tool);
  }
}

std::string refused_server_name(const std::string &name) {
  return name.empty() || name.size() > 128 ? "must be 1 to 128 bytes long" : "";
}

std::string refused_listen(const std::string &address) {
  return address.empty() || tcp_sockaddr(address)
             ? ""
             : "must be an IP address and a port, e.g. 127.0.0.1:9464 or [::1]:9464";
}

// docs/limits.md must list these limits; a test compares them.
constexpr Key<Limits> kLimits[] = {
    number<&Limits::message_bytes>("message_bytes", 1024, kGiB),
    number<&Limits::header_bytes>("header_bytes", 1024, 1ull << 20),
    number<&Limits::sessions>("sessions", 1, 1'000'000),
    number<&Limits::session_idle_ms>("session_idle_ms", 1000, 30 * kDay),
    number<&Limits::event_buffer_bytes>("event_buffer_bytes", 0, kGiB),
    number<&Limits::write_queue_bytes>("write_queue_bytes", 1024, 4 * kGiB),
    number<&Limits::write_stall_ms>("write_stall_ms", 100, kDay),
    number<&Limits::request_read_ms>("request_read_ms", 100, kDay),
    number<&Limits::shutdown_grace_ms>("shutdown_grace_ms", 0, 600'000),
    number<&Limits::connect_timeout_ms>("connect_timeout_ms", 1, kDay),
    number<&Limits::call_timeout_ms>("call_timeout_ms", 1, kDay),
    number<&Limits::request_timeout_ms>("request_timeout_ms", 1, kDay),
    number<&Limits::timeout_ceiling_ms>("timeout_ceiling_ms", 1, kDay),
    number<&Limits::ask_timeout_ms>("ask_timeout_ms", 1, kDay),
    number<&Limits::first_list_wait_ms>("first_list_wait_ms", 0, 600'000),
    number<&Limits::grace_ms>("grace_ms", 0, 600'000),
    number<&Limits::drain_ms>("drain_ms", 0, 600'000),
    number<&Limits::retry_min_ms>("retry_min_ms", 1, kDay),
    number<&Limits::retry_max_ms>("retry_max_ms", 1, kDay),
    number<&Limits::in_flight_per_session>("in_flight_per_session", 1, 65'536),
    number<&Limits::queued_per_server>("queued_per_server", 0, 1'000'000),
    number<&Limits::asks_per_session>("asks_per_session", 1, 65'536),
    number<&Limits::subscriptions_per_session>("subscriptions_per_session", 0, 1'000'000),
    number<&Limits::listens_per_client>("listens_per_client", 0, 65'536),
    number<&Limits::task_lifetime_ms>("task_lifetime_ms", 1000, 30 * kDay),
    number<&Limits::items_per_server>("items_per_server", 1, 1'000'000),
    number<&Limits::list_bytes_per_server>("list_bytes_per_server", 1024, 4 * kGiB),
    number<&Limits::page_items>("page_items", 1, 1'000'000),
    number<&Limits::idle_view_ms>("idle_view_ms", 0, 30 * kDay),
    number<&Limits::policy_timeout_ms>("policy_timeout_ms", 1, 600'000),
    number<&Limits::policy_waiting_bytes>("policy_waiting_bytes", 1024, 4 * kGiB),
    number<&Limits::approval_timeout_ms>("approval_timeout_ms", 1000, kDay),
    number<&Limits::approvals_waiting>("approvals_waiting", 1, 10'000),
    number<&Limits::approvals_per_session>("approvals_per_session", 1, 10'000),
    number<&Limits::approvals_bytes>("approvals_bytes", 1024, 4 * kGiB),
    number<&Limits::plugin_init_ms>("plugin_init_ms", 1, 600'000),
    number<&Limits::stderr_bytes>("stderr_bytes", 4096, kGiB),
};

constexpr Key<Expose> kExpose[] = {
    flag<&Expose::tools>("tools"),
    flag<&Expose::resources>("resources"),
    flag<&Expose::prompts>("prompts"),
    flag<&Expose::logging>("logging"),
    flag<&Expose::completions>("completions"),
    flag<&Expose::list_changed>("list_changed"),
    flag<&Expose::subscribe>("subscribe"),
};

constexpr Word kPrefix[] = {{"always", true}, {"never", false}};
constexpr Word kLongNames[] = {{"shorten", true}, {"error", false}};
constexpr Word kNames[] = {{"strict", true}, {"any", false}};
constexpr Word kBadNames[] = {{"error", true}, {"skip", false}};
constexpr Key<Naming> kNaming[] = {
    text<&Naming::separator>("separator", refused_separator),
    choice<&Naming::prefix>("prefix", kPrefix),
    text<&Naming::scheme>("scheme", refused_scheme),
    choice<&Naming::shorten>("long_names", kLongNames),
    number<&Naming::max_length>("max_length", 24, 256),
    choice<&Naming::strict_names>("names", kNames),
    choice<&Naming::bad_names_error>("bad_names", kBadNames),
    custom<Naming>("aliases", read_aliases),
};

constexpr Word kUnknownParams[] = {{"forward", static_cast<int>(UnknownParams::forward)},
                                   {"drop", static_cast<int>(UnknownParams::drop)},
                                   {"refuse", static_cast<int>(UnknownParams::refuse)}};
constexpr Key<Profile> kGateway[] = {
    text<&Profile::server_name>("name", refused_server_name),
    text<&Profile::metrics_listen>("metrics_listen", refused_listen),
    choice<&Profile::unknown_params>("unknown_params", kUnknownParams),
};

constexpr Word kIsolationModes[] = {{"require", true}, {"best-effort", false}};
constexpr Key<Isolation> kIsolation[] = {
    choice<&Isolation::require>("mode", kIsolationModes),
};

constexpr Key<Approvers> kApproval[] = {
    flag<&Approvers::elicitation>("elicitation"),
    flag<&Approvers::api>("api"),
};

constexpr Word kPinModes[] = {{"off", static_cast<int>(PinRules::Mode::off)},
                              {"watch", static_cast<int>(PinRules::Mode::watch)},
                              {"enforce", static_cast<int>(PinRules::Mode::enforce)}};
constexpr Word kNewTools[] = {{"accept", true}, {"hold", false}};
constexpr Key<PinRules> kPins[] = {
    choice<&PinRules::mode>("mode", kPinModes),
    choice<&PinRules::accept_new>("new_tools", kNewTools),
};

// Reduces the gateway's default time-outs to the ceiling.
void clamp_timeouts(const Node &table, Context &context) {
  Limits &limits = context.profile.limits;
  for (auto member : {&Limits::call_timeout_ms, &Limits::request_timeout_ms}) {
    if (limits.*member <= limits.timeout_ceiling_ms) continue;
    limits.*member = limits.timeout_ceiling_ms;
    context.diagnostics.note(table.place,
                             std::string("limits.") +
                                 (member == &Limits::call_timeout_ms ? "call" : "request") +
                                 "_timeout_ms exceeds timeout_ceiling_ms, which is used instead");
  }
}

template <class T>
void add_settings(std::string_view section, std::span<const Key<T>> keys, const T &source,
                  std::vector<Setting> *out) {
  for (const Key<T> &key : keys)
    out->push_back({section, key.name,
                    key.show == nullptr ? std::nullopt : std::optional(key.show(key, source))});
}

}  // namespace

std::span<const Key<Limits>> limit_keys() {
  return kLimits;
}

void read_gateway(const Node &table, Context &context) {
  read_keys<Profile>(table, "gateway", kGateway, context.profile, context);
}

void read_naming(const Node &table, Context &context) {
  read_keys<Naming>(table, "naming", kNaming, context.profile.naming, context);
}

void read_expose(const Node &table, Context &context) {
  read_keys<Expose>(table, "expose", kExpose, context.profile.expose, context);
}

void read_limits(const Node &table, Context &context) {
  Limits &limits = context.profile.limits;
  read_keys<Limits>(table, "limits", kLimits, limits, context);
  if (table.kind != Kind::table) return;
  if (limits.retry_min_ms > limits.retry_max_ms)
    context.diagnostics.error(table.place, "limits", "retry_min_ms is larger than retry_max_ms");
  if (limits.write_queue_bytes < limits.message_bytes)
    context.diagnostics.error(table.place, "limits",
                              "write_queue_bytes is smaller than message_bytes, so the "
                              "largest message could never be sent");
  clamp_timeouts(table, context);
}

void read_isolation(const Node &table, Context &context) {
  read_keys<Isolation>(table, "isolation", kIsolation, context.profile.isolation, context);
}

void read_approval(const Node &table, Context &context) {
  read_keys<Approvers>(table, "approval", kApproval, context.profile.approval, context);
}

void read_pins(const Node &table, Context &context) {
  read_keys<PinRules>(table, "pins", kPins, context.profile.pins, context);
}

std::vector<Setting> settings_of(const Profile &profile) {
  std::vector<Setting> out;
  add_settings<Naming>("naming", kNaming, profile.naming, &out);
  add_settings<Expose>("expose", kExpose, profile.expose, &out);
  add_settings<Limits>("limits", kLimits, profile.limits, &out);
  add_settings<Isolation>("isolation", kIsolation, profile.isolation, &out);
  add_settings<Approvers>("approval", kApproval, profile.approval, &out);
  add_settings<PinRules>("pins", kPins, profile.pins, &out);
  add_settings<PluginTrust>("plugin_trust", plugin_trust_keys(), profile.plugin_trust, &out);
  add_settings<Profile>("gateway", kGateway, profile, &out);
  return out;
}

}  // namespace bulkhead::profiles
