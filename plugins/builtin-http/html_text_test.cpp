// Tests the conversion of HTML to Markdown and plain text.
#include "builtin-http/html_text.hpp"

#include <catch2/catch.hpp>

using namespace builtin_http;

namespace {

std::string text_of(const std::string &html, bool markdown = true) {
  const std::atomic<bool> cancelled{false};
  std::string out;
  std::string problem;
  if (!html_to_text(html, markdown, cancelled, &out, &problem)) return "problem: " + problem;
  return out;
}

}  // namespace

TEST_CASE("a page is converted to Markdown") {
  CHECK(text_of("<h1>A  <b>b</b></h1><p>One\n two.<p>Three<br>four") ==
        "# A **b**\n\nOne two.\n\nThree\nfour\n");
  CHECK(text_of("<p>See <a href='http://x.test/a b(c)'>the <i>page</i></a>, <a>none</a>.") ==
        "See [the *page*](http://x.test/a%20b%28c%29), none.\n");
  CHECK(text_of("<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>x<li>y</ol>") ==
        "- a\n- b\n  - c\n\n1. x\n2. y\n");
  CHECK(text_of("<p>a<pre>\n x\n\n  y\n</pre>b <code>c</code>") ==
        "a\n\n```\n x\n\n  y\n```\n\nb `c`\n");
  CHECK(text_of("<blockquote><p>a<p>b</blockquote>c<hr>d") == "> a\n>\n> b\n\nc\n\n---\n\nd\n");
  CHECK(text_of("<table><tr><th>a<th>b<tr><td>1<td>2</table>") ==
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
  CHECK(text_of("<title>t</title><body><style>s</style><script>alert('x')</script>"
                "<noscript>n</noscript><svg><text>v</text></svg><template>t</template>text"
                "<img alt='a picture' src=x>") == "texta picture\n");
  CHECK(text_of("<a href=' /wiki/\xE6\x97\xA5\xE6\x9C\xAC \n'>x</a>") ==
        "[x](/wiki/\xE6\x97\xA5\xE6\x9C\xAC)\n");
  CHECK(text_of("<a href='\xC3\xA9'>x</a>") == "[x](\xC3\xA9)\n");
  CHECK(text_of("<a href='javascript:x'>y</a> <b> </b> <h2></h2><li></li>z") == "y\n\nz\n");
  CHECK(text_of("a<b> b </b>c") == "a **b** c\n");
  CHECK(text_of("<b>a<strong>b<i>c</i></strong> <code>d</code></b>") == "**ab*c* `d`**\n");
  CHECK(text_of("&lt;b&gt; &amp; &eacute;&nbsp;x") == "<b> & \xC3\xA9\xC2\xA0x\n");
  CHECK(text_of("").empty());
}

TEST_CASE("plain text has no markup") {
  CHECK(text_of("<h1>A</h1><ul><li>a<li><b>b</b></ul><a href=x>y</a><pre>p\nq</pre>"
                "<blockquote>z</blockquote>",
                false) == "A\n\na\nb\n\ny\n\np\nq\n\nz\n");
}

TEST_CASE("malicious pages are converted within the limits") {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "<b><i>";
  CHECK(text_of(deep + "x").find('x') != std::string::npos);
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "<span>";
  CHECK(text_of(nested + "x") == "x\n");
  // Each <p> reopens all <b> elements, so the tree size grows with the square of the page size.
  std::string formatting = "<p>";
  for (int i = 0; i < 3'000; ++i) formatting += "<b id=" + std::to_string(i) + ">";
  for (int i = 0; i < 3'000; ++i) formatting += "</p><p>x";
  CHECK(text_of(formatting) == "problem: the page is too complex to convert");
  std::string quotes;
  for (int i = 0; i < 5'000; ++i) quotes += "<blockquote><ul><li>x<br>";
  CHECK(text_of(quotes).size() < 50 * 2 * 5'000);
  std::atomic<bool> cancelled{true};
  std::string out;
  std::string problem;
  CHECK_FALSE(html_to_text(deep, true, cancelled, &out, &problem));
  CHECK(problem == "the call was cancelled");
}
