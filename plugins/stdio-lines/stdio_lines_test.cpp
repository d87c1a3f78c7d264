#include <fcntl.h>
#include <unistd.h>
#include <bulkhead/cpp/basics.hpp>
#include <catch2/catch.hpp>

#include <string>
#include <thread>
#include <vector>

#include "stdio-lines/line_reader.hpp"
#include "stdio-lines/line_writer.hpp"
#include "stdio-lines/text.hpp"

using namespace stdio_lines;

namespace {

struct Pipe {
  Pipe() {
    REQUIRE(::pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    REQUIRE(::fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) > 0);
  }
  ~Pipe() {
    ::close(fds[0]);
    close_writer();
  }
  void close_writer() {
    if (fds[1] >= 0) ::close(fds[1]);
    fds[1] = -1;
  }
  void put(std::string_view text) const {
    REQUIRE(::write(fds[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string take() const {
    std::string all(2 << 20, '\0');
    const ssize_t n = ::read(fds[0], all.data(), all.size());
    all.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return all;
  }
  int fds[2]{-1, -1};
};

struct Collect final : LineSink {
  bool on_line(std::string_view line) override {
    lines.emplace_back(line);
    return !stop;
  }
  bool on_too_long(std::string_view start) override {
    too_long.emplace_back(start.substr(0, 4));
    return !stop;
  }
  std::vector<std::string> lines, too_long;
  bool stop = false;
};

constexpr std::size_t big_budget = 16u << 20;

bh_str part(std::string_view s) {
  return bh::str(s);
}

}  // namespace

TEST_CASE("one read returns all of its lines, without CR and blank lines") {
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  LineReader reader(1000);
  pipe.put("{1}\r\n\n  \t\n[2]\n\r\n{3");
  REQUIRE(reader.read(pipe.fds[0], scratch, sink, big_budget) == ReadEnd::drained);
  REQUIRE(sink.lines == std::vector<std::string>{"{1}", "[2]"});
  pipe.put("}\n");
  reader.read(pipe.fds[0], scratch, sink, big_budget);
  REQUIRE(sink.lines.back() == "{3}");
}

TEST_CASE("lines of any length are delivered completely, regardless of how the bytes are split") {
  const std::size_t length = GENERATE(1u, 100u, 65'535u, 65'536u, 65'537u, 262'144u, 900'000u);
  const std::size_t piece = GENERATE(7'777u, 65'536u, 300'000u);
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + i % 23);
  const std::string sent = text + "\nx\n" + text + "\ny\n";
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  LineReader reader(1 << 20);
  for (std::size_t at = 0; at < sent.size(); at += piece) {
    pipe.put(std::string_view(sent).substr(at, piece));
    REQUIRE(reader.read(pipe.fds[0], scratch, sink, big_budget) == ReadEnd::drained);
  }
  REQUIRE(sink.lines.size() == 4);
  REQUIRE(sink.lines[0] == text);
  REQUIRE(sink.lines[1] == "x");
  REQUIRE(sink.lines[2] == text);
  REQUIRE(sink.lines[3] == "y");
}

TEST_CASE("a line over the limit is reported once and skipped, and the next line is read") {
  const std::size_t length = GENERATE(11u, 70'000u, 400'000u);
  const std::size_t limit = length < 1000 ? 10 : length - 1;
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  LineReader reader(limit);
  const std::string line = "long" + std::string(length - 4, 'z');
  for (std::size_t at = 0; at < line.size(); at += 65'536) {
    pipe.put(std::string_view(line).substr(at, 65'536));
    reader.read(pipe.fds[0], scratch, sink, big_budget);
  }
  pipe.put("\nok\n");
  reader.read(pipe.fds[0], scratch, sink, big_budget);
  REQUIRE(sink.too_long == std::vector<std::string>{"long"});
  REQUIRE(sink.lines == std::vector<std::string>{"ok"});
}

TEST_CASE("a line of exactly the limit is accepted") {
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  LineReader reader(10);
  pipe.put("0123456789\n01234567890\n");
  reader.read(pipe.fds[0], scratch, sink, big_budget);
  REQUIRE(sink.lines == std::vector<std::string>{"0123456789"});
  REQUIRE(sink.too_long.size() == 1);
}

TEST_CASE("the budget limits one read() call, and the end of the file is reported") {
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  LineReader reader(1 << 20);
  for (int i = 0; i < 900; ++i) pipe.put(std::string(1000, 'q') + "\n");
  REQUIRE(reader.read(pipe.fds[0], scratch, sink, Scratch::size) == ReadEnd::budget);
  REQUIRE(sink.lines.size() < 300);
  pipe.put("last");
  pipe.close_writer();
  ReadEnd end = ReadEnd::budget;
  while (end == ReadEnd::budget || end == ReadEnd::drained) {
    end = reader.read(pipe.fds[0], scratch, sink, Scratch::size);
  }
  REQUIRE(end == ReadEnd::ended);
  REQUIRE(sink.lines.size() == 900);
  reader.finish(sink);
  REQUIRE(sink.lines.back() == "last");
}

TEST_CASE("a stopped sink receives no more lines") {
  Pipe pipe;
  Scratch scratch;
  Collect sink;
  sink.stop = true;
  LineReader reader(100);
  pipe.put("a\nb\n");
  REQUIRE(reader.read(pipe.fds[0], scratch, sink, big_budget) == ReadEnd::stopped);
  REQUIRE(sink.lines.size() == 1);
}

TEST_CASE("parts are joined to one line, and newlines become spaces") {
  Pipe pipe;
  LineWriter writer(1000);
  const bh_str parts[] = {part("{\r\n \"a\":"), part(""), part("1\n}")};
  REQUIRE(writer.add(parts));
  const bh_str second[] = {part("[]")};
  REQUIRE(writer.add(second));
  REQUIRE(pipe.take().empty());  // nothing is written before the flush
  REQUIRE(writer.flush(pipe.fds[1]) == Flush::done);
  REQUIRE(pipe.take() == "{   \"a\":1 }\n[]\n");
}

TEST_CASE("the queue limit rejects only whole messages") {
  Pipe pipe;
  LineWriter writer(10);
  const bh_str five[] = {part("12345")};
  const bh_str four[] = {part("1234")};
  REQUIRE(writer.add(five));
  REQUIRE_FALSE(writer.add(four));
  bool taken = true;
  REQUIRE(writer.add_and_flush(pipe.fds[1], four, &taken) == Flush::blocked);
  REQUIRE_FALSE(taken);
  REQUIRE(writer.flush(pipe.fds[1]) == Flush::done);
  REQUIRE(pipe.take() == "12345\n");
  REQUIRE(writer.add(four));
}

TEST_CASE("an empty queue accepts a message of any size") {
  Pipe pipe;
  LineWriter writer(10);
  const bh_str twenty[] = {part("01234567890123456789")};
  REQUIRE(writer.add(twenty));
  REQUIRE_FALSE(writer.add(twenty));
  REQUIRE(writer.flush(pipe.fds[1]) == Flush::done);
  REQUIRE(pipe.take() == "01234567890123456789\n");
}

TEST_CASE("large messages keep their order and are not lost if the pipe is full") {
  const bool pretty = GENERATE(false, true);
  Pipe pipe;
  LineWriter writer(16u << 20);
  std::string big(3'000'000, 'b');
  if (pretty) big[1'500'000] = '\n';
  const bh_str small[] = {part("before")};
  REQUIRE(writer.add(small));
  const bh_str parts[] = {part("{"), part(big), part("}")};
  bool taken = false;
  REQUIRE(writer.add_and_flush(pipe.fds[1], parts, &taken) == Flush::blocked);
  REQUIRE(taken);
  const bh_str after[] = {part("after")};
  REQUIRE(writer.add(after));
  std::string got = pipe.take();
  while (writer.flush(pipe.fds[1]) == Flush::blocked) got += pipe.take();
  got += pipe.take();
  if (pretty) big[1'500'000] = ' ';
  REQUIRE(got == "before\n{" + big + "}\nafter\n");
  REQUIRE(writer.waiting() == 0);
}

TEST_CASE("untrusted text is sanitized") {
  REQUIRE(cleaned("a\x1b[31mred\x1b[0m\tb\x07", 100) == "ared b ");
  REQUIRE(cleaned("\xff\xc3\xa9\xed\xa0\x80", 100) == "?\xc3\xa9???");
  REQUIRE(cleaned("ab\xc3\xa9", 3) == "ab");
  REQUIRE(cleaned("\x1b", 10).empty());
  REQUIRE(cleaned("\x1b[12", 10).empty());
  REQUIRE(cleaned("a\x1b]0;title\x07"
                  "b\x1b]8;;http://x/\x1b\\c\x1b(Bd\xC2\x9B"
                  "31me",
                  100) == "abcde");
  // U+0080 to U+009F: only U+009B begins a sequence; the others are replaced.
  REQUIRE(cleaned("a\xC2\x9D"
                  "0;title\xC2\x9C"
                  "b\xC2\x90q\x1b\\c\xC2\x85"
                  "d\xC2\x84\xE2\x80\xAE"
                  "e\xC2\x9B"
                  "31mf\xC2\x9D",
                  100) == "a 0;title b qc d  ef ");
  REQUIRE(cleaned("a\x1b]0;title\xC2\x9C"
                  "b",
                  100) == "ab");
  REQUIRE(cleaned("a\x1b]no end\nb", 100) == "a b");
  REQUIRE(cleaned("a\x1b[3\nb", 100) == "ab");
  REQUIRE(cleaned("a\x1b\nb\x1b]x\x1b[1mc", 100) == "a bc");
}

TEST_CASE("after a sink pauses, no line is delivered before resume, and no line is lost") {
  struct PauseEach final : LineSink {
    bool on_line(std::string_view line) override {
      lines.emplace_back(line);
      reader->pause();
      return true;
    }
    bool on_too_long(std::string_view) override { return true; }
    LineReader *reader = nullptr;
    std::vector<std::string> lines;
  } sink;
  // The last size exceeds the scratch buffer.
  const std::string big(GENERATE(20u, 100'000u, 300'000u), 'b');
  Pipe pipe;
  Scratch scratch;
  LineReader reader(1 << 20);
  sink.reader = &reader;
  pipe.put("{1}\n{2}\n" + big + "\n{3}\n{un");
  REQUIRE(reader.read(pipe.fds[0], scratch, sink, big_budget) == ReadEnd::drained);
  pipe.put("finished}\n");
  for (std::size_t n = 1; n <= 5; ++n) {
    REQUIRE(sink.lines.size() == n);
    REQUIRE(reader.read(pipe.fds[0], scratch, sink, big_budget) == ReadEnd::drained);
    REQUIRE(sink.lines.size() == n);
    REQUIRE(reader.resume(scratch, sink));
    if (sink.lines.size() == n) reader.read(pipe.fds[0], scratch, sink, big_budget);
  }
  REQUIRE(sink.lines == std::vector<std::string>{"{1}", "{2}", big, "{3}", "{unfinished}"});
}
