#include "builtin-http/fetch.hpp"

#include <algorithm>
#include <utility>

#include "builtin-http/address.hpp"
#include "builtin-http/net_event.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr std::size_t max_header = 8192;  // of a header value that is kept

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

bool is_redirect(std::uint32_t status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string failure(const bh_error *error) {
  return "the request failed: " + std::string(bh::text(*error));
}

Fetch &self(void *user) noexcept {
  return *static_cast<Fetch *>(user);
}

}  // namespace

const bh_http_handler Fetch::handler = {
    sizeof(bh_http_handler),
    0,
    [](void *user, bh_str host, bh_str address, std::uint32_t) {
      return bh::guarded(nullptr,
                         [&] { return self(user).on_address(bh::view(host), bh::view(address)); });
    },
    [](void *user, std::uint32_t status, const bh_http_header *headers, std::uint32_t n, bh_str) {
      return bh::guarded(nullptr, [&] { return self(user).on_head(status, headers, n); });
    },
    [](void *user, bh_str piece) {
      return bh::guarded(nullptr, [&] { return self(user).on_body(bh::view(piece)); });
    },
    [](void *user, const bh_error *error) { self(user).on_done(error); }};

void Fetch::start(const Url &url, const PageRequest &page, std::uint64_t deadline_ns) {
  url_ = url;
  page_ = page;
  deadline_ns_ = host_.now_ns() + config_.timeout_ms * 1'000'000;
  if (deadline_ns != 0) deadline_ns_ = std::min(deadline_ns_, deadline_ns);
  if (judge_url("")) request();
}

// True: url_ may be asked. Else the answer is under way.
bool Fetch::judge_url(std::string_view prefix) {
  std::string refusal = config_.refusal(url_.host);
  if (refusal.empty() && url_.is_address && !config_.allow_private &&
      !is_public_address(url_.host)) {
    refusal = "the address " + url_.host + " is blocked: it is not one of the public Internet";
  }
  if (refusal.empty()) return true;
  status_ = 0;
  body_.clear();
  asked_ns_ = host_.now_ns();
  note("denied", refusal);
  answer_later(std::string(prefix) + refusal);
  return false;
}

void Fetch::request() {
  const std::uint64_t now = host_.now_ns();
  if (now >= deadline_ns_) return answer_later("the request failed: it took too long");
  const std::string url = url_.text();
  const bh_http_header headers[] = {
      {bh::str("accept"), bh::str("text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.8")},
      {bh::str("user-agent"), bh::str("Bulkhead/0.1 (builtin-http)")}};
  bh_http_request r{};
  r.size = sizeof r;
  // With a proxy the address judged would be the proxy's: the guard needs the direct way.
  r.flags = BH_HTTP_DECOMPRESS | (config_.allow_private ? 0u : std::uint32_t{BH_HTTP_NO_PROXY});
  r.method = bh::str("GET");
  r.url = bh::str(url);
  r.headers = headers;
  r.header_count = std::size(headers);
  r.max_redirects = 0;
  r.total_timeout_ms = std::max<std::uint64_t>((deadline_ns_ - now) / 1'000'000, 1);
  r.max_body_bytes = config_.max_body_bytes;
  location_.clear();
  content_type_.clear();
  body_.clear();
  status_ = 0;
  denied_ = false;
  asked_ns_ = now;
  running_ = true;
  bh_error error = bh::make_error();
  // on_done may come before start() returns.
  if (http_.start(host_.ctx(), &r, &handler, this, &id_, &error) < 0) {
    running_ = false;
    note("error", bh::text(error));
    answer_later(failure(&error));
  }
}

void Fetch::note(const char *decision, std::string_view reason) {
  const std::uint64_t ms = (host_.now_ns() - asked_ns_) / 1'000'000;
  note_(net_event(url_, {decision, status_, body_.size(), ms, reason}));
}

bh_status Fetch::on_address(std::string_view host, std::string_view address) {
  if (config_.allow_private || is_public_address(address)) return BH_OK;
  problem_ = "the address " + std::string(address) + " of " + std::string(host) +
             " is blocked: it is not one of the public Internet";
  denied_ = true;
  return BH_E_DENIED;
}

