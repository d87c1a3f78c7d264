// The servers that the tests start. The first argument selects the behaviour. Unless a server exits
// early, it echoes every line until its standard input is closed.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void out(const std::string &text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(1, text.data() + at, text.size() - at);
    if (n <= 0) ::_exit(3);
    at += static_cast<std::size_t>(n);
  }
}

bool line(std::string *to) {
  static std::string buffer;
  for (;;) {
    const std::size_t newline = buffer.find('\n');
    if (newline != std::string::npos) {
      *to = buffer.substr(0, newline + 1);
      buffer.erase(0, newline + 1);
      return true;
    }
    char piece[65'536];
    const ssize_t n = ::read(0, piece, sizeof piece);
    if (n <= 0) return false;
    buffer.append(piece, static_cast<std::size_t>(n));
  }
}

void echo() {
  std::string text;
  while (line(&text)) out(text);
}

void print_environment() {
  for (char **e = environ; *e != nullptr; ++e) out("{" + std::string(*e) + "}\n");
  out("{end}\n");
}

void wait_for_ever() {
  for (;;) ::pause();
}

void leave_grandchild() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    wait_for_ever();
  }
  out("{" + std::to_string(pid) + "}\n");
}

}  // namespace

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "echo";
  const std::string value = argc > 2 ? argv[2] : "";
  std::string text;
  if (mode == "env") print_environment();
  if (mode == "args") {
    for (int i = 0; i < argc; ++i) out("{" + std::string(argv[i]) + "}\n");
  }
  if (mode == "banner") out("Server \x1b[1mv1\x1b[0m listening on stdio\n\n  ready?\n");
  if (mode == "usage" || mode == "usage-message") {
    out("\x1b[1musage\x1b[0m: server PORT\n");
    if (mode == "usage-message") out("{message}\n");
    if (value.empty()) wait_for_ever();
    return std::stoi(value);
  }
  if (mode == "exit") {
    line(&text);
    std::fprintf(stderr, "starting\n\x1b[31mfatal:\x1b[0m key %s refused\n", value.c_str());
    std::fflush(stderr);
    out("{last words}\n");
    return 7;
  }
  if (mode == "stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    out("{ready}\n");
    wait_for_ever();
  }
  if (mode == "deaf") {
    out("{ready}\n");
    wait_for_ever();
  }
  if (mode == "grandchild") leave_grandchild();
  if (mode == "grandchild-exit") {
    leave_grandchild();
    line(&text);
    return 0;
  }
  if (mode == "big") out("{" + std::string(std::stoul(value), 'x') + "}\n");
  if (mode == "stderr") {
    for (unsigned long i = 0; i < std::stoul(value); ++i) {
      std::fprintf(stderr, "line %lu of the log\n", i);
    }
    out("{logged}\n");
  }
  if (mode == "close-output") {
    ::close(1);
    wait_for_ever();
  }
  if (mode == "close-input") {
    ::close(0);
    out("{ready}\n");
    wait_for_ever();
  }
  echo();
  return 0;
}
