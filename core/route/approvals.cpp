#include "route/approvals.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/request_meta_names.hpp"
#include "mcp/scan.hpp"
#include "profile/sha256.hpp"

namespace bulkhead {
namespace {

// Returns an empty string if the kernel returned no random bytes.
std::string new_id() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return bh::hex({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

std::size_t size_of(const ApprovalQuestion &q) {
  constexpr std::size_t numbers = 128;
  return numbers + q.id.size() + q.server.size() + q.method.size() + q.name.size() +
         q.arguments.size() + q.meta.size() + q.extra.size() + q.digest.size() + q.rule.size() +
         q.reason.size() + q.process_name.size() + q.principal.size() + q.transport.size() +
         q.peer.size() + q.claimed_name.size() + q.tool_digest.size() + q.definition.size();
}

void add_part(std::string *out, std::string_view part) {
  // The length prefix ensures that different lists of parts produce different strings.
  out->append(std::to_string(part.size())).append(":").append(part);
}

std::string digest_of(std::string_view kind, std::initializer_list<std::string_view> parts) {
  std::string text(kind);
  std::size_t size = text.size() + 128;
  for (const std::string_view part : parts) size += part.size();
  text.reserve(size);
  for (const std::string_view part : parts) add_part(&text, part);
  return sha256_hex(text);
}

bool is_live(const ApprovalGrant &grant, std::uint64_t now_ns) {
  return grant.until_ns == 0 || grant.until_ns > now_ns;
}

// Returns true if both questions are about calls of one session or, without sessions, of clients
// that cannot be told apart.
bool is_same_session(const ApprovalQuestion &a, const ApprovalQuestion &b) {
  return a.session == b.session && (b.has_session || a.claimed_name == b.claimed_name);
}

bool covers(const ApprovalGrant &grant, const ApprovalQuestion &question) {
  const ApprovalQuestion &given = grant.question;
  if (given.rule != question.rule || given.process_name != question.process_name) return false;
  if (grant.scope.kind == ApprovalScope::Kind::session || grant.scope.tool) {
    if (!is_same_session(given, question)) return false;
  }
  if (grant.scope.kind == ApprovalScope::Kind::minutes || grant.scope.tool) {
    if (given.principal != question.principal || given.transport != question.transport)
      return false;
  }
  if (given.definition != question.definition) return false;
  if (!grant.scope.tool) return given.digest == question.digest;
  return !given.tool_digest.empty() && given.tool_digest == question.tool_digest;
}

}  // namespace

std::string approved_meta(std::string_view meta, bool modern) {
  if (meta.empty()) return {};
  std::string out;
  mcp::for_each_member(meta, [&text = out, modern](std::string_view key, std::string_view value) {
    constexpr std::string_view other_in_each[] = {"progressToken", "traceparent", "tracestate",
                                                  "baggage"};
    std::string scratch;
    const std::string_view name = mcp::unquote(key, &scratch);
    if (std::find(std::begin(other_in_each), std::end(other_in_each), name) !=
        std::end(other_in_each)) {
      return;
    }
    if (modern && mcp::is_request_meta(key)) return;
    text.append(text.empty() ? "{" : ",").append(key).append(":").append(value);
  });
  if (!out.empty()) out += '}';
  return out;
}

std::string approval_digest(std::string_view method, std::string_view server, std::string_view name,
                            const ApprovedTexts &texts) {
  return digest_of("bulkhead.approval/2;",
                   {method, server, name, texts.arguments, texts.meta, texts.extra});
}

std::string tool_approval_digest(std::string_view method, std::string_view server,
                                 std::string_view name, std::string_view extra) {
  return digest_of("bulkhead.approval.tool/1;", {method, server, name, extra});
}

// ---- approval requests -----------------------------------------------------------------------

std::string Approvals::refusal(const Limits &limits, const ClientLoad &load,
                               std::uint64_t bytes) const {
  const auto text = [](std::string_view what, std::string_view limit, std::uint64_t value) {
    std::string out = "needs approval, but too many calls ";
    out.append(what).append(" are already waiting (limits.").append(limit).append(" = ");
    return out.append(std::to_string(value)).append("); try again when fewer calls are waiting");
  };
  if (waiting_.size() >= limits.approvals_waiting) {
    return text("of this gateway", "approvals_waiting", limits.approvals_waiting);
  }
  if (load.approvals >= limits.approvals_per_session) {
    return text("of this client", "approvals_per_session", limits.approvals_per_session);
  }
  if (bytes_ + bytes > limits.approvals_bytes) {
    return "needs approval, but the calls that are already waiting are too large in total "
           "(limits.approvals_bytes = " +
           std::to_string(limits.approvals_bytes) + "); try again when fewer calls are waiting";
  }
  return {};
}

const ApprovalQuestion *Approvals::add(Waiting waiting) {
  waiting.question.id = new_id();
  if (waiting.question.id.empty()) return nullptr;
  bytes_ += waiting.bytes;
  if (waiting.load != nullptr) ++waiting.load->approvals;
  const auto at = waiting_.insert(waiting_.end(), std::move(waiting));
  by_call_.emplace(at->call, at);
  return &at->question;
}

const Approvals::Waiting *Approvals::find(std::string_view id) const noexcept {
  const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                               [id](const Waiting &one) { return one.question.id == id; });
  return at == waiting_.end() ? nullptr : &*at;
}

const Approvals::Waiting *Approvals::find(std::uint64_t call) const noexcept {
  const auto at = by_call_.find(call);
  return at == by_call_.end() ? nullptr : &*at->second;
}

std::optional<Approvals::Waiting> Approvals::take(std::uint64_t call) {
  const auto at = by_call_.find(call);
  if (at == by_call_.end()) return std::nullopt;
  Waiting out = std::move(*at->second);
  waiting_.erase(at->second);
  by_call_.erase(at);
  bytes_ -= out.bytes;
  if (out.load != nullptr) --out.load->approvals;
  return out;
}

ApprovalList Approvals::list(std::uint64_t now_ns) {
  ApprovalList out;
  out.waiting = waiting_.size();
  std::size_t bytes = 0;
  for (const Waiting &one : waiting_) {
    bytes += size_of(one.question);
    if (bytes > ApprovalList::max_bytes) break;
    out.questions.push_back(one.question);
  }
  bytes = 0;
  for (const ApprovalGrant &one : grants_) {
    if (!is_live(one, now_ns)) continue;
    bytes += size_of(one.question);
    if (bytes > ApprovalList::max_bytes) break;
    out.grants.push_back(one);
  }
  return out;
}

// ---- grants ----------------------------------------------------------------------------------

std::optional<ApprovalGrant> Approvals::grant(const ApprovalQuestion &question,
                                              const ApprovalScope &scope, std::uint64_t now_ns) {
  if (scope.kind == ApprovalScope::Kind::once) return std::nullopt;
  if (grants_.size() >= max_grants) remove_expired(now_ns);
  std::optional<ApprovalGrant> removed;
  if (grants_.size() >= max_grants) {
    removed = std::move(grants_.front());
    grants_.pop_front();
  }
  ApprovalGrant &grant = grants_.emplace_back(ApprovalGrant{question, scope, 0});
  ApprovalQuestion &kept = grant.question;
  if (kept.arguments.size() > ApprovalGrant::max_arguments) {
    kept.arguments = bh::cut_text(kept.arguments, ApprovalGrant::max_arguments);
    kept.arguments_cut = true;
  }
  kept.meta.clear();
  kept.extra.clear();
  kept.expires_unix_ms = 0;
  if (scope.kind != ApprovalScope::Kind::minutes) return removed;
  const std::uint64_t ms = std::uint64_t{scope.minutes} * 60'000u;
  grant.until_ns = now_ns + ms * 1'000'000u;
  kept.expires_unix_ms = bh::unix_ms() + ms;
  return removed;
}

void Approvals::remove_expired(std::uint64_t now_ns) {
  std::erase_if(grants_, [now_ns](const ApprovalGrant &one) { return !is_live(one, now_ns); });
}

bool Approvals::granted(const ApprovalQuestion &question, std::uint64_t now_ns) {
  remove_expired(now_ns);
  return std::any_of(grants_.begin(), grants_.end(),
                     [&](const ApprovalGrant &one) { return covers(one, question); });
}

void Approvals::forget_session(std::uint64_t session) {
  std::erase_if(grants_, [session](const ApprovalGrant &one) {
    const bool bound = one.scope.tool || one.scope.kind == ApprovalScope::Kind::session;
    return bound && one.question.has_session && one.question.session == session;
  });
}

template <class F>
std::vector<ApprovalGrant> Approvals::take_grants(F matches) {
  std::vector<ApprovalGrant> out;
  std::erase_if(grants_, [&](ApprovalGrant &one) {
    if (!matches(std::as_const(one))) return false;
    out.push_back(std::move(one));
    return true;
  });
  return out;
}

std::optional<ApprovalGrant> Approvals::revoke(std::string_view id) {
  auto taken = take_grants([id](const ApprovalGrant &one) { return one.question.id == id; });
  if (taken.empty()) return std::nullopt;
  return std::move(taken.front());
}

std::vector<ApprovalGrant> Approvals::take_server(std::string_view server) {
  return take_grants([server](const ApprovalGrant &one) { return one.question.server == server; });
}

std::vector<ApprovalGrant> Approvals::take_tool_grants() {
  return take_grants([](const ApprovalGrant &one) { return one.scope.tool; });
}

std::vector<ApprovalGrant> Approvals::take_outdated(const ApprovalQuestion &question) {
  return take_grants([&question](const ApprovalGrant &one) {
    return one.scope.tool && is_same_session(one.question, question) &&
           one.question.process_name == question.process_name &&
           one.question.tool_digest == question.tool_digest &&
           one.question.definition != question.definition;
  });
}

void Approvals::watch(std::uint64_t now_ns, std::uint64_t ms) noexcept {
  const std::uint64_t until = now_ns + std::min(ms, max_watch_ms) * 1'000'000u;
  watched_until_ns_ = std::max(watched_until_ns_, until);
}

// ---- texts -----------------------------------------------------------------------------------

std::string to_string(const ApprovalScope &scope) {
  switch (scope.kind) {
    case ApprovalScope::Kind::once:
      return "once";
    case ApprovalScope::Kind::session:
      return scope.tool ? "tool for session" : "session";
    case ApprovalScope::Kind::minutes:
      return (scope.tool ? "tool for " : "") + std::to_string(scope.minutes) +
             (scope.minutes == 1 ? " minute" : " minutes");
  }
  return "";
}

std::string_view to_string(ApprovalSurface surface) noexcept {
  switch (surface) {
    case ApprovalSurface::none:
      return "none";
    case ApprovalSurface::elicitation:
      return "elicitation";
    case ApprovalSurface::terminal:
      return "terminal";
    case ApprovalSurface::api:
      return "api";
  }
  return "";
}

std::string_view to_string(ApprovalEnd end) noexcept {
  switch (end) {
    case ApprovalEnd::allowed:
      return "allowed";
    case ApprovalEnd::denied:
      return "denied";
    case ApprovalEnd::expired:
      return "expired";
    case ApprovalEnd::withdrawn:
      return "withdrawn";
  }
  return "";
}

std::string describe(const ApprovalOutcome &outcome) {
  const ApprovalQuestion &q = outcome.question;
  std::string out = "approval " + q.id + " " + std::string(to_string(outcome.end));
  if (outcome.surface != ApprovalSurface::none) {
    out.append(" by ").append(to_string(outcome.surface));
  }
  if (outcome.end == ApprovalEnd::allowed || outcome.scope.kind != ApprovalScope::Kind::once) {
    out += " (" + to_string(outcome.scope) + ")";
  }
  const std::uint64_t waited_ms =
      outcome.ended_unix_ms > q.asked_unix_ms ? outcome.ended_unix_ms - q.asked_unix_ms : 0;
  return out + " after " + std::to_string(waited_ms) + " ms: " + q.method + " \"" + q.name +
         "\" on server \"" + q.server + "\", rule \"" + q.rule + "\", digest " + q.digest;
}

}  // namespace bulkhead
