// Tests collecting the responses of a batch: completion, the limit on collected responses, silent
// batches, and sessions that end.
#include "route/client_batches.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "route/client_fakes.hpp"
#include "route/protocol.hpp"

using namespace bulkhead;

namespace {

struct BatchWorld {
  Limits limits;
  Sessions sessions{1};
  FakeClient client;
  ClientBatches batches{sessions, limits};
  Session &session = open_session(sessions, client);
  const ReplyTo reply{session.handle, 7, 0};

  // Adds a response that consists of two parts.
  void put(std::uint64_t batch, const std::string &text) {
    const std::size_t half = text.size() / 2;
    const bh_str parts[] = {bh::str(std::string_view(text).substr(0, half)),
                            bh::str(std::string_view(text).substr(half))};
    batches.put(batch, parts, 2);
  }
  // Adds the message of a request to the batch, and its response.
  void request(std::uint64_t batch, const std::string &answer) {
    REQUIRE(batches.add(batch));
    batches.expect_answer(batch);
    put(batch, answer);
    CHECK_FALSE(batches.end_one(batch).has_value());
  }
};

std::string answer_of(std::size_t bytes, const std::string &id = "1") {
  const std::string frame = R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"x":""}})";
  REQUIRE(bytes >= frame.size());
  return frame.substr(0, frame.size() - 3) + std::string(bytes - frame.size(), 'x') + "\"}}";
}

}  // namespace

TEST_CASE("a batch is complete when each of its messages and the batch itself have ended") {
  BatchWorld w;
  const std::uint64_t batch = w.batches.open(w.reply);
  REQUIRE(w.batches.add(batch));
  REQUIRE(w.batches.add(batch));
  w.put(batch, answer_of(60, "2"));
  CHECK_FALSE(w.batches.end_one(batch).has_value());
  w.batches.expect_answer(batch);
  CHECK_FALSE(w.batches.end_one(batch).has_value());  // the batch has been read
  CHECK(w.session.batches == std::vector<std::uint64_t>{batch});
  w.put(batch, answer_of(70, "1"));
  const auto complete = w.batches.end_one(batch);
  REQUIRE(complete.has_value());
  CHECK(complete->reply == w.reply);
  CHECK(complete->expects_answer);
  CHECK(complete->body == "[" + answer_of(60, "2") + "," + answer_of(70, "1") + "]");
  CHECK(w.session.batches.empty());
  CHECK(w.session.batched_bytes == 0);
  // The batch no longer exists.
  CHECK_FALSE(w.batches.add(batch));
  CHECK_FALSE(w.batches.end_one(batch).has_value());
  w.put(batch, answer_of(60));
  CHECK(w.session.batched_bytes == 0);
}

TEST_CASE("a batch without responses has an empty body") {
  for (const bool expects : {false, true}) {
    BatchWorld w;
    const std::uint64_t batch = w.batches.open(w.reply);
    REQUIRE(w.batches.add(batch));
    if (expects) w.batches.expect_answer(batch);
    w.batches.put(batch, nullptr, 0);  // a cancelled request
    CHECK_FALSE(w.batches.end_one(batch).has_value());
    const auto complete = w.batches.end_one(batch);
    REQUIRE(complete.has_value());
    CHECK(complete->body.empty());
    CHECK(complete->expects_answer == expects);
  }
}

TEST_CASE("the collected responses of a session are limited, and others become short errors") {
  BatchWorld w;
  w.limits.write_queue_bytes = 2'000;
  const std::uint64_t one = w.batches.open(w.reply), two = w.batches.open(w.reply);
  w.request(one, answer_of(1'000, "1"));
  w.request(two, answer_of(1'000, "2"));  // exactly at the limit
  CHECK(w.session.batched_bytes == 2'000);
  w.request(one, answer_of(1'000, "\"three\""));
  const std::string long_id = "\"" + std::string(1'100, 'i') + "\"";
  w.request(two, answer_of(1'500, long_id));
  // A response that is not longer than the error is collected.
  w.request(one, answer_of(80, "5"));
  const auto complete = w.batches.end_one(one);
  REQUIRE(complete.has_value());
  std::vector<std::string> ids, codes;
  mcp::for_each_element(complete->body, [&](std::string_view element) {
    ids.emplace_back(mcp::member(element, "id"));
    codes.emplace_back(mcp::member(mcp::member(element, "error"), "code"));
    CHECK((element.find("limits.write_queue_bytes = 2000") != std::string_view::npos) ==
          (ids.size() == 2));
    return true;
  });
  CHECK(ids == std::vector<std::string>{"1", "\"three\"", "5"});
  CHECK(codes[0].empty());
  CHECK(codes[1] == std::to_string(code::timeout));
  CHECK(codes[2].empty());
  // The bytes of the first batch have been released, and the error of the second one has no id,
  // because the id is too long.
  const auto second = w.batches.end_one(two);
  REQUIRE(second.has_value());
  CHECK(w.session.batched_bytes == 0);
  CHECK(second->body.find(long_id) == std::string::npos);
  CHECK(second->body.find(R"(,{"jsonrpc":"2.0","error":{)") != std::string::npos);
  const std::uint64_t three = w.batches.open(w.reply);
  w.request(three, answer_of(2'000));
  CHECK(w.session.batched_bytes == 2'000);
}

TEST_CASE("the response of a silent batch is discarded, and its end is reported once") {
  BatchWorld w;
  int ends = 0;
  const std::uint64_t batch = w.batches.open_silent(w.reply, [&ends] { ++ends; });
  w.put(batch, answer_of(500));
  CHECK(w.session.batched_bytes == 0);
  CHECK(ends == 0);
  const auto complete = w.batches.end_one(batch);
  REQUIRE(complete.has_value());
  CHECK(complete->body.empty());
  CHECK_FALSE(complete->expects_answer);
  CHECK(ends == 1);
  CHECK_FALSE(w.batches.end_one(batch).has_value());
  CHECK(ends == 1);
  const std::uint64_t other = w.batches.open_silent(w.reply);
  CHECK(w.batches.end_one(other).has_value());
}

TEST_CASE("the batches of a session are discarded when it ends; others remain") {
  BatchWorld w;
  Session &second = open_session(w.sessions, w.client);
  int ends = 0;
  const std::uint64_t batch = w.batches.open(w.reply);
  const std::uint64_t silent = w.batches.open_silent(w.reply, [&ends] { ++ends; });
  const std::uint64_t other = w.batches.open({second.handle, 8, 0});
  REQUIRE(w.batches.add(batch));
  w.put(batch, answer_of(100));
  w.batches.forget_session(w.session);
  w.sessions.erase(w.session.handle);
  for (const std::uint64_t gone : {batch, silent}) {
    CHECK_FALSE(w.batches.add(gone));
    w.batches.expect_answer(gone);
    w.put(gone, answer_of(100));
    CHECK_FALSE(w.batches.end_one(gone).has_value());
  }
  CHECK(ends == 0);
  w.put(other, answer_of(100));
  CHECK(second.batched_bytes == 100);
  const auto complete = w.batches.end_one(other);
  REQUIRE(complete.has_value());
  CHECK(complete->body == "[" + answer_of(100) + "]");
  CHECK(complete->reply.stream == 8);
}
