#include "transfer.hpp"

#include <bulkhead/cpp/text.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace http_client {
namespace {

constexpr std::size_t url_bytes_max = 8192;
constexpr long connect_ms_default = 10'000;

// These headers never contain credentials. If a request has any other header, redirects to another
// origin are rejected.
constexpr std::array harmless{"accept",        "accept-language", "accept-encoding",
                              "user-agent",    "cache-control",   "content-type",
                              "if-none-match", "range",           "if-modified-since"};
// Headers for framing and connection management. Only libcurl sets them.
constexpr std::array reserved{"host",
                              "content-length",
                              "transfer-encoding",
                              "connection",
                              "te",
                              "trailer",
                              "upgrade",
                              "expect",
                              "keep-alive",
                              "proxy-authorization",
                              "proxy-connection"};

template <class List>
bool contains(const List &list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const char *s) { return bh::equal_ignoring_case(s, name); });
}

bool is_token(std::string_view s) {
  if (s.empty() || s.size() > 256) return false;
  return std::all_of(s.begin(), s.end(), [](char c) {
    const bool alnum = bh::is_letter_or_digit(c);
    return alnum || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool has_control(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && u != '\t') || u == 0x7F;
  });
}

struct UrlFree {
  void operator()(CURLU *u) const noexcept { curl_url_cleanup(u); }
};
using UrlPtr = std::unique_ptr<CURLU, UrlFree>;

UrlPtr parse(const char *text) {
  UrlPtr url(curl_url());
  if (url == nullptr || curl_url_set(url.get(), CURLUPART_URL, text, 0) != CURLUE_OK)
    return nullptr;
  return url;
}

std::string part(CURLU *url, CURLUPart which, unsigned flags = 0) {
  char *value = nullptr;
  if (curl_url_get(url, which, &value, flags) != CURLUE_OK) return {};
  std::string out(value);
  curl_free(value);
  return out;
}

std::string origin_of(CURLU *url) {
  return part(url, CURLUPART_SCHEME) + "://" + part(url, CURLUPART_HOST) + ":" +
         part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "[::1]") return true;
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && std::strchr(" \t\r\n", s.back()) != nullptr) s.remove_suffix(1);
  return s;
}

const char *environment(const char *a, const char *b = nullptr) {
  const char *value = std::getenv(a);
  if ((value == nullptr || *value == '\0') && b != nullptr) value = std::getenv(b);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Transfer::~Transfer() {
  curl_slist_free_all(headers_);
}

// ---- the request -------------------------------------------------------------------------------

bh_status Transfer::prepare(const bh_http_request &request, bh_error *error) {
  const std::string_view method = bh::view(request.method);
  if (!is_token(method)) return bh::fail(error, BH_E_INVALID, "the method is malformed");
  if (bh_status s = set_url(bh::view(request.url), error); s != BH_OK) return s;
  if (bh_status s = set_headers(request, error); s != BH_OK) return s;
  set_body(request);
  set_bounds(request);
  set_network(request);
  return BH_OK;
}

bh_status Transfer::set_url(std::string_view text, bh_error *error) {
  const std::string copy(text);
  if (copy.size() > url_bytes_max || has_control(copy)) {
    return bh::fail(error, BH_E_INVALID, "the URL is too long or contains control characters");
  }
  const UrlPtr url = parse(copy.c_str());
  if (url == nullptr) return bh::fail(error, BH_E_INVALID, "the URL is malformed");
  const std::string scheme = part(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return bh::fail(error, BH_E_INVALID, "the URL is neither http nor https");
  }
  if (!part(url.get(), CURLUPART_USER).empty() || !part(url.get(), CURLUPART_PASSWORD).empty()) {
    return bh::fail(error, BH_E_INVALID, "the URL contains a user name or password");
  }
  host_ =
      part(url.get(), CURLUPART_HOST) + ":" + part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  curl_easy_setopt(easy_, CURLOPT_URL, copy.c_str());
  if (is_loopback(part(url.get(), CURLUPART_HOST))) curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  return BH_OK;
}

bh_status Transfer::set_headers(const bh_http_request &request, bh_error *error) {
  if (request.header_count > request_headers_max) {
    return bh::fail(error, BH_E_LIMIT, "the request has more than 128 headers");
  }
  std::string line;
  for (std::uint32_t i = 0; i < request.header_count; ++i) {
    const std::string_view name = bh::view(request.headers[i].name);
    const std::string_view value = bh::view(request.headers[i].value);
    if (!is_token(name) || contains(reserved, name)) {
      return bh::fail(error, BH_E_INVALID, "a header name is malformed or not allowed");
    }
    if (has_control(value)) return bh::fail(error, BH_E_INVALID, "a header value is malformed");
    private_headers_ = private_headers_ || !contains(harmless, name);
    line.assign(name).append(value.empty() ? ";" : ": ").append(value);
    headers_ = curl_slist_append(headers_, line.c_str());
  }
  headers_ = curl_slist_append(headers_, "Expect:");  // disables "100 Continue" and its round trip
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  return BH_OK;
}

// libcurl can rewind a partly sent body only after a redirect. Therefore, if a reused connection
// turns out to be dead, libcurl cannot retry the request, which the server may already have
// executed.
void Transfer::set_body(const bh_http_request &request) {
  const std::string method(bh::view(request.method));
  body_.assign(bh::view(request.body));
  if (body_.empty() && method != "POST" && method != "PUT" && method != "PATCH") {
    if (method == "HEAD") {
      curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
    } else {
      curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
      if (method != "GET") curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, method.c_str());
    }
    return;
  }
  curl_easy_setopt(easy_, CURLOPT_POST, 1L);
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  if (method != "POST") curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, on_read);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, on_seek);
  curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
}