bh_status Fetch::on_head(std::uint32_t status, const bh_http_header *headers, std::uint32_t n) {
  status_ = status;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::string_view name = bh::view(headers[i].name);
    const std::string_view value = bh::view(headers[i].value).substr(0, max_header);
    if (same_name(name, "location")) location_ = value;
    if (same_name(name, "content-type")) content_type_ = value;
  }
  if (is_redirect(status) && !location_.empty()) return BH_OK;
  location_.clear();
  if (status < 200 || status >= 300) {
    problem_ = "the request failed: the server answered with status " + std::to_string(status);
    return BH_E_UNAVAILABLE;
  }
  const std::string binary = page_.format == Format::raw ? "" : binary_type(content_type_);
  if (!binary.empty()) {
    problem_ = "binary content (" + binary + ") has no text; format \"raw\" gives its bytes";
    return BH_E_UNSUPPORTED;
  }
  return BH_OK;
}

bh_status Fetch::on_body(std::string_view piece) {
  if (!location_.empty()) return BH_OK;  // nobody reads the page of a redirect
  if (piece.size() > config_.max_body_bytes - body_.size()) {
    problem_ = "the content is larger than " + std::to_string(config_.max_body_bytes) + " bytes";
    return BH_E_LIMIT;
  }
  body_.append(piece);
  return BH_OK;
}

void Fetch::on_done(const bh_error *error) {
  running_ = false;
  id_ = 0;
  if (error == nullptr && status_ == 0) problem_ = "the request failed: there was no answer";
  // A redirect is known from its head, whatever became of its page.
  if (error != nullptr && problem_.empty() && location_.empty()) {
    bh::guarded(nullptr, [&] {
      problem_ = error->code == BH_E_LIMIT ? "the content is larger than " +
                                                 std::to_string(config_.max_body_bytes) + " bytes"
                                           : failure(error);
      return BH_OK;
    });
  }
  bh::guarded(nullptr, [&] {
    const bool answered = status_ != 0;
    note(denied_ ? "denied" : answered ? "allowed" : "error", problem_);
    return BH_OK;
  });
  later();
}

void Fetch::answer_later(std::string problem) {
  problem_ = std::move(problem);
  later();
}

// The next step is taken outside the callbacks of the HTTP client.
void Fetch::later() {
  if (std::exchange(scheduled_, true)) return;
  host_.defer([](void *arg) { self(arg).step(); }, this);
}

void Fetch::step() {
  scheduled_ = false;
  if (converting_ || running_) return;
  const bh_status status = bh::guarded(nullptr, [&] {
    if (!problem_.empty()) {
      result_ = tool_kit::error_result(problem_);
    } else if (!location_.empty()) {
      follow();
    } else if (result_.empty()) {
      convert();
    }
    return BH_OK;
  });
  if (status != BH_OK) result_ = R"({"content":[],"isError":true})";  // no memory for more
  if (converting_ || result_.empty()) return;  // the thread may write result_ already
  std::string result = std::move(result_);
  const Done done = std::move(done_);
  done(*this, std::move(result));  // may delete this object
}

void Fetch::follow() {
  Url next;
  std::string problem;
  if (++redirects_ > max_redirects) {
    return answer_later("the request failed: more than 5 redirects");
  }
  if (!resolve_url(url_, location_, &next, &problem)) {
    return answer_later("the request failed: a redirect is not followed: " + problem);
  }
  url_ = std::move(next);
  if (judge_url("a redirect is not followed: ")) request();
}

void Fetch::convert() {
  converting_ = true;
  const auto work = [](void *arg) {
    Fetch &f = self(arg);
    const bh_status status = bh::guarded(nullptr, [&] {
      f.result_ = page_result(f.url_, f.content_type_, std::move(f.body_), f.page_, f.cancelled_);
      return BH_OK;
    });
    if (status != BH_OK) f.result_.clear();
  };
  const auto done = [](void *arg) {
    Fetch &f = self(arg);
    f.converting_ = false;
    if (f.result_.empty()) f.problem_ = "there was not enough memory for the page";
    f.step();
  };
  if (host_.run_blocking(work, done, this) != BH_OK) {
    converting_ = false;
    answer_later("too many pages are read at once; try again");
  }
}

void Fetch::cancel() {
  cancelled_.store(true, std::memory_order_relaxed);
  if (converting_) return;
  abort();
  answer_later("the call was cancelled");
}

void Fetch::abort() noexcept {
  cancelled_.store(true, std::memory_order_relaxed);
  if (running_ && id_ != 0) http_.cancel(host_.ctx(), id_);
  running_ = false;
  id_ = 0;
}

}  // namespace builtin_http
