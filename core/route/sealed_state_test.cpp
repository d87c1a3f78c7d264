#include "route/sealed_state.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace bulkhead;

namespace {

const std::string key(TextSealer::key_bytes, 'k');
constexpr std::uint32_t epoch = 7;
constexpr std::uint64_t expires = 1'000'000;

StateBinding call_of(std::string_view arguments = R"({"path":"/a","n":1})") {
  return {"alice", mcp::Method::tools_call, "files__read", arguments};
}

// Opens the state and returns its payload. If the state cannot be opened, returns the reason in
// angle brackets.
std::string opened(const StateSealer &sealer, const std::string &state, const StateBinding &binding,
                   std::uint64_t now = expires - 1) {
  const auto result = sealer.open(state, binding, now);
  return result ? result->payload : "<" + std::string(to_string(result.error())) + ">";
}

std::string reason(StateFault fault) {
  return "<" + std::string(to_string(fault)) + ">";
}

const std::string forged = reason(StateFault::forged);

}  // namespace

TEST_CASE("sealed state: opens for the same request, in any spelling of its arguments") {
  const StateSealer sealer(key, epoch);
  const auto state = sealer.seal(StateKind::server, "server's own", call_of(), expires);
  REQUIRE(state);
  CHECK(state->find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "-_") == std::string::npos);
  CHECK(state->find("alice") == std::string::npos);
  const auto result = sealer.open(*state, call_of(), 0);
  REQUIRE(result);
  CHECK(result->kind == StateKind::server);
  CHECK(result->payload == "server's own");
  CHECK(opened(sealer, *state, call_of(" { \"n\" : 1.0 , \"\\u0070ath\" : \"\\/a\" } ")) ==
        "server's own");
  CHECK(opened(StateSealer(key, epoch), *state, call_of()) == "server's own");
  CHECK(*sealer.seal(StateKind::server, "server's own", call_of(), expires) != *state);

  const auto parked = sealer.seal(StateKind::parked, "42", call_of(), expires);
  REQUIRE(parked);
  CHECK(sealer.open(*parked, call_of(), 0)->kind == StateKind::parked);
}

TEST_CASE("sealed state: every bit counts") {
  const StateSealer sealer(key, epoch);
  const std::string state = *sealer.seal(StateKind::parked, "42", call_of(), expires);
  for (std::size_t i = 0; i < state.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string other = state;
      other[i] = static_cast<char>(other[i] ^ (1u << bit));
      REQUIRE(opened(sealer, other, call_of()) == forged);
    }
    REQUIRE(opened(sealer, state.substr(0, i), call_of()) == forged);
    REQUIRE(opened(sealer, state.substr(i + 1), call_of()) == forged);
    std::string swapped = state;
    std::swap(swapped[i], swapped[(i + 5) % state.size()]);
    if (swapped != state) REQUIRE(opened(sealer, swapped, call_of()) == forged);
  }
  for (const char *more : {"A", "AA", "AAAA", "=", "==", " ", "\n", "\xFF"}) {
    CHECK(opened(sealer, state + more, call_of()) == forged);
    CHECK(opened(sealer, more + state, call_of()) == forged);
  }
  CHECK(opened(sealer, state + state, call_of()) == forged);
  CHECK(opened(sealer, std::string("a\0b", 3), call_of()) == forged);
  CHECK(opened(sealer, "42", call_of()) == forged);
  CHECK(opened(sealer, std::string(10u << 20, 'A'), call_of()) == forged);
}

TEST_CASE("sealed state: parts of two states do not make a third") {
  const StateSealer sealer(key, epoch);
  const std::string a = *sealer.seal(StateKind::parked, "42", call_of(), expires);
  const std::string b = *sealer.seal(StateKind::parked, "43", call_of(), expires);
  REQUIRE(a.size() == b.size());
  std::size_t mixed = 0;
  for (std::size_t cut = 1; cut < a.size(); ++cut) {
    const std::string third = a.substr(0, cut) + b.substr(cut);
    // The two states can begin or end with the same characters by chance.
    if (third == a || third == b) continue;
    REQUIRE(opened(sealer, third, call_of()) == forged);
    ++mixed;
  }
  REQUIRE(mixed > a.size() / 2);
}

