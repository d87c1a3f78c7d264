#include "client.hpp"

#include <algorithm>
#include <utility>

namespace http_client {

Client::Client(const bh_host *host) : host_(host), multi_(curl_multi_init()) {
  if (multi_ == nullptr) return;
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, connections_kept);
}

Client::~Client() {
  for (auto &[id, transfer] : transfers_) {
    transfer->cancel();
    curl_multi_remove_handle(multi_, transfer->easy());
    curl_easy_cleanup(transfer->easy());
  }
  transfers_.clear();
  for (CURL *easy : handles_) curl_easy_cleanup(easy);
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  for (auto &[fd, watch] : watches_) host_.unwatch(watch);
  host_.timer_cancel(timer_);
}

CURL *Client::acquire_handle() {
  if (handles_.empty()) return curl_easy_init();
  CURL *easy = handles_.back();
  handles_.pop_back();
  return easy;
}

bh_status Client::start(const bh_http_request &request, const bh_http_handler *handler, void *user,
                        bh_http_id *out, bh_error *error) {
  if (transfers_.size() >= requests_max) {
    return bh::fail(error, BH_E_LIMIT, "1024 HTTP requests are already in flight, the maximum");
  }
  CURL *easy = acquire_handle();
  if (easy == nullptr) return bh::fail(error, BH_E_LIMIT, "out of memory for an HTTP request");
  auto transfer = std::make_unique<Transfer>(easy, handler, user);
  if (bh_status s = transfer->prepare(request, error); s != BH_OK) {
    curl_easy_cleanup(easy);
    return s;
  }
  if (inside_) {
    waiting_.push_back(transfer.get());
  } else if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
    curl_easy_cleanup(easy);
    return bh::fail(error, BH_E_INTERNAL, "libcurl did not accept the request");
  }
  transfer->id = *out = ++last_id_;
  transfers_.emplace(*out, std::move(transfer));
  return BH_OK;
}

bh_status Client::cancel(bh_http_id id) {
  const auto it = transfers_.find(id);
  if (it == transfers_.end() || it->second->cancelled()) return BH_STALE;
  it->second->cancel();
  if (inside_) {
    cancelled_.push_back(it->second.get());
  } else {
    release(it->second.get());
  }
  return BH_OK;
}

// Must not be called from within libcurl.
void Client::release(Transfer *transfer) noexcept {
  std::erase(waiting_, transfer);
  std::erase(cancelled_, transfer);
  CURL *easy = transfer->easy();
  curl_multi_remove_handle(multi_, easy);  // no effect if the handle was never added
  transfers_.erase(transfer->id);
  if (handles_.size() < handles_kept) {
    curl_easy_reset(easy);
    handles_.push_back(easy);
  } else {
    curl_easy_cleanup(easy);
  }
}

// ---- reactor events ----------------------------------------------------------------------------

int Client::on_socket(CURL *, curl_socket_t fd, int what, void *arg, void *) {
  auto *self = static_cast<Client *>(arg);
  const auto it = self->watches_.find(fd);
  if (what == CURL_POLL_REMOVE) {
    if (it == self->watches_.end()) return 0;
    self->host_.unwatch(it->second);
    self->watches_.erase(it);
    return 0;
  }
  std::uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0) events |= BH_FD_READ;
  if ((what & CURL_POLL_OUT) != 0) events |= BH_FD_WRITE;
  if (it != self->watches_.end()) {
    self->host_.modify(it->second, events);
    return 0;
  }
  bh_watch watch = 0;
  if (self->host_.watch(fd, events, on_event, self, &watch) != BH_OK) return -1;
  self->watches_.emplace(fd, watch);
  return 0;
}

int Client::on_timer(CURLM *, long timeout_ms, void *arg) {
  auto *self = static_cast<Client *>(arg);
  self->host_.timer_cancel(self->timer_);
  if (timeout_ms >= 0) {
    self->timer_ =
        self->host_.timer_start(static_cast<std::uint64_t>(timeout_ms), on_timeout, self);
  }
  return 0;
}

void Client::on_event(void *arg, std::int32_t fd, std::uint32_t events) {
  int mask = 0;
  if ((events & BH_FD_READ) != 0) mask |= CURL_CSELECT_IN;
  if ((events & BH_FD_WRITE) != 0) mask |= CURL_CSELECT_OUT;
  if ((events & BH_FD_ERROR) != 0) mask |= CURL_CSELECT_ERR;
  static_cast<Client *>(arg)->act(fd, mask);
}

void Client::on_timeout(void *arg) {
  auto *self = static_cast<Client *>(arg);
  self->timer_ = 0;
  self->act(CURL_SOCKET_TIMEOUT, 0);
}

void Client::act(curl_socket_t fd, int events) {
  int running = 0;
  inside_ = true;
  curl_multi_socket_action(multi_, fd, events, &running);
  inside_ = false;
  settle();
}

// Performs the starts and cancellations that were deferred while libcurl was running.
void Client::settle() {
  for (Transfer *transfer : std::exchange(cancelled_, {})) release(transfer);
  while (!waiting_.empty()) {  // one at a time, because on_done may cancel other requests
    Transfer *transfer = waiting_.front();
    waiting_.pop_front();
    if (curl_multi_add_handle(multi_, transfer->easy()) == CURLM_OK) continue;
    transfer->finish(CURLE_FAILED_INIT);
    transfer->cancel();
    release(transfer);
  }
  finish_ended();
}

void Client::finish_ended() {
  int left = 0;
  while (CURLMsg *message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    char *place = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &place);
    auto *transfer = reinterpret_cast<Transfer *>(place);
    // on_done may start and cancel requests. This request's ID is no longer valid at that point.
    auto node = transfers_.extract(transfer->id);
    curl_multi_remove_handle(multi_, transfer->easy());
    transfer->finish(result);
    transfers_.insert(std::move(node));
    release(transfer);
  }
}

}  // namespace http_client
