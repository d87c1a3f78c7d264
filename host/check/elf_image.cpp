#include "check/elf_image.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace bulkhead::check {
namespace {

constexpr std::uint64_t most_bytes = 256u << 20;
constexpr std::uint64_t most_symbols = 1'000'000;
constexpr std::uint64_t most_name = 256, most_path = 64 * 1024;  // longer texts are truncated

// A read-only mapping of the file. Other users cannot truncate it, because it belongs to this user
// or to root; see open_trusted_file().
class Bytes {
 public:
  Bytes(int fd, std::size_t size) : size_(size) {
    void *at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) data_ = static_cast<const char *>(at);
  }
  ~Bytes() {
    if (data_ != nullptr) ::munmap(const_cast<char *>(data_), size_);
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;

  bool mapped() const noexcept { return data_ != nullptr; }
  bool inside(std::uint64_t offset, std::uint64_t n) const noexcept {
    return offset <= size_ && n <= size_ - offset;
  }
  template <class T>
  bool read(std::uint64_t offset, T *out) const noexcept {
    if (!inside(offset, sizeof(T))) return false;
    std::memcpy(out, data_ + offset, sizeof(T));
    return true;
  }
  // Returns the text at `offset` in a string table, up to its NUL, and at most `most` bytes.
  std::string text(const Elf64_Shdr &table, std::uint64_t offset, std::uint64_t most) const {
    if (offset >= table.sh_size || !inside(table.sh_offset, table.sh_size)) return {};
    const char *begin = data_ + table.sh_offset + offset;
    return std::string(begin, ::strnlen(begin, std::min(table.sh_size - offset, most)));
  }

 private:
  const char *data_ = nullptr;
  std::size_t size_;
};

std::unexpected<Error> damaged(const std::string &what) {
  return fail(BH_E_INVALID, "its " + what + " cannot be read");
}

void split_paths(const std::string &paths, std::vector<std::string> *out) {
  std::string_view rest = paths;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    out->emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

Result<void> read_segments(const Bytes &bytes, const Elf64_Ehdr &elf, ElfImage *out) {
  for (std::uint64_t i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!bytes.read(elf.e_phoff + i * sizeof segment, &segment)) return damaged("segments");
    constexpr Elf64_Word writable_code = PF_W | PF_X;
    if (segment.p_type == PT_LOAD && (segment.p_flags & writable_code) == writable_code) {
      out->writable_code = true;
    }
    if (segment.p_type == PT_GNU_STACK && (segment.p_flags & PF_X) != 0) {
      out->executable_stack = true;
    }
  }
  return {};
}

Result<void> read_dynamic(const Bytes &bytes, const Elf64_Shdr &section, const Elf64_Shdr &strings,
                          ElfImage *out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.sh_size; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry{};
    if (!bytes.read(section.sh_offset + at, &entry)) return damaged("dynamic section");
    switch (entry.d_tag) {
      case DT_NULL:
        return {};
      case DT_FLAGS:
        out->static_tls |= (entry.d_un.d_val & DF_STATIC_TLS) != 0;
        out->text_relocations |= (entry.d_un.d_val & DF_TEXTREL) != 0;
        break;
      case DT_TEXTREL:
        out->text_relocations = true;
        break;
      case DT_RPATH:
      case DT_RUNPATH:
        split_paths(bytes.text(strings, entry.d_un.d_val, most_path), &out->library_paths);
        break;
      default:
        break;
    }
  }
  return {};
}

Result<void> read_symbols(const Bytes &bytes, const Elf64_Shdr &section, const Elf64_Shdr &strings,
                          ElfImage *out) {
  const std::uint64_t count = section.sh_size / sizeof(Elf64_Sym);
  if (count > most_symbols) return fail(BH_E_LIMIT, "it has too many symbols");
  for (std::uint64_t i = 1; i < count; ++i) {  // symbol 0 is empty
    Elf64_Sym symbol{};
    if (!bytes.read(section.sh_offset + i * sizeof symbol, &symbol)) return damaged("symbols");
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    out->symbols.push_back({bytes.text(strings, symbol.st_name, most_name),
                            symbol.st_shndx != SHN_UNDEF,
                            ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE});
  }
  return {};
}

}  // namespace

Result<ElfImage> read_elf(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return damaged("file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > most_bytes) return fail(BH_E_LIMIT, "it is larger than 256 MiB");
  const Bytes bytes(fd, size);
  Elf64_Ehdr elf{};
  if (!bytes.mapped() || !bytes.read(0, &elf)) return damaged("file");
  ElfImage image;
  if (auto ok = read_segments(bytes, elf, &image); !ok) return std::unexpected(ok.error());
  bool has_dynamic = false, has_symbols = false;  // a library has one section of each kind
  for (std::uint64_t i = 0; i < elf.e_shnum; ++i) {
    Elf64_Shdr section{}, strings{};
    if (!bytes.read(elf.e_shoff + i * sizeof section, &section)) return damaged("sections");
    if (section.sh_type != SHT_DYNAMIC && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= elf.e_shnum ||
        !bytes.read(elf.e_shoff + section.sh_link * sizeof strings, &strings)) {
      return damaged("sections");
    }
    bool &has = section.sh_type == SHT_DYNAMIC ? has_dynamic : has_symbols;
    if (std::exchange(has, true)) return damaged("sections");
    const auto read = section.sh_type == SHT_DYNAMIC ? read_dynamic : read_symbols;
    if (auto ok = read(bytes, section, strings, &image); !ok) return std::unexpected(ok.error());
  }
  return image;
}

}  // namespace bulkhead::check
