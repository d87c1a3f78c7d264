// A scripted aggregator for testing the client. Its behaviour depends on the name of the called
// tool: "echo" returns the arguments, "defined" returns the definitions, "hang" never replies,
// "die" exits, "garble" replies in an unknown format, "later" replies after the next call has been
// answered.
#include <unistd.h>
#include <bulkhead-aggregator/frames.hpp>

#include <string>

using namespace bh::aggregator;

namespace {

class Fake {
 public:
  int run() {
    char piece[65'536];
    for (;;) {
      const ssize_t n = ::read(STDIN_FILENO, piece, sizeof piece);
      if (n <= 0) return 0;
      cutter_.add({piece, static_cast<std::size_t>(n)});
      while (cutter_.next() == FrameCutter::Next::message) {
        std::string scratch;
        std::string_view text;
        if (decode_message(cutter_.codec(), cutter_.message(), &scratch, &text) != nullptr) {
          return 1;
        }
        if (!handle(text)) return 0;
      }
    }
  }

 private:
  void write_line(const std::string &text) {
    std::string bytes;
    append_message(cutter_.codec(), text, &bytes);
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(STDOUT_FILENO, bytes.data() + at, bytes.size() - at);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }
  void answer(std::string_view id, std::string_view rest) {
    write_line("{\"id\":" + std::string(id) + "," + std::string(rest) + "}");
  }

  bool handle(std::string_view text) {
    if (text.starts_with('[')) {
      definitions_ = text;
      return true;
    }
    const std::string id(bh::json::member(text, "id"));
    const std::string method = bh::json::unquote(bh::json::member(text, "method"));
    const std::string_view params = bh::json::member(text, "params");
    if (method == "shutdown") {
      answer(id, "\"ok\":true");
      return false;
    }
    if (method == "refresh") {
      definitions_ = bh::json::member(params, "servers");
      answer(id, "\"ok\":true");
      return true;
    }
    if (method != "call_tool") {
      answer(id, "\"" + method.substr(method.find('_') + 1) + "\":[]");
      return true;
    }
    return call(id, bh::json::unquote(bh::json::member(params, "name")),
                bh::json::member(params, "arguments"));
  }

  bool call(const std::string &id, const std::string &name, std::string_view arguments) {
    if (name == "die") return false;
    if (name == "hang") return true;
    if (name == "later") {
      later_ = id;
      return true;
    }
    if (name == "garble") {
      answer(id, "\"what\":1");
    } else if (name == "echo") {
      answer(id, "\"result\":" + std::string(arguments));
    } else if (name == "defined") {
      answer(id, "\"result\":" + definitions_);
    } else {
      answer(id, "\"error\":\"no \\\"tool\\\"\"");
    }
    if (!later_.empty()) answer(later_, "\"result\":\"later\"");
    later_.clear();
    return true;
  }

  FrameCutter cutter_{Codec::automatic};
  std::string definitions_, later_;
};

}  // namespace

int main() {
  return Fake().run();
}
