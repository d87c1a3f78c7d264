#include "approve/approvals_view.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t short_id = 8;

std::string shown_member(std::string_view object, std::string_view key) {
  return printable(bh::json::member_text(object, key));
}

std::uint64_t number_of(std::string_view object, std::string_view key) {
  const std::string_view value = mcp::member(object, key);
  std::uint64_t out = 0;
  std::from_chars(value.data(), value.data() + value.size(), out);
  return out;
}

std::string seconds(std::uint64_t ms) {
  return std::to_string((ms + 999) / 1000) + " s";
}

// Splits the text into lines of at most `columns` characters.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> out(1);
  std::size_t used = 0;
  for (const char c : text) {
    const bool starts = !bh::is_utf8_tail(c);
    if (starts && used == columns) {
      out.emplace_back();
      used = 0;
    }
    if (starts) ++used;
    out.back() += c;
  }
  return out;
}

}  // namespace

std::optional<std::vector<SeenQuestion>> read_questions(const std::string &socket,
                                                        std::string_view json,
                                                        std::string_view list) {
  if (!mcp::valid_json(json) || !json.starts_with('{')) return std::nullopt;
  const std::string_view pending = mcp::member(json, list);
  if (!pending.starts_with('[')) return std::nullopt;
  std::vector<SeenQuestion> out;
  mcp::for_each_item(pending, [&](std::string_view item) {
    if (!item.starts_with('{')) return;
    SeenQuestion &q = out.emplace_back();
    q.socket = socket;
    q.json = item;
    const std::pair<std::string_view, std::string *> texts[] = {{"id", &q.id},
                                                                {"server", &q.server},
                                                                {"method", &q.method},
                                                                {"name", &q.name},
                                                                {"arguments", &q.arguments},
                                                                {"meta", &q.meta},
                                                                {"extra", &q.extra},
                                                                {"rule", &q.rule},
                                                                {"scope", &q.scope},
                                                                {"reason", &q.reason},
                                                                {"process_name", &q.process_name},
                                                                {"claimed_name", &q.claimed_name},
                                                                {"principal", &q.principal},
                                                                {"transport", &q.transport}};
    for (const auto &[name, text] : texts) *text = shown_member(item, name);
    // The ID is validated because it becomes part of a request path.
    if (!bh::is_lower_hex(q.id) || q.id.empty()) {
      out.pop_back();
      return;
    }
    q.arguments_cut = mcp::member(item, "arguments_cut") == "true";
    q.arguments_bytes = number_of(item, "arguments_bytes");
    q.expires_in_ms = number_of(item, "expires_in_ms");
  });
  return out;
}

std::string all_params(const SeenQuestion &q) {
  std::string out = q.arguments;
  if (!q.meta.empty()) out += " _meta: " + q.meta;
  if (!q.extra.empty()) out += " other members: " + q.extra;
  return out;
}

std::string questions_table(const std::vector<SeenQuestion> &questions) {
  Table table({"ID", "SERVER", "NAME", "RULE", "CLIENT", "CLAIMED", ">LEFT", "ARGUMENTS"});
  for (const SeenQuestion &q : questions) {
    table.add({q.id.substr(0, short_id), q.server, first_line(q.name, 60), first_line(q.rule, 40),
               first_line(q.process_name.empty() ? q.transport : q.process_name, 30),
               first_line(q.claimed_name, 30), seconds(q.expires_in_ms),
               first_line(all_params(q), 160)});
  }
  return table.empty() ? "" : table.str();
}

std::string pending_text(const std::vector<SeenQuestion> &questions) {
  if (questions.empty()) return {};
  const bool one = questions.size() == 1;
  return counted(questions.size(), "call") + (one ? " is" : " are") +
         " still waiting for approval and will be denied after a time-out:\n" +
         questions_table(questions) +
         "To decide, use `bulkhead approvals allow ID` or `deny ID`, or run `bulkhead approvals "
         "watch` again.\n";
}

std::string grants_table(const std::vector<SeenQuestion> &grants) {
  Table table({"ID", "SERVER", "NAME", "SCOPE", "CLIENT", "CLAIMED", ">LEFT", "ARGUMENTS"});
  for (const SeenQuestion &q : grants) {
    const bool tool = q.scope.starts_with("tool ");
    table.add({q.id.substr(0, short_id), q.server, first_line(q.name, 60), q.scope,
               first_line(q.process_name.empty() ? q.transport : q.process_name, 30),
               first_line(q.claimed_name, 30),
               q.expires_in_ms == 0 ? "-" : seconds(q.expires_in_ms),
               tool ? "any" : first_line(q.arguments, 160)});
  }
  return table.empty() ? "" : table.str();
}

const SeenQuestion *ApprovalsView::selected() const {
  const auto at = std::find_if(questions_.begin(), questions_.end(),
                               [&](const SeenQuestion &q) { return q.id == selected_id_; });
  return at == questions_.end() ? nullptr : &*at;
}

void ApprovalsView::select(std::size_t index, std::uint64_t since_ms) {
  selected_id_ = index < questions_.size() ? questions_[index].id : std::string();
  since_ms_ = since_ms;
}

