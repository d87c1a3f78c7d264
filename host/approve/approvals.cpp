// Implements `approvals`, which shows and resolves the approval requests of running gateways. It
// reaches the gateways through their service sockets.

#include <algorithm>
#include <atomic>
#include <iterator>
#include <set>

#include "approve/approvals_terminal.hpp"
#include "approve/approvals_view.hpp"
#include "approve/notifier.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "route/approval.hpp"
#include "service/control_client.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t look_ms = 500, answer_wait_ms = 5'000;
// Each poll tells the gateway to let calls wait for approval for this long.
constexpr std::string_view watch_body = R"({"seconds":5})";
constexpr std::size_t min_id = 4, max_remembered = 10'000;

std::atomic<bool> stop_wanted{false};

std::string error_of(const FoundGateway &gateway) {
  if (!gateway.error.empty()) return gateway.error;
  std::string scratch;
  const std::string_view text = mcp::valid_json(gateway.answer) && gateway.answer.starts_with('{')
                                    ? mcp::member(gateway.answer, "error")
                                    : std::string_view{};
  return text.starts_with('"') ? printable(mcp::unquote(text, &scratch))
                               : "the response is not from a gateway";
}

struct Looked {
  std::size_t gateways = 0;
  std::vector<SeenQuestion> questions, grants;
  std::vector<std::string> failures;  // "SOCKET: reason"
};

// Gets the pending approval requests and the approvals in force from all gateways. If `watch` is
// true, also registers this command as an approval surface.
Looked look(bool watch) {
  Looked out;
  const auto found =
      watch ? ask_gateways(control_dirs(), "POST", "/confirm/watch", status_wait_ms, watch_body)
            : ask_gateways(control_dirs(), "GET", "/confirm/pending", status_wait_ms);
  for (const FoundGateway &gateway : found) {
    ++out.gateways;
    auto questions =
        gateway.status == 200 ? read_questions(gateway.socket, gateway.answer) : std::nullopt;
    if (!questions) {
      out.failures.push_back(gateway_name(gateway.socket) + ": " + error_of(gateway));
      continue;
    }
    std::move(questions->begin(), questions->end(), std::back_inserter(out.questions));
    if (auto grants = read_questions(gateway.socket, gateway.answer, "granted")) {
      std::move(grants->begin(), grants->end(), std::back_inserter(out.grants));
    }
  }
  return out;
}

int not_running() {
  return complain("no gateway is running; `bulkhead serve` starts one", exit_not_running);
}

// Resolves a request. `decision` is allow, deny or revoke. Returns the reason for a failure, or an
// empty string on success.
std::string answer(const SeenQuestion &question, std::string_view decision,
                   std::string_view scope = R"("once")") {
  std::string body = R"({"decision":")";
  body.append(decision).append(R"(","scope":)").append(scope);
  body += R"(,"surface":"terminal"})";
  const auto done =
      ask_gateway(question.socket, "POST", "/confirm/" + question.id, answer_wait_ms, body);
  if (!done) return "the gateway has stopped";
  return done->status == 200 ? "" : error_of(*done);
}

int list(const Arguments &arguments) {
  const Looked looked = look(false);
  if (looked.gateways == 0 && !arguments.json) return not_running();
  for (const std::string &failure : looked.failures) complain(failure);
  std::string text;
  if (arguments.json) {
    for (const SeenQuestion &q : looked.questions) text += (text.empty() ? "" : ",") + q.json;
    text = "{\"pending\":[" + text + "],\"granted\":[";
    for (const SeenQuestion &q : looked.grants) text += (text.ends_with('[') ? "" : ",") + q.json;
    text += "]}\n";
  } else {
    text = questions_table(looked.questions);
    if (text.empty() && looked.failures.empty()) text = "No calls are waiting for approval.\n";
    if (!looked.grants.empty()) text += "\nApprovals in force:\n" + grants_table(looked.grants);
  }
  const bool written = write_stdout(text);
  if (looked.gateways == 0) return exit_not_running;
  return written && looked.failures.empty() ? exit_ok : exit_failed;
}

std::string scope_text(bool tool, bool session, std::uint32_t minutes) {
  std::string out = tool ? R"("tool":true)" : "";
  if (session && !tool) return R"("session")";
  if (minutes != 0) out += (tool ? "," : "") + (R"("minutes":)" + std::to_string(minutes));
  return out.empty() ? R"("once")" : "{" + out + "}";
}

enum class Answer : std::uint8_t { allow, deny, revoke };

