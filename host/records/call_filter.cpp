#include "records/call_filter.hpp"

#include <algorithm>

#include "common/suggestion.hpp"
#include "common/text.hpp"
#include "record-store/schema.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {
namespace {

bool has_name(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string not_recorded(std::string_view what, const std::string &name,
                         const std::vector<std::string> &names) {
  const std::string hint = suggestion(name, names);
  return "no recorded call has the " + std::string(what) + " \"" + printable(name) + "\"" +
         (hint.empty() ? "" : "; " + hint);
}

}  // namespace

CallFilter::CallFilter(RecordArguments arguments, std::string server, std::string since,
                       const Naming &naming)
    : wanted_(std::move(arguments)),
      server_(std::move(server)),
      since_(std::move(since)),
      names_(naming),
      listed_(names_.aliased(wanted_.tool)) {
  if (!naming.prefix || naming.separator.empty()) return;
  const std::size_t at = listed_.find(naming.separator);
  if (at == std::string::npos || at == 0) return;
  tools_.emplace_back(listed_.substr(0, at), listed_.substr(at + naming.separator.size()));
}

std::string CallFilter::tool_condition() const {
  std::string out = "tool_name = " + sql_quoted(wanted_.tool);
  if (listed_ != wanted_.tool && !names_.naming().prefix) {
    out += " OR tool_name = " + sql_quoted(listed_);
  }
  for (const auto &[server, tool] : tools_) {
    out +=
        " OR (server_name = " + sql_quoted(server) + " AND tool_name = " + sql_quoted(tool) + ")";
  }
  return "(" + out + ")";
}

std::string CallFilter::sql() const {
  std::string out;
  if (!server_.empty()) out += " AND server_name = " + sql_quoted(server_);
  if (!wanted_.tool.empty()) out += " AND " + tool_condition();
  if (!wanted_.client.empty()) {
    const std::string name = sql_quoted(wanted_.client);
    out += " AND (claimed_name = " + name + " OR process_name = " + name + ")";
  }
  if (!wanted_.session.empty()) out += " AND session = " + sql_quoted(wanted_.session);
  if (!wanted_.trace.empty()) out += " AND trace_id = " + sql_quoted(wanted_.trace);
  if (!since_.empty()) out += " AND timestamp >= " + sql_quoted(since_);
  const std::string failed = "decision = 'error' OR error_message IS NOT NULL OR (flags & " +
                             std::to_string(record_store::flag_tool_error) + ") != 0";
  if (wanted_.denied && wanted_.errors) {
    out += " AND (decision = 'denied' OR " + failed + ")";
  } else if (wanted_.denied) {
    out += " AND decision = 'denied'";
  } else if (wanted_.errors) {
    out += " AND decision <> 'denied' AND (" + failed + ")";
  }
  return out;
}

bool CallFilter::is_tool(const Tool &recorded) const {
  return recorded.second == wanted_.tool ||
         names_.compose(recorded.first, recorded.second) == listed_;
}

bool CallFilter::add_shortened(const RecordedNames &recorded) {
  if (wanted_.tool.empty()) return false;
  const std::size_t before = tools_.size();
  for (const Tool &tool : recorded.tools) {
    if (tool.second == wanted_.tool || !is_tool(tool)) continue;
    if (std::find(tools_.begin(), tools_.end(), tool) == tools_.end()) tools_.push_back(tool);
  }
  return tools_.size() > before;
}

std::optional<std::string> CallFilter::unknown_name(const RecordedNames &recorded,
                                                    const std::vector<std::string> &servers) const {
  if (!server_.empty() && !has_name(recorded.servers, server_) && !has_name(servers, server_)) {
    std::vector<std::string> all = recorded.servers;
    for (const std::string &name : servers) {
      if (!has_name(all, name)) all.push_back(name);
    }
    return not_recorded("server", server_, all);
  }
  const auto is_wanted = [this](const Tool &tool) { return is_tool(tool); };
  if (!wanted_.tool.empty() &&
      std::none_of(recorded.tools.begin(), recorded.tools.end(), is_wanted)) {
    std::vector<std::string> all;
    for (const auto &[server, tool] : recorded.tools) {
      const auto listed = names_.compose(server, tool);
      for (const std::string &name : {tool, listed.value_or(tool)}) {
        if (!has_name(all, name)) all.push_back(name);
      }
    }
    return not_recorded("tool", wanted_.tool, all);
  }
  if (!wanted_.client.empty() && !has_name(recorded.clients, wanted_.client)) {
    return not_recorded("client", wanted_.client, recorded.clients);
  }
  return std::nullopt;
}

}  // namespace bulkhead::program
