#include "transport-aggregator/definitions.hpp"

#include <bulkhead/cpp/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace transport_aggregator {
namespace {

namespace json = bh::json;

constexpr std::size_t max_notes = 100;

void note(std::vector<std::string> *notes, std::string text) {
  if (notes->size() < max_notes) notes->push_back(std::move(text));
}

// Returns true for values that some senders write instead of omitting an optional member. The
// server's name is not optional.
bool not_given(std::string_view key, std::string_view value) {
  if (value == "null") return true;
  if (key == "\"name\"") return false;
  if (value == "\"\"") return true;
  bool any = false;
  const auto see = [&any](auto...) {
    any = true;
    return false;
  };
  return (json::for_each_member(value, see) || json::for_each_element(value, see)) && !any;
}

class Translation {
 public:
  Translation(std::string_view server, const SlowStarters &slow, std::string *out,
              std::vector<std::string> *notes)
      : server_(server), slow_(slow), out_(*out), notes_(notes) {}

  void run() {
    out_ += '{';
    json::for_each_member(server_, [this](std::string_view key, std::string_view value) {
      if (!not_given(key, value)) take(key, value);
      return true;
    });
    if (starts_slowly()) add("\"connect_timeout\"", std::to_string(slow_.connect_ms));
    out_ += '}';
  }

 private:
  bool starts_slowly() const {
    const std::string_view command = json::member(server_, "command");
    if (slow_.connect_ms == 0 || !command.starts_with('"')) return false;
    const std::string path = json::unquote(command);
    const std::string name = path.substr(path.find_last_of('/') + 1);
    const auto &names = slow_.commands;
    if (std::find(names.begin(), names.end(), name) == names.end()) return false;
    bool told = false;  // the definition sets a time-out, under either member name
    json::for_each_member(server_, [&told](std::string_view key, std::string_view) {
      told = key.starts_with("\"connect") || key.starts_with("\"startup_timeout");
      return !told;
    });
    return !told;
  }

  void take(std::string_view key, std::string_view value) {
    if (key == "\"auth\"") {
      // "auth" refers to the credential store of another program.
      return note(notes_,
                  "server " + name() + ": \"auth\" is not supported; use bearer_token or headers");
    }
    if (key == "\"timeout_secs\"") return take_seconds(value);
    add(key, value);
  }

  void take_seconds(std::string_view value) {
    std::uint64_t seconds = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (problem != std::errc() || end != value.data() + value.size() || seconds == 0 ||
        seconds > 86'400) {
      return note(notes_,
                  "server " + name() + ": timeout_secs must be a whole number from 1 to 86400");
    }
    add("\"timeout\"", std::to_string(seconds * 1000));
  }

  void add(std::string_view key, std::string_view value) {
    if (out_.back() != '{') out_ += ',';
    out_.append(key).append(1, ':').append(value);
  }

  // Returns the server name from the definition for log messages. The name is still escaped, and it
  // is truncated.
  std::string name() const { return std::string(json::member(server_, "name").substr(0, 80)); }

  const std::string_view server_;
  const SlowStarters &slow_;
  std::string &out_;
  std::vector<std::string> *const notes_;
};

}  // namespace

std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes) {
  std::string out = "[";
  json::for_each_element(servers, [&](std::string_view server) {
    if (!server.starts_with('{')) {
      note(notes, "a definition that is not an object is skipped");
      return true;
    }
    if (out.size() > 1) out += ',';
    Translation(server, slow, &out, notes).run();
    return true;
  });
  return out + "]";
}

}  // namespace transport_aggregator
