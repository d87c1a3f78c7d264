#include "telemetry-sqlite/spill.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace telemetry_sqlite {
namespace {

// The file starts with `magic`, the offset of the first record to replay, and the number of lost
// records. Each record consists of a length, a checksum and a body. A length of 0 or a wrong
// checksum marks the end of the records.
constexpr std::string_view magic = "BHSPILL3";
constexpr std::uint64_t first_record = 24;
constexpr std::size_t sum_bytes = crypto_shorthash_BYTES;
constexpr std::size_t head_bytes = 4 + sum_bytes;
constexpr unsigned char sum_key[crypto_shorthash_KEYBYTES] = {'s', 'p', 'i', 'l', 'l'};

template <class T>
void append(std::string *out, T value) {
  out->append(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string sum_of(std::string_view bytes) {
  std::string out(sum_bytes, '\0');
  crypto_shorthash(reinterpret_cast<unsigned char *>(out.data()),
                   reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), sum_key);
  return out;
}

std::string encode(const Row &row) {
  std::string out;
  Row &r = const_cast<Row &>(row);
  for (const std::uint32_t n : {r.outcome, r.action, r.flags, r.kind}) append(&out, n);
  r.each_number([&](std::uint64_t n) { append(&out, n); });
  r.each_text([&](const std::string &text) {
    append(&out, static_cast<std::uint32_t>(text.size()));
    out += text;
  });
  append(&out, r.client_revision);
  append(&out, r.server_revision);
  return out;
}

template <class T>
bool take(std::string_view *bytes, T *out) {
  if (bytes->size() < sizeof *out) return false;
  std::memcpy(out, bytes->data(), sizeof *out);
  bytes->remove_prefix(sizeof *out);
  return true;
}

bool decode(std::string_view bytes, Row *out) {
  bool ok = true;
  for (std::uint32_t *n : {&out->outcome, &out->action, &out->flags, &out->kind}) {
    ok = ok && take(&bytes, n);
  }
  out->each_number([&](std::uint64_t &n) { ok = ok && take(&bytes, &n); });
  out->each_text([&](std::string &text) {
    // Records from older versions do not have this member or the revisions.
    if (&text == &out->claimed_name && bytes.empty()) return;
    std::uint32_t n = 0;
    ok = ok && take(&bytes, &n) && n <= bytes.size();
    if (!ok) return;
    text = bytes.substr(0, n);
    bytes.remove_prefix(n);
  });
  if (!bytes.empty()) {
    ok = ok && take(&bytes, &out->client_revision) && take(&bytes, &out->server_revision);
  }
  out->masked = true;
  return ok && bytes.empty();
}

std::string read_at(int fd, std::uint64_t at, std::size_t n) {
  std::string out(n, '\0');
  std::size_t got = 0;
  while (got < n) {
    const ssize_t some = ::pread(fd, out.data() + got, n - got, static_cast<off_t>(at + got));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    got += static_cast<std::size_t>(some);
  }
  out.resize(got);
  return out;
}

// Returns the body of the record at `at`. Returns an empty string if there is no valid record.
std::string record_at(int fd, std::uint64_t at, std::uint64_t capacity) {
  const std::string head = read_at(fd, at, head_bytes);
  if (head.size() < head_bytes) return {};
  std::uint32_t n = 0;
  std::memcpy(&n, head.data(), sizeof n);
  if (n == 0 || at + head_bytes + n > capacity) return {};
  std::string body = read_at(fd, at + head_bytes, n);
  if (body.size() != n || sum_of(body) != head.substr(4)) return {};
  return body;
}

}  // namespace

Spill::~Spill() {
  if (fd_ >= 0) ::close(fd_);
}

std::string Spill::open(const std::string &path, std::uint64_t bytes) {
  const auto failed = [&](int error) { return path + ": " + bh::error_name(error); };
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return failed(errno);
  if (const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes)); error != 0) {
    return failed(error);
  }
  struct stat status{};
  if (::fstat(fd_, &status) != 0) return failed(errno);
  wanted_ = bytes;
  capacity_ = std::max(bytes, static_cast<std::uint64_t>(status.st_size));
  const std::string head = read_at(fd_, 0, first_record);
  begin_ = end_ = first_record;
  if (head.starts_with(magic)) {
    std::string_view numbers = std::string_view(head).substr(magic.size());
    take(&numbers, &begin_);
    take(&numbers, &lost_);
    if (begin_ < first_record || begin_ > capacity_) begin_ = first_record;
    end_ = begin_;
    for (std::string body; !(body = record_at(fd_, end_, capacity_)).empty();) {
      end_ += head_bytes + body.size();
    }
  } else {
    save_head();
  }
  if (empty()) shrink();
  return {};
}

bool Spill::write_at(std::uint64_t at, const std::string &bytes) const {
  std::size_t put = 0;
  while (put < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + put, bytes.size() - put, static_cast<off_t>(at + put));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    put += static_cast<std::size_t>(n);
  }
  return true;
}

void Spill::save_head() {
  std::string head(magic);
  append(&head, begin_);
  append(&head, lost_);
  write_at(0, head);
}

void Spill::shrink() {
  if (capacity_ > wanted_ && ::ftruncate(fd_, static_cast<off_t>(wanted_)) == 0) {
    capacity_ = wanted_;
  }
}

void Spill::set_lost(std::uint64_t count) {
  lost_ = count;
  if (fd_ >= 0) save_head();
}

bool Spill::put(const Row &row) {
  const std::string body = encode(row);
  // The last four bytes are a length of 0, which marks the end of the records.
  if (fd_ < 0 || end_ + head_bytes + body.size() + 4 > capacity_) return false;
  std::string bytes;
  append(&bytes, static_cast<std::uint32_t>(body.size()));
  bytes += sum_of(body);
  bytes += body;
  append(&bytes, std::uint32_t{0});
  if (!write_at(end_, bytes)) return false;
  end_ += head_bytes + body.size();
  return true;
}

std::vector<Row> Spill::peek(std::size_t n) {
  std::vector<Row> out;
  peeked_ = begin_;
  while (out.size() < n && peeked_ < end_) {
    const std::string body = record_at(fd_, peeked_, capacity_);
    Row row;
    if (body.empty()) {
      end_ = peeked_;  // the file was damaged after open() or put()
      break;
    }
    peeked_ += head_bytes + body.size();
    if (decode(body, &row)) out.push_back(std::move(row));
  }
  return out;
}

void Spill::taken() {
  begin_ = peeked_;
  if (begin_ == end_) {
    begin_ = end_ = first_record;
    write_at(first_record, std::string(4, '\0'));
  }
  save_head();
  if (empty()) shrink();
}

void Spill::flush() {
  if (fd_ >= 0) ::fdatasync(fd_);
}

}  // namespace telemetry_sqlite