void Transfer::set_bounds(const bh_http_request &request) {
  const auto ms = [](std::uint64_t v) {
    return static_cast<long>(std::min<std::uint64_t>(v, 86'400'000));
  };
  max_body_ = request.max_body_bytes;
  follow_ = request.max_redirects > 0;
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, follow_ ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_MAXREDIRS,
                   static_cast<long>(std::min(request.max_redirects, redirects_max)));
  curl_easy_setopt(
      easy_, CURLOPT_CONNECTTIMEOUT_MS,
      request.connect_timeout_ms == 0 ? connect_ms_default : ms(request.connect_timeout_ms));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, ms(request.total_timeout_ms));
  if ((request.flags & BH_HTTP_DECOMPRESS) != 0) {
    curl_easy_setopt(easy_, CURLOPT_ACCEPT_ENCODING, "");
  }
}

void Transfer::set_network(const bh_http_request &request) {
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, text_);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  // Without this option, cancelling a request during name resolution would block until the resolver
  // returns.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // TCP keep-alive detects an unreachable peer within a minute, even if no data is sent.
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, 30L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, 10L);
  curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, 60L);
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  if ((request.flags & BH_HTTP_NO_PROXY) != 0) curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  // This option is always set, because on_open() creates sockets that child processes do not
  // inherit.
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, on_open);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  if (handler_.check_address != nullptr) {
    curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, on_ready);
    curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  }
  // libcurl does not read these variables, although the curl program does.
  if (const char *file = environment("CURL_CA_BUNDLE", "SSL_CERT_FILE")) {
    curl_easy_setopt(easy_, CURLOPT_CAINFO, file);
  }
  if (const char *folder = environment("SSL_CERT_DIR")) {
    curl_easy_setopt(easy_, CURLOPT_CAPATH, folder);
  }
}

std::size_t Transfer::on_read(char *p, std::size_t size, std::size_t n, void *arg) {
  auto *self = static_cast<Transfer *>(arg);
  const std::size_t take = std::min(size * n, self->body_.size() - self->body_at_);
  std::memcpy(p, self->body_.data() + self->body_at_, take);
  self->body_at_ += take;
  return take;
}

