// Prints the help of commands. Descriptions are wrapped, which CLI11 does not do before
// version 2.5.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead::program {

class HelpFormatter : public CLI::Formatter {
 public:
  static constexpr std::size_t max_columns = 100;

  HelpFormatter() { column_width(34); }

  // Returns the text in lines of at most `width` bytes. A longer word has a line of its own.
  static std::string wrapped(std::string_view text, std::size_t width) {
    std::string out;
    std::size_t line = 0;  // length of the last line
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(word.size() + 1, text.size()));
      if (line > 0 && line + 1 + word.size() > width) {
        out += '\n';
        line = 0;
      } else if (line > 0) {
        out += ' ';
        ++line;
      }
      out += word;
      line += word.size();
    }
    return out;
  }

  std::string make_option_desc(const CLI::Option *option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), max_columns - column_width_);
  }

  std::string make_subcommand(const CLI::App *command) const override {
    std::string out = "  " + command->get_display_name(true);
    const std::string indent(column_width_, ' ');
    out = out.size() < column_width_ ? out + indent.substr(out.size()) : out + "\n" + indent;
    for (const char c : wrapped(command->get_description(), max_columns - column_width_)) {
      out += c;
      if (c == '\n') out += indent;
    }
    return out + "\n";
  }
};

}  // namespace bulkhead::program