TEST_CASE("sealed state: other requests are refused with the reason") {
  const StateSealer sealer(key, epoch);
  const std::string state = *sealer.seal(StateKind::parked, "42", call_of(), expires);
  REQUIRE(opened(sealer, state, call_of()) == "42");
  for (const char *principal : {"", "alic", "alice ", "Alice", "bob", "alicefiles"}) {
    StateBinding binding = call_of();
    binding.principal = principal;
    CHECK(opened(sealer, state, binding) == reason(StateFault::other_principal));
  }
  StateBinding target = call_of();
  target.name = "files__write";
  CHECK(opened(sealer, state, target) == reason(StateFault::other_target));
  target = call_of();
  target.method = mcp::Method::prompts_get;
  CHECK(opened(sealer, state, target) == reason(StateFault::other_target));
  for (const char *arguments :
       {"", "{}", R"({"path":"/b","n":1})", R"({"path":"/a","n":"1"})", R"({"path":"/a"})",
        R"({"path":"/a","n":1,"m":null})", R"({"path":"/a","n":1,"n":1})", "{", "null"}) {
    INFO(arguments);
    CHECK(opened(sealer, state, call_of(arguments)) == reason(StateFault::other_arguments));
  }
}

TEST_CASE("sealed state: expiry, restarts and keys") {
  const StateSealer sealer(key, epoch);
  const std::string state = *sealer.seal(StateKind::parked, "42", call_of(), expires);
  CHECK(opened(sealer, state, call_of(), expires) == reason(StateFault::expired));
  CHECK(opened(sealer, state, call_of(), ~std::uint64_t{0}) == reason(StateFault::expired));
  for (const std::uint32_t other : {epoch - 1, epoch + 1, 0u}) {
    CHECK(opened(StateSealer(key, other), state, call_of()) == reason(StateFault::earlier_epoch));
  }
  // An expired state is reported as expired no matter who sends it.
  StateBinding other = call_of("{}");
  other.principal = "bob";
  CHECK(opened(sealer, state, other, expires) == reason(StateFault::expired));
  CHECK(opened(StateSealer(std::string(TextSealer::key_bytes, 'x'), epoch), state, call_of()) ==
        forged);
  // Without a usable key, each sealer has its own random key.
  const StateSealer first("", epoch), second("", epoch), short_key("k", epoch);
  const std::string own = *first.seal(StateKind::parked, "42", call_of(), expires);
  CHECK(opened(first, own, call_of()) == "42");
  CHECK(opened(second, own, call_of()) == forged);
  CHECK(opened(short_key, own, call_of()) == forged);
}

TEST_CASE("sealed state: text that the same key sealed for another purpose is forged") {
  const StateSealer sealer(key, epoch);
  const std::string state = *sealer.seal(StateKind::parked, "42", call_of(), expires);
  const TextSealer sessions(key);
  CHECK_FALSE(sessions.open(state, "", StateSealer::max_payload));
  const std::string plain(200, '\1');
  CHECK(opened(sealer, sessions.seal(plain, ""), call_of()) == forged);
  CHECK_FALSE(sessions.for_purpose("otheruse").open(state, "", StateSealer::max_payload));
  // Text that was sealed with the right key but is not a state of this version: it is too short, or
  // has another format or kind.
  const TextSealer same = sessions.for_purpose("reqstate");
  for (const std::string &text : {std::string(), std::string("\1\1"), std::string(200, '\0'),
                                  std::string(200, '\3'), "\1\3" + plain}) {
    CHECK(opened(sealer, same.seal(text, ""), call_of()) == forged);
  }
}

TEST_CASE("sealed state: limits") {
  const StateSealer sealer(key, epoch);
  const std::string most(StateSealer::max_payload, '\xFF');
  const auto state = sealer.seal(StateKind::server, most, call_of(), expires);
  REQUIRE(state);
  CHECK(state->size() < most.size() * 4 / 3 + 256);
  CHECK(opened(sealer, *state, call_of()) == most);
  CHECK_FALSE(sealer.seal(StateKind::server, most + "x", call_of(), expires));
  CHECK_FALSE(sealer.seal(StateKind::server, "x", call_of("{"), expires));
  const auto empty = sealer.seal(StateKind::server, "", call_of(""), expires);
  REQUIRE(empty);
  CHECK(sealer.open(*empty, call_of(""), 0)->payload.empty());
  CHECK(sealer.open(*empty, call_of("{}"), 0)->payload.empty());
  CHECK_FALSE(sealer.open(*empty, call_of("null"), 0));
}

TEST_CASE("sealed text: the context is part of the seal, and no nonce repeats") {
  const TextSealer sealer(key);
  const std::string text = sealer.seal("plain", "context");
  CHECK(sealer.open(text, "context", 5) == "plain");
  CHECK_FALSE(sealer.open(text, "context", 4));
  CHECK_FALSE(sealer.open(text, "", 5));
  CHECK_FALSE(sealer.open(text, "contex", 5));
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(sealer.seal("plain", "context").substr(0, 32));
  CHECK(seen.size() == 100);
}