int Transfer::on_seek(void *arg, curl_off_t offset, int origin) {
  auto *self = static_cast<Transfer *>(arg);
  const bool redirected = self->any_head_;
  // If the handle's previous transfer failed, libcurl 8.14 also rewinds the body before it has read
  // the first byte.
  const bool untouched = self->body_at_ == 0;
  if ((!redirected && !untouched) || offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_FAIL;
  self->body_at_ = 0;
  return CURL_SEEKFUNC_OK;
}

// ---- addresses ---------------------------------------------------------------------------------

std::string Transfer::current_host() const {
  char *text = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &text);
  const UrlPtr url = text == nullptr ? nullptr : parse(text);
  std::string host = url == nullptr ? std::string() : part(url.get(), CURLUPART_HOST);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

bool Transfer::judge(const char *address, std::uint32_t port) {
  if (cancelled_) return false;
  if (handler_.check_address == nullptr) return true;
  const std::string host = current_host();
  const std::string key = host + " " + address + " " + std::to_string(port);
  if (key == judged_) return true;
  const bh_status status =
      handler_.check_address(user_, bh::str(host), bh::str(std::string_view(address)), port);
  if (status == BH_OK) {
    judged_ = key;
    return true;
  }
  return stop_with(BH_E_DENIED, std::string("the address ") + address + " is not allowed");
}

curl_socket_t Transfer::on_open(void *arg, curlsocktype, curl_sockaddr *address) {
  auto *self = static_cast<Transfer *>(arg);
  char text[INET6_ADDRSTRLEN] = {};
  std::uint32_t port = 0;
  if (address->family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address->addr, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    port = ntohs(in.sin_port);
  } else if (address->family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &address->addr, std::min<std::size_t>(sizeof in, address->addrlen));
    inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    port = ntohs(in.sin6_port);
  } else {
    return CURL_SOCKET_BAD;
  }
  if (!self->judge(text, port)) return CURL_SOCKET_BAD;
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  const int probes = 3;  // libcurl 7.88 has no option for this value
  if (fd >= 0) ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  return fd;
}

// Unlike on_open(), this function is also called when a connection is reused.
int Transfer::on_ready(void *arg, char *ip, char *, int port, int) {
  auto *self = static_cast<Transfer *>(arg);
  return self->judge(ip, static_cast<std::uint32_t>(port)) ? CURL_PREREQFUNC_OK
                                                           : CURL_PREREQFUNC_ABORT;
}

// ---- the response ------------------------------------------------------------------------------

bool Transfer::stop_with(bh_status code, std::string_view text) {
  if (stopped_.code == BH_OK) stopped_ = bh::make_error(code, host_ + ": " + std::string(text));
  return false;
}

std::size_t Transfer::on_header(char *p, std::size_t size, std::size_t n, void *arg) {
  auto *self = static_cast<Transfer *>(arg);
  return self->on_header_line({p, size * n}) ? size * n : 0;
}

bool Transfer::on_header_line(std::string_view line) {
  if (cancelled_) return false;
  if (line.starts_with("HTTP/")) {
    head_.clear();
    head_bytes_ = 0;
    in_head_ = true;
    const std::size_t space = line.find(' ');
    status_ = space == std::string_view::npos
                  ? 0
                  : static_cast<std::uint32_t>(std::strtoul(line.data() + space + 1, nullptr, 10));
  } else if (!in_head_) {
    return true;  // a trailer
  }
  head_bytes_ += line.size();
  if (head_bytes_ > header_bytes_max || head_.size() >= headers_max) {
    return stop_with(BH_E_LIMIT, "the response header is too large");
  }
  const std::string_view text = trimmed(line);
  if (text.empty()) return end_of_head();
  const std::size_t colon = text.find(':');
  if (line.front() == ' ' || line.front() == '\t' || colon == std::string_view::npos) return true;
  head_.push_back(
      {std::string(trimmed(text.substr(0, colon))), std::string(trimmed(text.substr(colon + 1)))});
  return true;
}

bool Transfer::end_of_head() {
  in_head_ = false;
  if (status_ < 200) return true;
  any_head_ = true;
  const bool redirect =
      status_ == 301 || status_ == 302 || status_ == 303 || status_ == 307 || status_ == 308;
  const bool has_place = std::any_of(head_.begin(), head_.end(), [](const Header &h) {
    return bh::equal_ignoring_case(h.name, "location");
  });
  if (follow_ && redirect && has_place) return redirect_is_safe();
  return report_head();
}

