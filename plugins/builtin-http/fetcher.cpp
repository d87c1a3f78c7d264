#include "builtin-http/fetcher.hpp"

#include <bulkhead/cpp/tables.hpp>

#include <algorithm>
#include <utility>

#include "builtin-http/content_type.hpp"
#include "builtin-http/net_event.hpp"

namespace builtin_http {
namespace {

constexpr std::string_view accept =
    "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.8";
constexpr std::string_view user_agent = "Bulkhead/0.1 (builtin-http)";

bool is_redirect(std::uint32_t status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool has_header(const std::vector<Header> &headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const Header &h) { return same_name(h.name, name); });
}

// Returns the request header that revalidates a cached response. The header refers to memory in the
// response.
bh_http_header validator_of(const Response &kept) {
  const std::string_view tag = kept.header("etag");
  if (!tag.empty()) return {bh::str("if-none-match"), bh::str(tag)};
  return {bh::str("if-modified-since"), bh::str(kept.header("last-modified"))};
}

}  // namespace

// ---- sending requests --------------------------------------------------------------------------

void Fetcher::start(Request &&request, std::uint64_t deadline_ns) {
  request_ = std::move(request);
  deadline_ns_ = deadline_ns;
  if (judge("")) send();
}

// Returns true if the URL is allowed. Otherwise, completes the fetch with an error.
bool Fetcher::judge(std::string_view prefix) {
  const std::string refusal = config_.refusal(request_.url);
  if (refusal.empty()) return true;
  response_ = {};
  asked_ns_ = host_.now_ns();
  problem_ = std::string(prefix) + refusal;
  note("denied", refusal);
  later();
  return false;
}

void Fetcher::send() {
  const std::uint64_t now = host_.now_ns();
  if (now >= deadline_ns_) return end_later("the request failed: it timed out");
  if (use_cache(now)) return later();
  response_ = {};
  response_.url = request_.url;
  location_.clear();
  enough_ = false;
  asked_ns_ = now;
  const std::string url = request_.url.text();
  std::vector<bh_http_header> headers;
  const bh_http_request r = describe(url, &headers, now);
  running_ = true;
  bh_error error = bh::make_error();
  // start() may call on_done() before it returns.
  if (http_.start(host_.ctx(), &r, bh::http_handler<Fetcher>(), this, &id_, &error) >= 0) return;
  running_ = false;
  problem_ = failure(error);
  note("error", problem_);
  later();
}

// If the cache has a fresh response, copies it to response_ and returns true. If the cache has a
// stale response, copies it to kept_ for revalidation and returns false.
bool Fetcher::use_cache(std::uint64_t now) {
  kept_.reset();
  if (!Cache::is_for(request_)) return false;
  const Cache::Found found = cache_.find(request_.url, now);
  if (found.response == nullptr) return false;
  kept_ = *found.response;
  if (!found.is_fresh) return false;
  location_.clear();
  asked_ns_ = now;
  response_ = {};
  note("allowed", "served from the cache");
  use_kept();
  return true;
}

void Fetcher::use_kept() {
  response_ = std::move(*kept_);
  kept_.reset();
  problem_ = refused_head();
}

// The returned request refers to memory in `url`, *headers and this object.
bh_http_request Fetcher::describe(const std::string &url, std::vector<bh_http_header> *headers,
                                  std::uint64_t now) const {
  for (const Header &h : request_.headers) headers->push_back({bh::str(h.name), bh::str(h.value)});
  if (kept_) headers->push_back(validator_of(*kept_));
  if (!has_header(request_.headers, "accept")) {
    headers->push_back({bh::str("accept"), bh::str(accept)});
  }
  if (!has_header(request_.headers, "user-agent")) {
    headers->push_back({bh::str("user-agent"), bh::str(user_agent)});
  }
  bh_http_request r{};
  r.size = sizeof r;
  // If a proxy were used, check_address would receive the address of the proxy. Therefore, address
  // restrictions require a direct connection.
  r.flags = BH_HTTP_DECOMPRESS | (config_.addresses.any ? 0u : std::uint32_t{BH_HTTP_NO_PROXY});
  r.method = bh::str(request_.method);
  r.url = bh::str(url);
  r.headers = headers->data();
  r.header_count = static_cast<std::uint32_t>(headers->size());
  r.max_redirects = 0;
  r.body = bh::str(request_.body);
  r.total_timeout_ms = std::max<std::uint64_t>((deadline_ns_ - now) / 1'000'000, 1);
  r.max_body_bytes = request_.head_only ? 0 : config_.max_body_bytes;
  return r;
}

void Fetcher::follow() {
  if (++redirects_ > max_redirects) {
    return end_later("the request failed: more than " + std::to_string(max_redirects) +
                     " redirects");
  }
  Url next;
  std::string problem;
  if (!resolve_url(request_.url, location_, &next, &problem)) {
    return end_later("the request failed: a redirect was not followed: " + problem);
  }
  if (next.origin() != request_.url.origin()) request_.headers.clear();
  request_.url = std::move(next);
  if (judge("a redirect was not followed: ")) send();
}