int answer_one(const Arguments &arguments, Answer kind) {
  const bool revokes = kind == Answer::revoke;
  const bool allow = kind == Answer::allow;
  if (arguments.question.size() < min_id) {
    return complain("specify at least " + std::to_string(min_id) + " characters of the ID",
                    exit_usage);
  }
  if (arguments.for_tool && !arguments.for_session &&
      (arguments.for_minutes == 0 || arguments.for_minutes > ApprovalScope::max_tool_minutes)) {
    return complain("--tool requires --session, or --minutes from 1 to " +
                        std::to_string(ApprovalScope::max_tool_minutes),
                    exit_usage);
  }
  const Looked looked = look(false);
  if (looked.gateways == 0) return not_running();
  for (const std::string &failure : looked.failures) complain(failure);
  std::vector<const SeenQuestion *> meant;
  for (const SeenQuestion &q : revokes ? looked.grants : looked.questions) {
    if (q.id.starts_with(arguments.question)) meant.push_back(&q);
  }
  if (meant.size() > 1) {
    return complain(std::to_string(meant.size()) + (revokes ? " approvals" : " approval requests") +
                    " have an ID that begins with \"" + arguments.question +
                    "\"; specify more characters");
  }
  if (meant.empty() && revokes) {
    return complain("no approval \"" + arguments.question +
                    "\" is in force: it was revoked or has expired; `bulkhead approvals` lists "
                    "approvals in force");
  }
  if (meant.empty()) {
    return complain("no approval request \"" + arguments.question +
                    "\" is pending: it was answered, was withdrawn or timed out; `bulkhead "
                    "approvals` lists pending requests");
  }
  const std::string error =
      answer(*meant[0],
             revokes ? "revoke"
             : allow ? "allow"
                     : "deny",
             scope_text(arguments.for_tool, arguments.for_session, arguments.for_minutes));
  if (!error.empty()) return complain(error);
  const SeenQuestion &q = *meant[0];
  return write_stdout(std::string(revokes ? "revoked"
                                  : allow ? "allowed"
                                          : "denied") +
                      ": " + q.server + " " + q.name + "\n")
             ? exit_ok
             : exit_failed;
}

// ---- watching --------------------------------------------------------------------------------

std::string line_of(const SeenQuestion &q) {
  return q.id + "  " + q.server + "  " + q.name + "  rule " + q.rule +
         (q.claimed_name.empty() ? "" : "  client claims \"" + q.claimed_name + "\"") + "  " +
         first_line(all_params(q), 400) + "\n";
}

// Prints a line for each new request. Used with --json, and if standard input or output is not a
// terminal.
int watch_lines(const Arguments &arguments) {
  std::set<std::string> known;
  Notifier notifier;
  while (!stop_wanted.load()) {
    const Looked looked = look(true);
    if (looked.gateways == 0) return not_running();
    if (arguments.notify) {
      if (const std::string error = notifier.show(looked.questions); !error.empty()) {
        complain(error);
      }
    }
    if (known.size() > max_remembered) known.clear();
    std::string text;
    for (const SeenQuestion &q : looked.questions) {
      if (known.insert(q.id).second) text += arguments.json ? q.json + "\n" : line_of(q);
    }
    if (!text.empty() && !write_stdout(text)) return exit_failed;
    const timespec pause{0, static_cast<long>(look_ms) * 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return exit_ok;
}

void act(const ApprovalsView::Action &action, ApprovalsView *view) {
  const bool tool = action.scope == 't', session = action.scope == 's';
  const std::string error = answer(action.question, action.allow ? "allow" : "deny",
                                   scope_text(tool, session, tool ? view->tool_minutes : 0));
  const SeenQuestion &q = action.question;
  view->show_message(error.empty() ? std::string(!action.allow ? "denied"
                                                 : tool        ? "allowed for 10 minutes"
                                                 : session     ? "allowed for the session"
                                                               : "allowed once") +
                                         ": " + q.server + " " + q.name
                                   : "not answered: " + error);
}

int watch_keys(const Arguments &arguments) {
  if (look(true).gateways == 0) return not_running();
  KeyTerminal terminal;
  ApprovalsView view;
  Notifier notifier;
  std::uint64_t next_look = 0;
  while (!stop_wanted.load()) {
    if (bh::monotonic_ms() >= next_look) {
      const Looked looked = look(true);
      view.show(looked.questions, bh::monotonic_ms());
      if (arguments.notify) {
        if (std::string error = notifier.show(looked.questions); !error.empty()) {
          view.show_message(std::move(error));
        }
      }
      if (!looked.failures.empty()) view.show_message(looked.failures[0]);
      if (looked.gateways == 0) view.show_message("no gateway is running");
      next_look = bh::monotonic_ms() + look_ms;
    }
    std::size_t columns = 0, rows = 0;
    KeyTerminal::size(&columns, &rows);
    if (!terminal.show(view.draw(columns, rows))) return exit_failed;
    const std::uint64_t now = bh::monotonic_ms();
    const auto key = terminal.key(next_look > now ? next_look - now : 0);
    if (!key) return exit_failed;
    if (key->empty()) continue;
    const ApprovalsView::Action action = view.key(*key, bh::monotonic_ms());
    if (action.kind == ApprovalsView::Action::Kind::quit) return exit_ok;
    if (action.kind == ApprovalsView::Action::Kind::answer) {
      act(action, &view);
      next_look = 0;
    }
  }
  return exit_ok;
}

}  // namespace

int run_approvals(const Arguments &arguments) {
  return list(arguments);
}
int run_approvals_allow(const Arguments &arguments) {
  return answer_one(arguments, Answer::allow);
}
int run_approvals_deny(const Arguments &arguments) {
  return answer_one(arguments, Answer::deny);
}
int run_approvals_revoke(const Arguments &arguments) {
  return answer_one(arguments, Answer::revoke);
}

int run_approvals_watch(const Arguments &arguments) {
  set_signalled(bh::callback(&stop_wanted, [](std::atomic<bool> &wanted) { wanted.store(true); }));
  const bool keys = KeyTerminal::possible() && !arguments.json;
  const int code = keys ? watch_keys(arguments) : watch_lines(arguments);
  set_signalled({});
  if (!keys || code != exit_ok) return code;
  return write_stdout(pending_text(look(false).questions)) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
