#include "route/ledger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <array>
#include <random>
#include <string>

using bulkhead::Ledger;
using bulkhead::LedgerRecord;
using bulkhead::OwnedFd;

namespace {

OwnedFd memory() {
  auto fd = Ledger::make();
  REQUIRE(fd);
  return std::move(*fd);
}

// Opens the ledger as the next endpoint process would.
std::unique_ptr<Ledger> next(const OwnedFd &fd) {
  auto ledger = Ledger::open(fd.get());
  REQUIRE(ledger != nullptr);
  return ledger;
}

LedgerRecord record(std::string id, std::vector<std::string> subscriptions = {}) {
  return {std::move(id), 2, 5, 3, 1, std::move(subscriptions)};
}

std::size_t size_of(const OwnedFd &fd) {
  return static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END));
}

}  // namespace

TEST_CASE(
    "later processes know the ids of ended sessions, except the oldest if there are too many") {
  const OwnedFd fd = memory();
  CHECK(next(fd)->ended().empty());
  next(fd)->add_ended(7);
  next(fd)->add_ended(8);
  CHECK(next(fd)->ended() == std::vector<std::uint64_t>{7, 8});
  auto ledger = next(fd);
  for (std::uint64_t key = 100; key < 100 + Ledger::max_ended - 1; ++key) ledger->add_ended(key);
  const auto ended = next(fd)->ended();
  REQUIRE(ended.size() == Ledger::max_ended);
  CHECK(ended.front() == 8);
  CHECK(ended.back() == 100 + Ledger::max_ended - 2);
}

TEST_CASE("a session is found by its id only in the next process") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    const auto slot = ledger->claim("one");
    REQUIRE(slot != Ledger::none);
    ledger->write(slot, record("one", {R"("a://b")", R"("c")"}));
    ledger->write(ledger->claim("two"), record("two"));
    CHECK(ledger->take("one") == Ledger::none);
  }
  auto ledger = next(fd);
  CHECK(ledger->take("three") == Ledger::none);
  const auto slot = ledger->take("one");
  REQUIRE(slot != Ledger::none);
  CHECK(ledger->take("one") == Ledger::none);
  const auto found = ledger->read(slot);
  REQUIRE(found);
  CHECK(found->revision == 2);
  CHECK(found->caps == 5);
  CHECK(found->log_level == 3);
  CHECK(found->listed == 1);
  CHECK(found->subscriptions == std::vector<std::string>{R"("a://b")", R"("c")"});
  ledger->release(slot);
  ledger = next(fd);
  CHECK(ledger->take("one") == Ledger::none);
  CHECK(ledger->take("two") != Ledger::none);
}

TEST_CASE("if a record is only partly written, the previous record is valid") {
  const OwnedFd fd = memory();
  auto ledger = next(fd);
  const auto slot = ledger->claim("one");
  ledger->write(slot, record("one", {R"("before")"}));
  // Simulate a crash during the second write. The copy that is not valid may then contain anything.
  const std::size_t size = size_of(fd);
  auto *bytes =
      static_cast<char *>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  REQUIRE(bytes != MAP_FAILED);
  ledger->write(slot, record("one", {R"("after")"}));
  const std::string_view all(bytes, size);
  const std::size_t before = all.find("\"before\""), after = all.find("\"after\"");
  REQUIRE(before != std::string_view::npos);
  REQUIRE(after != std::string_view::npos);
  bytes[before] = '?';
  REQUIRE(next(fd)->read(slot)->subscriptions.front() == R"("after")");
  ledger->write(slot, record("one", {R"("last")"}));
  bytes[after] = '?';
  CHECK(next(fd)->read(slot)->subscriptions.front() == R"("last")");
  ::munmap(bytes, size);
}

TEST_CASE("data that does not fit is not stored") {
  const OwnedFd fd = memory();
  auto ledger = next(fd);
  CHECK(ledger->claim("") == Ledger::none);
  CHECK(ledger->claim(std::string(Ledger::max_id_bytes + 1, 'x')) == Ledger::none);
  const auto slot = ledger->claim(std::string(Ledger::max_id_bytes, 'x'));
  const std::string small = "\"s\"", large(Ledger::max_record_bytes, 'l');
  ledger->write(slot, record(std::string(Ledger::max_id_bytes, 'x'), {small, large, small}));
  CHECK(ledger->read(slot)->subscriptions == std::vector<std::string>{small, small});
  ledger->write(slot, record("x", std::vector<std::string>(5'000, small)));
  const std::size_t kept = ledger->read(slot)->subscriptions.size();
  CHECK(kept > 500);
  CHECK(kept < 600);
  std::size_t places = 1;
  while (ledger->claim("y") != Ledger::none) ++places;
  CHECK(places == Ledger::max_sessions);
  ledger->release(slot);
  CHECK(ledger->claim("y") == slot);
}

TEST_CASE("the slots of sessions that are not resumed are freed when the sessions are too old") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    for (std::uint32_t i = 0; i < Ledger::max_sessions; ++i) {
      const std::string id = std::to_string(i);
      ledger->write(ledger->claim(id), record(id));
    }
  }
  auto ledger = next(fd);
  CHECK(ledger->any_left());
  CHECK(ledger->take("7") != Ledger::none);
  CHECK(ledger->claim("new") == Ledger::none);
  ledger->forget_left();
  CHECK_FALSE(ledger->any_left());
  CHECK(ledger->take("8") == Ledger::none);
  CHECK(ledger->claim("new") != Ledger::none);
}

TEST_CASE("unanswered requests are found once each, in order") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    CHECK(ledger->add_request(2, "\"b\"", false));
    CHECK(ledger->add_request(1, "1", true));
    CHECK(ledger->add_request(3, "31", false));
    CHECK(ledger->add_request(3, "32", false));  // same stream: the requests of a batch
    CHECK(ledger->add_request(4, "4", false));
    CHECK_FALSE(ledger->add_request(5, std::string(Ledger::max_request_id_bytes + 1, '5'), false));
    CHECK_FALSE(ledger->add_request(0, "0", false));
    ledger->settle(4);
    ledger->settle(17);
    ledger->set_note(42);
  }
  auto ledger = next(fd);
  const auto requests = ledger->requests();
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].id == "1");
  CHECK(requests[0].initialize);
  CHECK(requests[1].id == "\"b\"");
  CHECK(requests[2].id == "31");
  CHECK(requests[3].id == "32");
  CHECK(ledger->last_stream() == 3);
  CHECK(ledger->note() == 42);
  ledger->settle(3);
  CHECK(ledger->requests().size() == 2);
  ledger->end_carried();
  CHECK(next(fd)->requests().empty());
  CHECK(next(fd)->note() == 0);
}