// ---- handling the response ---------------------------------------------------------------------

bh_status Fetcher::check_address(std::string_view host, std::string_view address) {
  if (config_.addresses.permit(address)) return BH_OK;
  denied_ = true;
  problem_ = "the address " + std::string(address) + " of " + std::string(host) +
             " is blocked: it is not a public Internet address";
  return BH_E_DENIED;
}

bh_status Fetcher::on_head(std::uint32_t status, std::span<const bh_http_header> headers) {
  response_.status = status;
  for (const bh_http_header &header : headers) {
    response_.headers.push_back(
        {std::string(bh::view(header.name)), std::string(bh::view(header.value))});
  }
  // The body of a redirect is not read. The connection can be reused only if the body is empty.
  enough_ = read_redirect();
  if (enough_ || (status == 304 && kept_)) return BH_OK;
  problem_ = refused_head();
  enough_ = request_.head_only && problem_.empty();
  return problem_.empty() && (!enough_ || request_.method == "HEAD") ? BH_OK : BH_E_CANCELLED;
}

// Returns true if the response is a redirect that must be followed.
bool Fetcher::read_redirect() {
  const bool harmless = request_.method == "GET" || request_.method == "HEAD";
  if (!harmless || !is_redirect(response_.status)) return false;
  location_ = response_.header("location");
  return !location_.empty();
}

// If the status or the content type is not acceptable, returns the reason for rejecting the
// response. Otherwise, returns an empty string.
std::string Fetcher::refused_head() const {
  const bool good = response_.status >= 200 && response_.status < 300;
  if (!good && !request_.any_status) {
    return "the request failed: the server responded with status " +
           std::to_string(response_.status);
  }
  const std::string type = request_.any_type ? "" : binary_type(response_.header("content-type"));
  if (type.empty()) return {};
  return "binary content (" + type +
         ") is not text; fetch_http with format \"raw\" returns it with invalid bytes replaced";
}

bh_status Fetcher::on_body(std::string_view piece) {
  if (enough_) return BH_E_CANCELLED;
  if (piece.size() > config_.max_body_bytes - response_.body.size()) {
    problem_ = "the content is larger than " + std::to_string(config_.max_body_bytes) + " bytes";
    return BH_E_LIMIT;
  }
  response_.body.append(piece);
  return BH_OK;
}

void Fetcher::on_done(const bh_error *error) {
  running_ = false;
  id_ = 0;
  bh::guarded(nullptr, [&] {
    if (problem_.empty() && !enough_) {
      if (error != nullptr) problem_ = failure(*error);
      if (error == nullptr && response_.status == 0) {
        problem_ = "the request failed: no response";
      }
    }
    note(denied_ ? "denied" : response_.status != 0 ? "allowed" : "error", problem_);
    if (problem_.empty()) keep();
    return BH_OK;
  });
  later();
}

// Stores the response in the cache. After a successful revalidation, renews the cached response
// instead.
void Fetcher::keep() {
  if (!Cache::is_for(request_) || !location_.empty()) return;
  const std::uint64_t now = host_.now_ns();
  if (response_.status == 304 && kept_) {
    cache_.renew(request_.url, response_, now, std::time(nullptr));
    use_kept();
  } else {
    cache_.store(request_.url, response_, now, std::time(nullptr));
  }
}

std::string Fetcher::failure(const bh_error &error) const {
  if (error.code == BH_E_LIMIT && response_.status != 0) {
    return "the content is larger than " + std::to_string(config_.max_body_bytes) + " bytes";
  }
  return "the request failed: " + std::string(bh::text(error));
}

// ---- ending the fetch --------------------------------------------------------------------------

void Fetcher::note(const char *decision, std::string_view reason) {
  NetEvent event;
  event.decision = decision;
  event.method = request_.method;
  event.status = response_.status;
  event.bytes_sent = request_.body.size();
  event.bytes_received = response_.body.size();
  event.duration_ms = (host_.now_ns() - asked_ns_) / 1'000'000;
  event.reason = reason;
  user_.record(net_event(request_.url, event));
}

void Fetcher::end_later(std::string problem) {
  problem_ = std::move(problem);
  later();
}

// Schedules step() to run after the HTTP client's callbacks.
void Fetcher::later() {
  if (std::exchange(scheduled_, true)) return;
  host_.defer(bh::callback<&Fetcher::step>(this));
}

void Fetcher::step() {
  scheduled_ = false;
  if (stopped_ || running_) return;
  const bh_status status = bh::guarded(nullptr, [&] {
    if (problem_.empty() && !location_.empty()) follow();
    return BH_OK;
  });
  if (status != BH_OK) problem_ = "out of memory";
  if (!running_ && !scheduled_) user_.fetched(problem_);  // may delete this object
}

void Fetcher::stop() noexcept {
  stopped_ = true;
  if (running_ && id_ != 0) http_.cancel(host_.ctx(), id_);
  running_ = false;
  id_ = 0;
}

}  // namespace builtin_http