// Rejects a redirect that would send headers with possible credentials to another origin. libcurl
// itself removes only two such headers.
bool Transfer::redirect_is_safe() {
  if (!private_headers_) return true;
  char *now = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &now);
  const UrlPtr from = now == nullptr ? nullptr : parse(now);
  const UrlPtr to(from == nullptr ? nullptr : curl_url_dup(from.get()));
  if (to == nullptr)
    return stop_with(BH_E_PROTOCOL, "the server sent a redirect without a valid target");
  for (const Header &h : head_) {
    if (!bh::equal_ignoring_case(h.name, "location")) continue;
    if (curl_url_set(to.get(), CURLUPART_URL, h.value.c_str(), 0) != CURLUE_OK) {
      return stop_with(BH_E_PROTOCOL, "the server sent a redirect to a malformed URL");
    }
  }
  if (origin_of(from.get()) == origin_of(to.get())) return true;
  return stop_with(BH_E_DENIED, "redirected to " + origin_of(to.get()) +
                                    ", to which this request's headers must not be sent");
}

bool Transfer::report_head() {
  head_reported_ = true;
  std::vector<bh_http_header> headers;
  headers.reserve(head_.size());
  for (const Header &h : head_) headers.push_back({bh::str(h.name), bh::str(h.value)});
  char *url = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &url);
  const bh_status status =
      handler_.on_head(user_, status_, headers.data(), static_cast<std::uint32_t>(headers.size()),
                       bh::str(url == nullptr ? "" : url));
  return status == BH_OK || stop_with(BH_E_CANCELLED, "stopped by the handler");
}

std::size_t Transfer::on_write(char *p, std::size_t size, std::size_t n, void *arg) {
  auto *self = static_cast<Transfer *>(arg);
  const std::size_t bytes = size * n;
  if (self->cancelled_) return 0;
  self->received_ += bytes;
  if (self->max_body_ != 0 && self->received_ > self->max_body_) {
    self->stop_with(BH_E_LIMIT,
                    "the response is larger than " + std::to_string(self->max_body_) + " bytes");
    return 0;
  }
  const bh_status status = self->handler_.on_body(self->user_, {p, bytes});
  if (status == BH_OK && !self->cancelled_) return bytes;
  self->stop_with(BH_E_CANCELLED, "stopped by the handler");
  return 0;
}

// ---- the result --------------------------------------------------------------------------------

void Transfer::finish(CURLcode result) {
  if (cancelled_) return;
  if (result == CURLE_OK && stopped_.code == BH_OK) {
    if (!head_reported_ && !report_head()) return handler_.on_done(user_, &stopped_);
    if (!cancelled_) handler_.on_done(user_, nullptr);
    return;
  }
  const bh_error error = to_error(result);
  handler_.on_done(user_, &error);
}

bh_error Transfer::to_error(CURLcode result) const {
  if (stopped_.code != BH_OK) return stopped_;
  const std::string reason = text_[0] != '\0' ? text_ : curl_easy_strerror(result);
  std::string text = host_ + ": " + reason;
  curl_off_t sent_after = 0;
  curl_easy_getinfo(easy_, CURLINFO_PRETRANSFER_TIME_T, &sent_after);
  switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
      return bh::make_error(BH_E_UNAVAILABLE, text);
    case CURLE_OPERATION_TIMEDOUT:
      if (sent_after == 0) return bh::make_error(BH_E_UNAVAILABLE, text);
      return bh::make_error(BH_E_TIMEOUT, text + "; the request may have run");
    case CURLE_TOO_MANY_REDIRECTS:
      return bh::make_error(BH_E_LIMIT, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_LOGIN_DENIED:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return bh::make_error(BH_E_PROTOCOL, text);
    case CURLE_OUT_OF_MEMORY:
      return bh::make_error(BH_E_LIMIT, text);
    default:
      break;
  }
  if (sent_after == 0) return bh::make_error(BH_E_UNAVAILABLE, text);
  return bh::make_error(BH_E_IO, text + "; the request may have run");
}

}  // namespace http_client
