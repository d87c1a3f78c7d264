#include "route/duplicate_checks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <barrier>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <map>

using namespace bulkhead;

namespace {

KeptText large(std::string_view more) {
  return kept(R"({"text":")" + std::string(300'000, 'x') + "\"" + std::string(more) + "}");
}

// A text in memory that no thread may read. The first read sets `reader` to the ID of its thread
// and makes the text readable. Only one object may exist at a time.
class Watched {
 public:
  explicit Watched(std::string_view text) : size_(text.size()) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (size_ + page - 1) / page * page;
    memory_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    std::memcpy(memory_, text.data(), size_);
    REQUIRE(::mprotect(memory_, mapped_, PROT_NONE) == 0);
    current = this;
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t *info, void *) { on_read(info->si_addr); };
    REQUIRE(::sigaction(SIGSEGV, &action, &old_) == 0);
  }
  ~Watched() {
    ::sigaction(SIGSEGV, &old_, nullptr);
    current = nullptr;
    ::munmap(memory_, mapped_);
  }
  Watched(const Watched &) = delete;
  Watched &operator=(const Watched &) = delete;

  std::string_view text() const { return {static_cast<const char *>(memory_), size_}; }
  pid_t reader() const { return reader_; }  // 0 if nothing has been read

 private:
  static inline Watched *current = nullptr;

  static void on_read(const void *at) {
    const auto *begin = static_cast<const char *>(current->memory_);
    if (at < begin || at >= begin + current->mapped_) {  // another fault ends the process
      ::signal(SIGSEGV, SIG_DFL);
      return;
    }
    current->reader_ = ::gettid();
    ::mprotect(current->memory_, current->mapped_, PROT_READ);
  }

  void *memory_ = nullptr;
  std::size_t size_;
  std::size_t mapped_ = 0;
  volatile pid_t reader_ = 0;
  struct sigaction old_ = {};
};

// Lets all threads of the pool receive SIGSEGV, which they block like all other signals.
void unblock_faults(Reactor &reactor) {
  struct Meeting {
    std::barrier<> all{Reactor::max_blocking_threads};
    std::uint32_t done = 0;
  } meeting;
  for (std::uint32_t i = 0; i < Reactor::max_blocking_threads; ++i) {
    const auto unblock = [](void *arg) {
      sigset_t faults;
      sigemptyset(&faults);
      sigaddset(&faults, SIGSEGV);
      ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
      static_cast<Meeting *>(arg)->all.arrive_and_wait();  // so each thread runs this once
    };
    const auto done = [](void *arg) { ++static_cast<Meeting *>(arg)->done; };
    REQUIRE(reactor.run_blocking(nullptr, unblock, done, &meeting) == BH_OK);
  }
  while (meeting.done < Reactor::max_blocking_threads) reactor.poll(-1);
}

}  // namespace

TEST_CASE("the thread of the event loop reads no byte of a text that is checked") {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  pid_t told = 0;
  bool twins = false;
  DuplicateChecks checks(**reactor, [&](std::uint64_t, bool found) {
    told = ::gettid();
    twins = found;
  });
  unblock_faults(**reactor);
  const Watched watched(*large(R"(,"a":1,"a":2)"));
  REQUIRE(checks.begin(1, kept("the owner of the text"), watched.text()));
  while (told == 0) (*reactor)->poll(-1);
  CHECK(twins);
  CHECK(told == ::gettid());
  CHECK(watched.reader() != 0);
  CHECK(watched.reader() != told);
}

TEST_CASE("duplicate members are found in a later turn") {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  std::map<std::uint64_t, bool> found;
  DuplicateChecks checks(**reactor,
                         [&](std::uint64_t number, bool twins) { found[number] = twins; });
  for (const auto &[number, more] :
       {std::pair(1, R"(,"a":1,"b":2)"), std::pair(2, R"(,"a":1,"a":2)")}) {
    const KeptText text = large(more);
    REQUIRE(checks.begin(static_cast<std::uint64_t>(number), text, *text));
  }
  CHECK(found.empty());
  while (found.size() < 2) (*reactor)->poll(-1);
  CHECK_FALSE(found.at(1));
  CHECK(found.at(2));
}

TEST_CASE("results are dropped after the object has been destroyed") {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  int told = 0;
  {
    DuplicateChecks checks(**reactor, [&](std::uint64_t, bool) { ++told; });
    const KeptText text = large("");
    REQUIRE(checks.begin(1, text, *text));
  }
  while ((*reactor)->held(nullptr).blocking != 0) (*reactor)->poll(10);
  (*reactor)->poll(10);
  CHECK(told == 0);
}
