#include "check/report.hpp"

#include <algorithm>

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/text.hpp"

namespace bulkhead::check {
namespace {

using program::counted;
using program::printable;

// The text must not contain control characters.
std::string xml(std::string_view text) {
  std::string out, plain = printable(text);
  for (const std::string_view wrong : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {  // not in XML 1.0
    for (auto at = plain.find(wrong); at != std::string::npos; at = plain.find(wrong, at)) {
      plain.replace(at, wrong.size(), "?");
    }
  }
  for (const char c : plain) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string joined(const std::vector<std::string> &texts) {
  std::string out;
  for (const std::string &text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

}  // namespace

void Report::violated(Rule rule, std::string what) {
  checked.insert(rule);
  auto &all = violations[rule];
  if (all.size() < most_per_rule && std::find(all.begin(), all.end(), what) == all.end()) {
    all.push_back(std::move(what));
  }
}

std::string to_text(const Report &report) {
  std::string out = printable(report.file) + ": ";
  if (!report.id.empty()) out += printable(report.id) + " " + printable(report.version) + ", ";
  out += counted(report.checked.size(), "rule") + " checked, " +
         (report.violations.empty() ? "none" : std::to_string(report.violations.size())) +
         " violated\n";
  for (const auto &[rule, texts] : report.violations) {
    const RuleText &text = text_of(rule);
    out += "\n" + id_of(rule) + "  " + std::string(text.title) + "\n";
    for (const std::string &what : texts) out += "  found: " + printable(what) + "\n";
    out += "  fix: " + std::string(text.fix) + "\n";
  }
  if (!report.not_checked.empty()) out += "\n";
  for (const std::string &what : report.not_checked)
    out += "not checked: " + printable(what) + "\n";
  for (const std::string &what : report.notes) out += "note: " + printable(what) + "\n";
  return out;
}

std::string to_json(const Report &report) {
  std::string out;
  bh::json::Writer json(&out);
  json.begin_object().member("file", report.file).member("id", report.id);
  json.member("version", report.version).member("provides", report.provides);
  json.member("ok", report.violations.empty()).member("complete", report.complete());
  json.key("checked").begin_array();
  for (const Rule rule : report.checked) json.value(id_of(rule));
  json.end_array().key("violations").begin_array();
  for (const auto &[rule, texts] : report.violations) {
    const RuleText &text = text_of(rule);
    json.begin_object().member("rule", id_of(rule)).member("title", text.title);
    json.member("found", texts).member("fix", text.fix).end_object();
  }
  json.end_array().member("not_checked", report.not_checked).member("notes", report.notes);
  json.end_object();
  return out + "\n";
}

std::string to_junit(const Report &report) {
  std::string cases;
  for (const Rule rule : report.checked) {
    const RuleText &text = text_of(rule);
    cases += "  <testcase classname=\"" + xml(report.id) + "\" name=\"" + id_of(rule) + " " +
             xml(text.title) + "\"";
    const auto found = report.violations.find(rule);
    if (found == report.violations.end()) {
      cases += "/>\n";
      continue;
    }
    cases += ">\n    <failure message=\"" + xml(joined(found->second)) +
             "\">fix: " + xml(text.fix) + "</failure>\n  </testcase>\n";
  }
  for (const std::string &what : report.not_checked) {
    cases += "  <testcase classname=\"" + xml(report.id) +
             "\" name=\"not checked\">\n    <skipped "
             "message=\"" +
             xml(what) + "\"/>\n  </testcase>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bulkhead plugin check " +
         xml(report.file) + "\" tests=\"" +
         std::to_string(report.checked.size() + report.not_checked.size()) + "\" failures=\"" +
         std::to_string(report.violations.size()) + "\" skipped=\"" +
         std::to_string(report.not_checked.size()) + "\">\n" + cases + "</testsuite>\n";
}

}  // namespace bulkhead::check
