#include "builtin-files/snapshots/manifest.hpp"

#include <cstring>

namespace builtin_files {
namespace {

constexpr std::string_view magic = "bulkhead snapshot 1\n";
constexpr std::size_t max_snapshot_name = 64;
constexpr std::size_t max_replaced = 22;

// Serializes a manifest. Numbers are in host byte order, so stores are not portable between
// machines.
class Writer {
 public:
  template <class T>
  void number(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint16_t>(text.size()));
    out_.append(text);
  }
  void hash(const Hash &hash) {
    out_.append(reinterpret_cast<const char *>(hash.data()), hash.size());
  }
  std::string &out() { return out_; }

 private:
  std::string out_{magic};
};

// A bounds-checked reader. If a read exceeds the input, good() becomes false, and all later reads
// return zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {
    if (left_.starts_with(magic)) {
      left_.remove_prefix(magic.size());
    } else {
      good_ = false;
    }
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint16_t>())); }
  Hash hash() {
    Hash out{};
    const std::string_view bytes = take(out.size());
    if (good_) std::memcpy(out.data(), bytes.data(), out.size());
    return out;
  }
  bool good() const { return good_; }
  std::size_t left() const { return left_.size(); }

 private:
  std::string_view take(std::size_t n) {
    good_ = good_ && n <= left_.size();
    if (!good_) return {};
    const std::string_view out = left_.substr(0, n);
    left_.remove_prefix(n);
    return out;
  }
  std::string_view left_;
  bool good_ = true;
};

void write_head(Writer *w, const Head &h) {
  w->number(h.sequence);
  w->number(h.created_s);
  w->number(static_cast<std::uint8_t>(h.manual));
  w->text(h.name);
  w->number(h.files);
  w->number(h.skipped);
  w->hash(h.hash);
  w->number(static_cast<std::uint16_t>(h.replaces.size()));
  for (const std::uint64_t sequence : h.replaces) w->number(sequence);
}

bool read_head(Reader *r, Head *h) {
  h->sequence = r->number<std::uint64_t>();
  h->created_s = r->number<std::int64_t>();
  h->manual = r->number<std::uint8_t>() != 0;
  h->name = r->text();
  h->files = r->number<std::uint64_t>();
  h->skipped = r->number<std::uint64_t>();
  h->hash = r->hash();
  const auto count = r->number<std::uint16_t>();
  if (count > max_replaced || h->name.size() > max_snapshot_name) return false;
  for (unsigned i = 0; i < count; ++i) h->replaces.push_back(r->number<std::uint64_t>());
  return r->good();
}

void write_entry(Writer *w, const Entry &e) {
  w->number(static_cast<std::uint8_t>(e.kind));
  w->number(static_cast<std::uint8_t>((e.stored ? 1 : 0) | (e.settled ? 2 : 0)));
  w->number(e.mode);
  w->number(e.uid);
  w->number(e.gid);
  w->number(e.signature.inode);
  w->number(e.signature.size);
  w->number(e.signature.modified_ns);
  w->number(e.signature.changed_ns);
  w->text(e.path);
  if (e.stored) w->hash(e.hash);
  if (e.kind == Kind::link) w->text(e.target);
}

bool read_entry(Reader *r, Entry *e) {
  const auto kind = r->number<std::uint8_t>();
  const auto flags = r->number<std::uint8_t>();
  if (kind < 1 || kind > 3) return false;
  e->kind = static_cast<Kind>(kind);
  e->stored = (flags & 1) != 0;
  e->settled = (flags & 2) != 0;
  e->mode = r->number<std::uint32_t>();
  e->uid = r->number<std::uint32_t>();
  e->gid = r->number<std::uint32_t>();
  e->signature.inode = r->number<std::uint64_t>();
  e->signature.size = r->number<std::uint64_t>();
  e->signature.modified_ns = r->number<std::int64_t>();
  e->signature.changed_ns = r->number<std::int64_t>();
  e->path = r->text();
  if (e->stored) e->hash = r->hash();
  if (e->kind == Kind::link) e->target = r->text();
  return r->good();
}

}  // namespace

void complete(Manifest *manifest) {
  Hasher hasher;
  manifest->head.files = 0;
  for (const Entry &e : manifest->entries) {
    if (e.kind != Kind::folder) ++manifest->head.files;
    const std::uint32_t fixed[] = {static_cast<std::uint32_t>(e.kind), kept_mode(e.mode),
                                   static_cast<std::uint32_t>(e.path.size()),
                                   static_cast<std::uint32_t>(e.target.size())};
    hasher.add({reinterpret_cast<const char *>(fixed), sizeof fixed});
    hasher.add(e.path);
    hasher.add(e.target);
    hasher.add({reinterpret_cast<const char *>(e.hash.data()), e.hash.size()});
    // The content of these files is not stored, so the hash covers their size and modification time
    // instead.
    if (e.kind != Kind::file || e.stored) continue;
    hasher.add({reinterpret_cast<const char *>(&e.signature.size), sizeof e.signature.size});
    hasher.add(
        {reinterpret_cast<const char *>(&e.signature.modified_ns), sizeof e.signature.modified_ns});
  }
  manifest->head.hash = hasher.end();
}

std::string encode(const Manifest &manifest) {
  Writer w;
  write_head(&w, manifest.head);
  w.number(static_cast<std::uint64_t>(manifest.entries.size()));
  for (const Entry &e : manifest.entries) write_entry(&w, e);
  w.hash(hash_of(w.out()));
  return std::move(w.out());
}

std::optional<Head> decode_head(std::string_view bytes) {
  Reader r(bytes);
  Head out;
  if (!read_head(&r, &out)) return std::nullopt;
  return out;
}

std::optional<Manifest> decode(std::string_view bytes) {
  if (bytes.size() < sizeof(Hash)) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(Hash));
  const Hash sum = hash_of(body);
  if (std::memcmp(sum.data(), bytes.data() + body.size(), sum.size()) != 0) return std::nullopt;
  Reader r(body);
  Manifest out;
  if (!read_head(&r, &out.head)) return std::nullopt;
  const auto count = r.number<std::uint64_t>();
  if (count > r.left()) return std::nullopt;
  out.entries.resize(count);
  for (Entry &e : out.entries) {
    if (!read_entry(&r, &e)) return std::nullopt;
  }
  return out;
}

}  // namespace builtin_files