TEST_CASE("received bytes are stored until their messages are known") {
  const OwnedFd fd = memory();
  auto ledger = next(fd);
  CHECK(ledger->unread().empty());
  CHECK(ledger->keep("abc", false));
  CHECK(ledger->keep("def", true));
  ledger->taken(2);
  CHECK(next(fd)->unread() == "abcdef");
  ledger->commit();
  CHECK(next(fd)->unread() == "cdef");
  ledger->taken(1);
  CHECK(ledger->keep("g", true));
  ledger->taken(1);
  ledger->commit();
  CHECK(next(fd)->unread() == "efg");
  CHECK(ledger->keep("xy", false));
  ledger->commit();
  CHECK(next(fd)->unread() == "xy");
  ledger->taken(99);
  ledger->commit();
  CHECK(next(fd)->unread().empty());
  next(fd)->prove();  // otherwise, the contents would be discarded after several unproven processes
  CHECK(ledger->keep(std::string(Ledger::max_unread_bytes, 'x'), false));
  CHECK(next(fd)->unread().size() == Ledger::max_unread_bytes);
  CHECK_FALSE(ledger->keep("x", true));
  CHECK(next(fd)->unread().empty());
  CHECK_FALSE(ledger->keep(std::string(Ledger::max_unread_bytes + 1, 'x'), false));
  CHECK(ledger->keep("", false));
  // The bytes of another session are not affected by those that were taken before.
  CHECK(ledger->keep("abc", false));
  ledger->taken(2);
  ledger->end_carried();
  CHECK(ledger->keep("def", false));
  ledger->commit();
  CHECK(next(fd)->unread() == "def");
}

TEST_CASE("requests beyond the limit are not registered until space is available again") {
  const OwnedFd fd = memory();
  auto ledger = next(fd);
  std::uint64_t stream = 0;
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t first = stream + 1;
    for (std::uint32_t i = 0; i < Ledger::max_requests; ++i) {
      ++stream;
      REQUIRE(ledger->add_request(stream, std::to_string(stream), false));
    }
    CHECK_FALSE(ledger->add_request(stream + 1, "x", false));
    CHECK(ledger->requests().size() == Ledger::max_requests);
    for (std::uint64_t s = first; s <= stream; ++s) ledger->settle(s);
    CHECK(ledger->requests().empty());
  }
}