// Keeps the current request selected. If it is no longer pending, selects the request that is now
// at the same position.
void ApprovalsView::show(std::vector<SeenQuestion> questions, std::uint64_t now_ms) {
  const SeenQuestion *was = selected();
  const std::size_t place = was == nullptr ? 0 : static_cast<std::size_t>(was - questions_.data());
  questions_ = std::move(questions);
  if (selected() == nullptr) select(std::min(place, questions_.size() - 1), now_ms);
}

ApprovalsView::Action ApprovalsView::key(std::string_view key, std::uint64_t now_ms) {
  Action out;
  if (key == "q" || key == "\x03" || key == "\x04") {
    out.kind = Action::Kind::quit;
    return out;
  }
  message_.clear();
  const SeenQuestion *question = selected();
  if (question == nullptr) return out;
  const auto place = static_cast<std::size_t>(question - questions_.data());
  // The user has moved the selection, so further keys are accepted immediately.
  const std::uint64_t settled = now_ms >= settle_ms ? now_ms - settle_ms : 0;
  if ((key == "j" || key == "\x1b[B") && place + 1 < questions_.size()) {
    select(place + 1, settled);
  } else if ((key == "k" || key == "\x1b[A") && place > 0) {
    select(place - 1, settled);
  }
  if (key != "a" && key != "s" && key != "t" && key != "d") return out;
  if (now_ms < since_ms_ + settle_ms) {
    message_ = "The selected approval request is new: read it, then press the key again.";
    return out;
  }
  out.kind = Action::Kind::answer;
  out.question = *question;
  out.allow = key != "d";
  if (out.allow) out.scope = key[0];
  return out;
}

// ---- drawing ---------------------------------------------------------------------------------

void ApprovalsView::add_details(const SeenQuestion &q, std::size_t columns, std::size_t rows,
                                std::vector<std::string> *lines) const {
  const auto line = [&](std::string_view name, const std::string &text) {
    if (!text.empty()) lines->push_back(std::string(name) + text);
  };
  line("", "");
  line("id         ", q.id);
  line("server     ", q.server);
  line(q.method == "tools/call" ? "tool       " : "name       ", q.name);
  line("method     ", q.method);
  line("rule       ", q.rule);
  line("reason     ", q.reason);
  line("client     ", q.process_name.empty() ? q.transport : q.process_name + ", " + q.transport);
  line("claims     ", q.claimed_name.empty() ? "" : '"' + q.claimed_name + "\" (not verified)");
  line("principal  ", q.principal);
  lines->push_back("arguments  " + std::to_string(q.arguments_bytes) + " bytes");
  const std::size_t width = columns > 2 ? columns - 2 : 1;
  auto text = wrapped(q.arguments, width);
  if (!q.meta.empty()) {
    for (std::string &part : wrapped("_meta: " + q.meta, width)) text.push_back(std::move(part));
  }
  if (!q.extra.empty()) {
    for (std::string &part : wrapped("other members: " + q.extra, width))
      text.push_back(std::move(part));
  }
  const std::size_t room = rows > lines->size() + 1 ? rows - lines->size() - 1 : 0;
  for (std::size_t i = 0; i < std::min(room, text.size()); ++i) lines->push_back("  " + text[i]);
  if (text.size() > room) {
    lines->push_back("  NOT ALL ARGUMENTS FIT; `bulkhead approvals --json` shows more");
  } else if (q.arguments_cut) {
    lines->push_back("  THE ARGUMENTS ARE TRUNCATED");
  }
}

std::string ApprovalsView::draw(std::size_t columns, std::size_t rows) const {
  rows = std::max<std::size_t>(rows, 8);
  std::vector<std::string> lines;
  lines.push_back(questions_.empty() ? "No calls are waiting for approval."
                                     : std::to_string(questions_.size()) +
                                           (questions_.size() == 1 ? " call is" : " calls are") +
                                           " waiting for approval");
  // The list takes at most a third of the screen and always includes the selected request.
  const std::size_t most = std::max<std::size_t>(rows / 3, 3);
  const SeenQuestion *now = selected();
  const std::size_t place = now == nullptr ? 0 : static_cast<std::size_t>(now - questions_.data());
  const std::size_t first = place < most ? 0 : place - most + 1;
  for (std::size_t i = first; i < std::min(first + most, questions_.size()); ++i) {
    const SeenQuestion &q = questions_[i];
    lines.push_back((i == place ? "> " : "  ") + q.id.substr(0, short_id) + "  " +
                    seconds(q.expires_in_ms) + "  " + q.server + "  " + q.name);
  }
  if (questions_.size() > first + most) {
    lines.push_back("  and " + std::to_string(questions_.size() - first - most) + " more");
  }
  if (now != nullptr) add_details(*now, columns, rows - 3, &lines);
  lines.resize(std::min(lines.size(), rows - 3));
  lines.emplace_back();
  lines.push_back(message_);
  lines.push_back(now == nullptr ? "q quit"
                                 : "a allow once   s for the session   t this tool for 10 minutes  "
                                   " d deny   j k select   q quit");
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += first_line(lines[i], columns) + (i + 1 < lines.size() ? "\r\n" : "");
  }
  return out;
}

}  // namespace bulkhead::program
