// Tests the session data that is stored for resumption, in the same process and in later processes.
#include "route/session_journal.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  Limits limits;
  Sessions sessions{1};
  FakeClient client;
  SessionJournal journal{sessions, *loop, limits};
  OwnedFd memory = *Ledger::make();
  std::unique_ptr<Ledger> ledger = Ledger::open(memory.get());
  Session &session = open_session(sessions, client);
  const SealTime now{loop->now_ns(), false};

  // Registers the session with this id.
  void remember(const char *id) {
    session.initialized = true;
    session.log_level = 3;
    journal.remember(session.handle, id, now);
  }
};

}  // namespace

TEST_CASE("without a ledger, records are not stored, but ids can still be resumed") {
  World w;
  w.remember("a");
  CHECK(w.session.slot == Ledger::none);
  CHECK(w.session.resume_id == "a");
  w.journal.save(w.session);
  CHECK(w.journal.may_reopen("a", w.now, false));
  w.journal.end(w.session);
  CHECK_FALSE(w.journal.may_reopen("a", w.now, false));
  w.journal.forget(w.session);
  CHECK_FALSE(w.journal.carries());
  CHECK_FALSE(w.journal.keep(w.session.handle, "bytes", false));
}

TEST_CASE("a session's record is updated with the session and removed with it") {
  World w;
  w.journal.use(w.ledger.get());
  w.remember("a");
  const Ledger::Slot slot = w.session.slot;
  REQUIRE(slot != Ledger::none);
  REQUIRE(w.ledger->read(slot).has_value());
  CHECK(w.ledger->read(slot)->id == "a");
  w.session.log_level = 5;
  w.session.subscriptions["\"note:///1\""] = {};
  w.journal.save(w.session);
  CHECK(w.ledger->read(slot)->log_level == 5);
  CHECK(w.ledger->read(slot)->subscriptions == std::vector<std::string>{"\"note:///1\""});
  w.journal.remember(w.session.handle, "b", w.now);  // ignored: the session already has an id
  CHECK(w.session.resume_id == "a");
  w.journal.forget(w.session);
  CHECK(w.session.slot == Ledger::none);
  CHECK_FALSE(w.ledger->read(slot).has_value());
}

TEST_CASE("an evicted session keeps its record if its id alone is not sufficient to restore it") {
  World w;
  w.journal.use(w.ledger.get());
  w.remember("a");
  const bool more = GENERATE(true, false);
  if (!more) w.session.log_level = -1;
  w.journal.evict(w.session);
  w.journal.forget(w.session);
  CHECK(w.journal.may_reopen("a", w.now, false));
  Session &again = open_session(w.sessions, w.client);
  again.initialized = true;
  w.journal.reopened(again, "a", w.now);
  REQUIRE(again.slot != Ledger::none);
  CHECK(w.ledger->read(again.slot)->log_level == (more ? 3 : -1));
  CHECK(again.resume_id == "a");
}

TEST_CASE("the next process knows which sessions have ended permanently") {
  World w;
  w.journal.use(w.ledger.get());
  w.remember("a");
  w.journal.end(w.session);
  w.ledger = Ledger::open(w.memory.get());
  SessionJournal next(w.sessions, *w.loop, w.limits);
  next.use(w.ledger.get());
  CHECK_FALSE(next.may_reopen("a", w.now, false));
  CHECK(next.may_reopen("b", w.now, false));
}

TEST_CASE("one session is carried, along with its requests and unread bytes") {
  World w;
  w.journal.use(w.ledger.get());
  CHECK(w.journal.carries());
  w.journal.carry(w.session);
  CHECK_FALSE(w.journal.carries());
  CHECK(w.journal.is_carried(w.session.handle));
  const Scanned request(R"({"jsonrpc":"2.0","id":"x","method":"tools/list"})");
  w.journal.request({w.session.handle, 4, 0}, request.get());
  w.journal.request({w.session.handle + 1, 5, 0}, request.get());  // ignored: another session
  REQUIRE(w.ledger->requests().size() == 1);
  CHECK(w.ledger->requests()[0].id == "\"x\"");
  CHECK(w.ledger->last_stream() == 4);
  CHECK(w.journal.keep(w.session.handle, "half a li", false));
  CHECK(w.ledger->unread() == "half a li");
  CHECK_FALSE(
      w.journal.keep(w.session.handle, std::string(Ledger::max_unread_bytes + 1, 'x'), false));
  w.journal.settle(w.session.handle, 4);
  CHECK(w.ledger->requests().empty());
  w.journal.forget(w.session);
  CHECK(w.journal.carried() == 0);
}
