#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "mcp-frame/frame.hpp"
#include "mcp-frame/frame_reader.hpp"
#include "mcp-frame/metadata_line.hpp"
#include "mcp-frame/process_name.hpp"

using namespace mcp_frame;  // NOLINT: tests this namespace
using Step = FrameReader::Step;

namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size();) {
    if (hex[i] == ' ') {
      ++i;
      continue;
    }
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    i += 2;
  }
  return out;
}

const std::string list_request = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";
const std::string notification_bytes =
    from_hex("00000013 4d43 01 10 00000000 0001 0001 00000002 78 7b7d");
const std::string request_bytes =
    from_hex("00000044 4d43 01 10 00000001 0000 0006 0000002e 636c61756465") + list_request;

std::string encoded(const Frame &frame) {
  std::string out;
  REQUIRE(encode(frame, &out) == Fault::none);
  return out;
}

// Returns the frame with one byte changed.
std::string with(std::string bytes, std::size_t at, int value) {
  return bytes.replace(at, 1, 1, static_cast<char>(value));
}

std::string with_total(std::uint32_t total) {
  std::string bytes = request_bytes;
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(total >> (24 - 8 * i));
  return bytes;
}

struct Seen {
  Step step;
  Fault fault;
  std::uint32_t stream;
  std::string name, payload;
  friend bool operator==(const Seen &, const Seen &) = default;
};

// Returns the frames that a reader finds if `bytes` arrive in pieces of this size. If `direct` is
// true, the pieces are received into room() where possible.
std::vector<Seen> read_all(std::string_view bytes, std::size_t piece, bool direct = false) {
  FrameReader reader;
  std::vector<Seen> seen;
  while (!bytes.empty()) {
    std::string copy(bytes.substr(0, piece));
    std::string_view in = copy;
    if (const auto room = direct ? reader.room() : std::span<char>(); !room.empty()) {
      const std::size_t n = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), n);
      reader.filled(n);
      bytes.remove_prefix(n);
      in = {};
    } else {
      bytes.remove_prefix(copy.size());
    }
    Frame frame;
    for (Step step; (step = reader.next(&in, &frame)) != Step::more;) {
      if (step == Step::lost) frame = {};
      seen.push_back({step, reader.fault(), frame.stream, std::string(frame.name),
                      std::string(frame.payload)});
      if (step == Step::lost) return seen;
    }
    REQUIRE(in.empty());
  }
  return seen;
}

}  // namespace

TEST_CASE("golden vectors are encoded and decoded") {
  CHECK(encoded({0, true, "x", "{}"}) == notification_bytes);
  CHECK(encoded({1, false, "claude", list_request}) == request_bytes);
  CHECK(request_bytes.size() == 72);
  Frame frame;
  REQUIRE(decode(notification_bytes, &frame) == Fault::none);
  CHECK((frame.stream == 0 && frame.notification && frame.name == "x" && frame.payload == "{}"));
  REQUIRE(decode(request_bytes, &frame) == Fault::none);
  CHECK((frame.stream == 1 && !frame.notification && frame.name == "claude"));
  CHECK(frame.payload == list_request);
}

TEST_CASE("the decoder rejects each invalid frame with its reason") {
  struct Row {
    std::string bytes;
    Step step;
    Fault fault;
    std::uint32_t stream;
  };
  const std::string longest = encoded({5, false, std::string(128, 'n'), "n{}"});
  const std::string long_name = with(with(longest, 15, 129), 19, 2);
  const Row rows[] = {
      {with(request_bytes, 4, 'X'), Step::bad_frame, Fault::magic, 1},
      {with(request_bytes, 6, 2), Step::bad_frame, Fault::version, 1},
      {with(request_bytes, 7, 15), Step::bad_frame, Fault::header_length, 1},
      {with(request_bytes, 13, 2), Step::bad_frame, Fault::reserved_flags, 1},
      {with(request_bytes, 12, 1), Step::bad_frame, Fault::reserved_flags, 1},
      {with(request_bytes, 11, 0), Step::bad_frame, Fault::stream_zero, 0},
      {with(notification_bytes, 11, 5), Step::bad_frame, Fault::notification_stream, 5},
      {long_name, Step::bad_frame, Fault::name_too_long, 5},
      {with(request_bytes, 20, 0xFF), Step::bad_frame, Fault::name_not_utf8, 1},
      {with(request_bytes, 19, 0x2D), Step::bad_frame, Fault::length_mismatch, 1},
      {with(request_bytes, 16, 0xFF), Step::bad_frame, Fault::length_mismatch, 1},
      {with_total(15), Step::lost, Fault::total_too_small, 0},
      {with_total(1'052'673), Step::lost, Fault::total_too_large, 0}};
  for (const Row &row : rows) {
    INFO(text(row.fault));
    for (const std::size_t piece : {std::size_t{1}, row.bytes.size() + notification_bytes.size()}) {
      const auto seen = read_all(row.bytes + notification_bytes, piece);
      REQUIRE_FALSE(seen.empty());
      CHECK(seen[0].step == row.step);
      CHECK(seen[0].fault == row.fault);
      CHECK(seen[0].stream == row.stream);
      if (row.step == Step::bad_frame) {  // the next frame can still be located
        REQUIRE(seen.size() == 2);
        CHECK(seen[1].payload == "{}");
      }
    }
  }
}

