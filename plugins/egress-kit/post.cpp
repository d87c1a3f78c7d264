#include "egress-kit/post.hpp"

#include <bulkhead/cpp/tables.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "http-codec/head_writer.hpp"
#include "http-codec/text.hpp"

namespace egress {
namespace {

constexpr std::uint64_t max_retry_after_s = 3600;

struct Address {
  sockaddr_un bytes{};
  std::uint32_t size = 0;
};

Address address_of(const std::string &path) {
  Address out;
  out.bytes.sun_family = AF_UNIX;
  std::memcpy(out.bytes.sun_path, path.data(), path.size());
  out.size = static_cast<std::uint32_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return out;
}

// Headers that are sent with every request, followed by the endpoint's configured headers.
constexpr std::pair<std::string_view, std::string_view> usual_headers[] = {
    {"content-type", "application/json"},
    {"accept", "application/json"},
    {"user-agent", "Bulkhead/0.1"},
};

std::string message_of(const Endpoint &endpoint, const std::string &body) {
  const std::string &url = endpoint.url;
  const std::size_t host = url.find("//") + 2, path = url.find_first_of("/?", host);
  std::string target = path == std::string::npos ? "/" : url.substr(path);
  if (target.front() == '?') target.insert(0, "/");
  std::string out;
  http_codec::append_request_line(out, "POST", target);
  const auto add = [&](std::string_view name, std::string_view value) {
    http_codec::append_field(out, name, value);
  };
  add("host", std::string_view(url).substr(host, path - host));
  add("connection", "close");
  add("content-length", std::to_string(body.size()));
  for (const auto &[name, value] : usual_headers) add(name, value);
  for (const auto &[name, value] : endpoint.headers) add(name, value);
  return out.append("\r\n").append(body);
}

}  // namespace

// A connection attempt that the host makes on a pool thread. It may outlive the Post.
struct Post::Dial {
  const bh_host_listen *table = nullptr;
  void *ctx = nullptr;
  Address address;
  Post *post = nullptr;  // nullptr if the Post was destroyed
  std::int32_t fd = -1;
  bh_error error = bh::make_error();
};

std::string announce(const bh::Host &host, const Endpoint &endpoint) {
  if (endpoint.socket.empty()) return {};
  const auto *listen = host.ext<bh_host_listen>(BH_EXT_HOST_LISTEN);
  if (listen == nullptr) return "the host does not open connections for plugins";
  const Address address = address_of(endpoint.socket);
  bh_error error = bh::make_error();
  const bh_status status = listen->will_dial(host.ctx(), &address.bytes, address.size, &error);
  return status == BH_OK ? std::string() : "socket: " + std::string(bh::text(error));
}

Post::~Post() {
  if (dial_ != nullptr) dial_->post = nullptr;
  host_.timer_cancel(timer_);
  if (running_ && id_ != 0) http_->cancel(host_.ctx(), id_);
}

void Post::start(std::string body) {
  body_ = std::move(body);
  endpoint_.socket.empty() ? request() : dial();
}

// Runs `f`, which can fail only if memory is exhausted.
template <class F>
bool Post::guard(F &&f) {
  const bh_status status = bh::guarded(nullptr, [&] {
    f();
    return BH_OK;
  });
  if (status != BH_OK) end_later("out of memory");
  return status == BH_OK;
}

void Post::dial() {
  const auto *listen = host_.ext<bh_host_listen>(BH_EXT_HOST_LISTEN);
  if (listen == nullptr) return end_later("the host does not open connections for plugins");
  auto job = std::make_unique<Dial>();
  job->table = listen;
  job->ctx = host_.ctx();
  job->address = address_of(endpoint_.socket);
  job->post = this;
  const auto work = [](Dial &it) {
    it.table->dial(it.ctx, &it.address.bytes, it.address.size, &it.fd, &it.error);
  };
  const auto done = [](Dial &dialed) {
    const std::unique_ptr<Dial> it(&dialed);
    Post *const post = it->post;
    if (post != nullptr) post->dial_ = nullptr;
    if (it->fd >= 0 && post == nullptr) ::close(it->fd);
    if (post == nullptr) return;
    const bool good = post->guard([&] {
      if (it->fd >= 0) return post->request_over(it->fd);
      post->end_later(std::string(bh::text(it->error)));
    });
    if (!good && it->fd >= 0 && post->over_socket_ == nullptr) ::close(it->fd);
  };
  if (host_.run_blocking(bh::blocking_work(job.get(), work, done)) != BH_OK) {
    return end_later("too many requests are in flight");
  }
  dial_ = job.release();
}

void Post::request_over(int socket) {
  over_socket_ = std::make_unique<SocketPost>(
      host_, socket, message_of(endpoint_, body_), max_body_, endpoint_.timeout_ms,
      [this](SocketPost::Answer &&answer) {
        answer_.status = answer.status;
        answer_.body = std::move(answer.body);
        take_retry_after(answer.retry_after);
        end_later(answer.problem.empty() ? "" : endpoint_.shown() + ": " + answer.problem);
      });
}

void Post::request() {
  http_ = host_.ext<bh_host_http>(BH_EXT_HOST_HTTP);
  if (http_ == nullptr) return end_later("the host has no HTTP client");
  std::vector<bh_http_header> headers;
  for (const auto &[name, value] : usual_headers) {
    headers.push_back({bh::str(name), bh::str(value)});
  }
  for (const auto &[name, value] : endpoint_.headers) {
    headers.push_back({bh::str(name), bh::str(value)});
  }
  bh_http_request r{};
  r.size = sizeof r;
  r.flags = BH_HTTP_NO_PROXY;
  r.method = bh::str("POST");
  r.url = bh::str(endpoint_.url);
  r.headers = headers.data();
  r.header_count = static_cast<std::uint32_t>(headers.size());
  r.body = bh::str(body_);
  r.connect_timeout_ms = endpoint_.timeout_ms;
  r.total_timeout_ms = endpoint_.timeout_ms;
  r.max_body_bytes = max_body_;
  bh_error error = bh::make_error();
  running_ = true;  // on_done may be called before start() returns
  if (http_->start(host_.ctx(), &r, bh::http_handler<Post>(), this, &id_, &error) >= 0) return;
  running_ = false;
  end_later(std::string(bh::text(error)));
}

bh_status Post::check_address(std::string_view, std::string_view address) {
  return !endpoint_.loopback || is_loopback_address(address) ? BH_OK : BH_E_DENIED;
}

bh_status Post::on_head(std::uint32_t status, std::span<const bh_http_header> headers) {
  answer_.status = status;
  for (const bh_http_header &header : headers) {
    if (!bh::equal_ignoring_case(bh::view(header.name), "retry-after")) continue;
    take_retry_after(bh::view(header.value));
  }
  return BH_OK;
}

void Post::take_retry_after(std::string_view value) {
  std::uint64_t seconds = 0;
  std::from_chars(value.data(), value.data() + value.size(), seconds);
  answer_.retry_after_s = std::min(seconds, max_retry_after_s);
}

bh_status Post::on_body(std::string_view piece) {
  if (piece.size() > max_body_ - answer_.body.size()) return BH_E_LIMIT;
  answer_.body.append(piece);
  return BH_OK;
}

void Post::on_done(const bh_error *error) {
  running_ = false;
  id_ = 0;
  bh::guarded(nullptr, [&] {
    end_later(error == nullptr ? std::string() : std::string(bh::text(*error)));
    return BH_OK;
  });
}

// Schedules end() to run outside the callbacks of the HTTP client.
void Post::end_later(std::string problem) {
  answer_.problem = std::move(problem);
  timer_ = host_.timer_start(0, bh::callback(this, [](Post &post) {
                               // The Done callback can throw if memory is exhausted, but no
                               // exception may cross the host's C interface.
                               bh::contained([&] { post.end(); });
                             }));
}

void Post::end() {
  timer_ = 0;
  const Done done = std::move(done_);
  Answer answer = std::move(answer_);
  done(std::move(answer));
}

}  // namespace egress
