#include "counter_state.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "state_codec.hpp"

namespace bulkhead::rules {
namespace {

// Texts that occur several times are stored once, and referred to by their numbers.
class TextTable {
 public:
  std::size_t number(std::string_view text) {
    const auto [at, fresh] = numbers_.try_emplace(text, numbers_.size());
    if (fresh) texts_.text(text);
    return at->second;
  }
  void write(StateWriter *out) const {
    out->number(numbers_.size());
    out->append(texts_);
  }
  std::size_t size() const noexcept { return texts_.size(); }

 private:
  std::unordered_map<std::string_view, std::size_t> numbers_;
  StateWriter texts_;
};

using Texts = std::vector<std::string_view>;

void write_texts(const Texts &texts, StateWriter *out) {
  out->number(texts.size());
  for (const std::string_view text : texts) out->text(text);
}

Texts read_texts(StateReader *in) {
  Texts texts;
  for (std::size_t n = in->count(); n > 0 && !in->failed(); --n) texts.push_back(in->text());
  return texts;
}

void write_key(const CounterState::Key &key, TextTable *table, StateWriter *out) {
  out->number(table->number(key.begin));
  out->text(key.rest);
}

CounterState::Key read_key(const Texts &table, StateReader *in) {
  const std::size_t number = in->index(table.size());
  const std::string_view rest = in->text();
  if (in->failed()) return {};
  return {table[number], rest};
}

void write_count(const CounterState::Count &count, TextTable *table, StateWriter *out) {
  write_key(count.key, table, out);
  out->number(count.kind);
  out->number(count.per_ms);
  out->number(count.windows_ago);
  out->number(count.now);
  out->number(count.before);
  out->number(count.idle_ms);
  out->number(table->number(count.principal));
  write_texts(count.seen, out);
  write_texts(count.seen_before, out);
}

CounterState::Count read_count(const Texts &table, StateReader *in) {
  CounterState::Count count;
  count.key = read_key(table, in);
  count.kind = static_cast<std::uint8_t>(in->index(256));
  count.per_ms = in->number();
  count.windows_ago = in->number();
  count.now = in->number();
  count.before = in->number();
  count.idle_ms = in->number();
  const std::size_t principal = in->index(table.size());
  count.seen = read_texts(in);
  count.seen_before = read_texts(in);
  if (!in->failed()) count.principal = table[principal];
  return count;
}

void write_calls(const std::vector<CounterState::Call> &calls, TextTable *table, StateWriter *out) {
  const std::size_t n = std::min(calls.size(), CounterState::kMaxCalls);
  out->number(n);
  for (std::size_t i = calls.size() - n; i < calls.size(); ++i) {
    out->number(calls[i].exchange);
    out->number(calls[i].keys.size());
    for (const CounterState::CountedKey &each : calls[i].keys) {
      write_key(each.key, table, out);
      out->number(table->number(each.principal));
    }
  }
}

std::vector<CounterState::Call> read_calls(const Texts &table, StateReader *in) {
  std::vector<CounterState::Call> calls;
  std::size_t n = in->count();
  if (n > CounterState::kMaxCalls) n = static_cast<std::size_t>(in->fail());
  for (; n > 0 && !in->failed(); --n) {
    CounterState::Call &call = calls.emplace_back();
    call.exchange = in->number();
    for (std::size_t keys = in->count(); keys > 0 && !in->failed(); --keys) {
      CounterState::CountedKey &key = call.keys.emplace_back();
      key.key = read_key(table, in);
      const std::size_t principal = in->index(table.size());
      if (!in->failed()) key.principal = table[principal];
    }
  }
  return calls;
}

// Returns a limit for the size of an encoded count, including its texts in the table.
std::size_t max_size(const CounterState::Count &count) {
  constexpr std::size_t numbers = 96, length = 10;
  std::size_t bytes =
      numbers + count.key.begin.size() + count.key.rest.size() + count.principal.size();
  for (const std::string_view host : count.seen) bytes += host.size() + length;
  for (const std::string_view host : count.seen_before) bytes += host.size() + length;
  return bytes;
}

}  // namespace

CounterState::Key CounterState::split(std::string_view key) {
  const std::size_t end = key.find('\n');
  if (end == std::string_view::npos) return {key, {}};
  return {key.substr(0, end), key.substr(end)};
}

std::expected<std::string, std::string> encode(const CounterState &state, std::size_t max_bytes) {
  constexpr std::size_t most_numbers = 32;  // for the lengths of the tables
  TextTable table;
  StateWriter calls;
  write_calls(state.awaited, &table, &calls);
  write_calls(state.asked, &table, &calls);
  // The counts that may be omitted come first in the state, so they are written last.
  StateWriter counts;
  std::size_t written = 0;
  for (auto count = state.counts.rbegin(); count != state.counts.rend(); ++count) {
    const std::size_t bytes = calls.size() + table.size() + counts.size() + most_numbers;
    if (bytes + max_size(*count) > max_bytes) {
      if (count->may_drop) break;
      return std::unexpected("its counters take more than " + std::to_string(max_bytes) +
                             " bytes: those by principal, server or tool cannot be omitted");
    }
    write_count(*count, &table, &counts);
    ++written;
  }
  StateWriter out;
  table.write(&out);
  out.number(written);
  out.append(counts);
  out.append(calls);
  if (out.size() > max_bytes) {
    return std::unexpected("its calls in progress take more than " + std::to_string(max_bytes) +
                           " bytes");
  }
  return out.take();
}

bool decode(std::string_view text, CounterState *out) {
  StateReader in(text);
  const Texts table = read_texts(&in);
  for (std::size_t n = in.count(); n > 0 && !in.failed(); --n) {
    out->counts.push_back(read_count(table, &in));
  }
  std::reverse(out->counts.begin(), out->counts.end());
  out->awaited = read_calls(table, &in);
  out->asked = read_calls(table, &in);
  return in.done();
}

}  // namespace bulkhead::rules