TEST_CASE("damaged memory yields less data, but reading it never fails") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    for (int i = 0; i < 50; ++i) {
      const std::string id = std::to_string(i);
      ledger->write(ledger->claim(id), record(id, {R"("x")", R"("yy")"}));
      ledger->add_request(static_cast<std::uint64_t>(i) + 1, id, false);
    }
    ledger->write(Ledger::carried, record(""));
  }
  const std::size_t size = size_of(fd);
  auto *bytes = static_cast<unsigned char *>(
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  REQUIRE(bytes != MAP_FAILED);
  std::mt19937 random{11};
  for (int round = 0; round < 300; ++round) {
    // Overwrite the tables, the requests and the first records, but not the magic number.
    for (int i = 0; i < 200; ++i)
      bytes[8 + random() % (1u << 20)] = static_cast<unsigned char>(random());
    auto ledger = next(fd);
    ledger->prove();
    for (const auto &request : ledger->requests()) {
      REQUIRE(request.id.size() <= Ledger::max_request_id_bytes);
      ledger->settle(request.stream);
    }
    for (int i = 0; i < 50; ++i) {
      const auto slot = ledger->take(std::to_string(i));
      const auto found = ledger->read(slot);
      REQUIRE((!found || found->id.size() <= Ledger::max_id_bytes));
    }
    ledger->read(Ledger::carried);
    REQUIRE(ledger->unread().size() <= Ledger::max_unread_bytes);
    ledger->taken(3);
    ledger->keep("more", true);
    ledger->commit();
    REQUIRE(ledger->unread().size() <= Ledger::max_unread_bytes);
    ledger->forget_left();
    const auto slot = ledger->claim("z");
    ledger->write(slot, record("z"));
    REQUIRE(ledger->read(slot)->id == "z");
  }
  ::munmap(bytes, size);
}

TEST_CASE("contents are dropped if several consecutive processes have read them and exited early") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    ledger->write(ledger->claim("one"), record("one"));
    ledger->add_request(1, "1", false);
  }
  for (std::uint32_t i = 0; i + 1 < Ledger::max_fruitless; ++i) {
    CHECK(next(fd)->requests().size() == 1);
  }
  next(fd)->prove();
  for (std::uint32_t i = 0; i < Ledger::max_fruitless; ++i) {
    CHECK(next(fd)->requests().size() == 1);
  }
  auto ledger = next(fd);
  CHECK(ledger->requests().empty());
  CHECK(ledger->take("one") == Ledger::none);
}

TEST_CASE("only sealed memory of the right size is mapped") {
  CHECK(Ledger::open(-1) == nullptr);
  const OwnedFd plain(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const OwnedFd real = memory();
  REQUIRE(::ftruncate(plain.get(), static_cast<off_t>(size_of(real))) == 0);
  CHECK(Ledger::open(plain.get()) == nullptr);
  REQUIRE(::fcntl(plain.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  CHECK(Ledger::open(plain.get()) != nullptr);
  const OwnedFd small(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  CHECK(Ledger::open(small.get()) == nullptr);
  CHECK(::ftruncate(real.get(), 0) != 0);
}

TEST_CASE("an evicted session's state is kept until its slot is needed") {
  const OwnedFd fd = memory();
  auto ledger = next(fd);
  const auto evict = [&](const std::string &id) {
    const auto slot = ledger->claim(id);
    REQUIRE(slot != Ledger::none);
    ledger->write(slot, record(id, {"\"" + id + "\""}));
    ledger->leave(slot, id);
  };
  evict("one");
  evict("two");
  const auto slot = ledger->take("one");
  REQUIRE(slot != Ledger::none);
  CHECK(ledger->read(slot)->subscriptions == std::vector<std::string>{"\"one\""});
  CHECK(ledger->take("one") == Ledger::none);

  // The slot of "two" is reused only when no other slot is free.
  for (std::uint32_t i = 2; i < Ledger::max_sessions; ++i) {
    REQUIRE(ledger->claim("x" + std::to_string(i)) != Ledger::none);
  }
  const auto needed = ledger->claim("last");
  CHECK(needed != Ledger::none);
  CHECK(ledger->take("two") == Ledger::none);
  CHECK_FALSE(ledger->read(needed).has_value());
  CHECK(ledger->claim("beyond") == Ledger::none);
}

TEST_CASE("the next process also finds an evicted session") {
  const OwnedFd fd = memory();
  {
    auto ledger = next(fd);
    const auto slot = ledger->claim("one");
    ledger->write(slot, record("one"));
    ledger->leave(slot, "one");
  }
  CHECK(next(fd)->take("one") != Ledger::none);
}
