// Tests the event IDs of interrupted streams and the time that parsing takes.
#include "sse.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace connector_http;

namespace {

int read_all(SseParser *parser, std::string_view in) {
  std::size_t at = 0;
  SseEvent event;
  int events = 0;
  while (parser->next(in, &at, &event) == SseParser::Step::event) ++events;
  return events;
}

}  // namespace

TEST_CASE("an id takes effect when its event is complete") {
  SseParser parser;
  CHECK(read_all(&parser, "id: 1\ndata: a\n\nid: 2\ndata: b\n") == 1);
  CHECK(parser.last_event_id() == "1");
  parser.restart();  // the connection was interrupted; the server must send event 2 again
  CHECK(read_all(&parser, "data: c\n\n") == 1);
  CHECK(parser.last_event_id() == "1");
  CHECK(read_all(&parser, "id: 3\n\n") == 0);  // an event without data also sets the ID
  CHECK(parser.last_event_id() == "3");
  CHECK(read_all(&parser, "id\n\n") == 0);
  CHECK(parser.last_event_id().empty());
}

TEST_CASE("lines that end with CR are parsed in linear time") {
  // Parsing would take minutes if each line required a scan of the whole piece.
  std::string in;
  for (int i = 0; i < 4'000'000; ++i) in += ":\r";
  in += "data: x\r\r";
  SseParser parser;
  CHECK(read_all(&parser, in) == 1);
}

TEST_CASE("all line endings are recognized within one piece") {
  SseParser parser;
  std::string_view in = "data: a\r\rdata: b\n\ndata: c\r\n\r\ndata: d\r\ndata: e\n\rdata: f\r\n\n";
  std::size_t at = 0;
  SseEvent event;
  std::string all;
  while (parser.next(in, &at, &event) == SseParser::Step::event) {
    all.append(event.data).append("|");
  }
  CHECK(all == "a|b|c|d\ne|f|");
}