TEST_CASE("the encoder rejects the same frames as the decoder") {
  std::string out;
  CHECK(encode({0, false, "x", "{}"}, &out) == Fault::stream_zero);
  CHECK(encode({5, true, "x", "{}"}, &out) == Fault::notification_stream);
  CHECK(encode({5, false, std::string(129, 'n'), "{}"}, &out) == Fault::name_too_long);
  CHECK(encode({5, false, "\xC3", "{}"}, &out) == Fault::name_not_utf8);
  CHECK(encode({5, false, "", std::string(1'052'657, ' ')}, &out) == Fault::total_too_large);
  CHECK(encode({5, false, "n", std::string(1'052'656, ' ')}, &out) == Fault::total_too_large);
  CHECK(out.empty());
}

TEST_CASE("the largest frame is accepted, and its memory is released") {
  const std::string payload(1'052'656, 'p');
  const std::string bytes = encoded({7, false, "", payload}) + notification_bytes;
  for (const bool direct : {false, true}) {
    for (const std::size_t piece : {std::size_t{1'000}, std::size_t{65'536}, bytes.size()}) {
      const auto seen = read_all(bytes, piece, direct);
      REQUIRE(seen.size() == 2);
      CHECK((seen[0].step == Step::frame && seen[0].stream == 7 && seen[0].payload == payload));
      CHECK(seen[1].payload == "{}");
    }
  }
}

TEST_CASE("frames are read regardless of how the bytes are split") {
  const std::string bytes = request_bytes + notification_bytes + with(request_bytes, 6, 9) +
                            encoded({2, false, "", ""}) + request_bytes + with_total(3);
  const auto whole = read_all(bytes, bytes.size());
  REQUIRE(whole.size() == 6);
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    CHECK(read_all(bytes, piece) == whole);
  }
}

TEST_CASE("a truncated frame is reported, and a length field alone allocates no memory") {
  FrameReader reader;
  Frame frame;
  const std::string bytes = from_hex("00101000 4d43");
  std::string_view in = bytes;
  REQUIRE(reader.next(&in, &frame) == Step::more);
  CHECK(reader.held() == 6);
  CHECK(reader.room().size() <= (128u << 10));
}

TEST_CASE("looks_like_frame recognizes the first bytes of a frame") {
  CHECK(looks_like_frame(request_bytes));
  CHECK(looks_like_frame(from_hex("00101000 4d43")));
  CHECK_FALSE(looks_like_frame(from_hex("00101001 4d43")));
  CHECK(looks_like_frame(from_hex("00101001 4d43"), 0x101001));
  CHECK_FALSE(looks_like_frame(from_hex("0000000f 4d43")));
  CHECK_FALSE(looks_like_frame(from_hex("00000010 4d44")));
  CHECK_FALSE(looks_like_frame(from_hex("16030100f8 01")));  // TLS
  CHECK_FALSE(looks_like_frame("GET / HTTP/1.1"));
}

TEST_CASE("process names are sanitized, and truncated at a character boundary") {
  CHECK(clean_process_name("my agent\tx") == "my_agent_x");
  CHECK(clean_process_name("") == "");
  CHECK(clean_process_name("a\x7F\xC2\x85z") == "a__z");
  CHECK(clean_process_name("a\xE2\x80\xAEz") == "a_z");
  CHECK(clean_process_name("caf\xC3\xA9") == "caf\xC3\xA9");
  CHECK(clean_process_name("cut\xC3") == "cut_");
  std::string name;
  for (int i = 0; i < 100; ++i) name += "\xE2\x82\xAC";
  CHECK(clean_process_name(name) == name.substr(0, 126));
  CHECK(clean_process_name(std::string(200, 'n')).size() == 128);
}

TEST_CASE("the metadata line is written and parsed") {
  const std::string line = metadata_line("CAPSEM_META", "my agent");
  CHECK(line == std::string(1, '\0') + "CAPSEM_META:my_agent\n");
  for (const char *prefix : {"CAPSEM_META", "BULKHEAD_META"}) {
    const std::string bytes = metadata_line(prefix, "agent") + request_bytes;
    const Metadata metadata = parse_metadata(bytes);
    CHECK(metadata.state == Metadata::State::line);
    CHECK(metadata.name == "agent");
    CHECK(bytes.substr(metadata.size) == request_bytes);
    for (std::size_t n = 0; n < metadata.size; ++n) {
      CHECK(parse_metadata(std::string_view(bytes).substr(0, n)).state == Metadata::State::more);
    }
  }
  CHECK(parse_metadata(metadata_line("OWN", "")).state == Metadata::State::absent);
  const std::vector<std::string> own{"OWN"};
  CHECK(parse_metadata(metadata_line("OWN", ""), own).state == Metadata::State::line);
  CHECK((is_metadata_prefix("OWN_2") && !is_metadata_prefix("own") && !is_metadata_prefix("")));
}

TEST_CASE("a missing metadata line and an unterminated line are detected") {
  CHECK(parse_metadata(request_bytes.substr(0, 2)).state == Metadata::State::absent);
  CHECK(parse_metadata(std::string_view("\0", 1)).state == Metadata::State::more);
  CHECK(parse_metadata("{").state == Metadata::State::absent);
  CHECK(parse_metadata("\x16\x03\x01").state == Metadata::State::absent);
  const std::string start = std::string(1, '\0') + "CAPSEM_META:";
  const std::string fits = start + std::string(max_metadata_line - start.size() - 1, 'n');
  CHECK(parse_metadata(fits).state == Metadata::State::more);
  CHECK(parse_metadata(fits + "\n").state == Metadata::State::line);
  CHECK(parse_metadata(fits + "n").state == Metadata::State::too_long);
  CHECK(parse_metadata(fits + "n\n").state == Metadata::State::too_long);
}
