#include "plugin/plugin_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sodium/crypto_hash_sha256.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <boost/dll/library_info.hpp>
#include <cerrno>
#include <cstring>
#include <exception>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

std::unexpected<Error> io_error(const std::string &what, int error) {
  return fail(error == ENOENT ? BH_E_NOT_FOUND : BH_E_IO, what + ": " + bh::error_name(error));
}

// Returns an error message if the owner or mode of the file is not trusted, and an empty string
// otherwise.
std::string untrusted(const struct stat &status, const std::string &path) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return path + " is owned by user " + std::to_string(status.st_uid) +
           ", who is neither root nor the current user";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return path + " is writable by other users; run: chmod go-w " + path;
  }
  return {};
}

bool read_at(int fd, std::uint64_t offset, void *to, std::size_t n) {
  auto *p = static_cast<char *>(to);
  while (n > 0) {
    const ssize_t got = ::pread(fd, p, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    p += got;
    offset += static_cast<std::uint64_t>(got);
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

bool inside(std::uint64_t offset, std::uint64_t n, std::uint64_t size) noexcept {
  return offset <= size && n <= size - offset;
}

std::unexpected<Error> truncated() {
  return fail(BH_E_INVALID, "is truncated or damaged (its headers refer to data beyond its end)");
}

template <class Header>
Result<std::vector<Header>> read_table(int fd, std::uint64_t offset, std::uint64_t count,
                                       std::uint64_t entry_size, std::uint64_t size) {
  std::vector<Header> table;
  if (count == 0) return table;
  if (entry_size != sizeof(Header) || !inside(offset, count * sizeof(Header), size)) {
    return truncated();
  }
  table.resize(count);
  if (!read_at(fd, offset, table.data(), count * sizeof(Header))) return truncated();
  return table;
}

}  // namespace

Result<OwnedFd> open_trusted_folder(const std::string &folder) {
  OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return io_error(folder, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return io_error(folder, errno);
  if (std::string why = untrusted(status, folder); !why.empty()) {
    return fail(BH_E_DENIED, "the folder " + why);
  }
  return fd;
}

Result<OwnedFd> open_trusted_file(int folder_fd, const std::string &folder, const std::string &name,
                                  struct stat *status) {
  const std::string path = folder + "/" + name;
  // O_NONBLOCK: opening a FIFO must not block.
  const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  OwnedFd fd(::openat(folder_fd, name.c_str(), flags));
  if (fd.get() < 0) {
    if (errno == ELOOP)
      return fail(BH_E_DENIED, path + " is a symbolic link; use the path of the file itself");
    return io_error(path, errno);
  }
  if (::fstat(fd.get(), status) != 0) return io_error(path, errno);
  if (!S_ISREG(status->st_mode)) return fail(BH_E_DENIED, path + " is not a regular file");
  if (std::string why = untrusted(*status, path); !why.empty()) return fail(BH_E_DENIED, why);
  return fd;
}

Result<void> check_elf(int fd, std::uint64_t size) {
  Elf64_Ehdr elf{};
  if (size < sizeof elf || !read_at(fd, 0, &elf, sizeof elf) ||
      std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(BH_E_INVALID, "is not a shared library (no ELF header)");
  }
#if defined(__x86_64__)
  constexpr Elf64_Half machine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr Elf64_Half machine = EM_AARCH64;
#else
#error "say here which ELF machine plugins of this platform have"
#endif
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != machine) {
    return fail(BH_E_ABI, "was built for a different architecture");
  }
  if (elf.e_type != ET_DYN) return fail(BH_E_INVALID, "is not a shared library (wrong ELF type)");

  const auto segments = read_table<Elf64_Phdr>(fd, elf.e_phoff, elf.e_phnum, elf.e_phentsize, size);
  if (!segments) return std::unexpected(segments.error());
  for (const Elf64_Phdr &segment : *segments) {
    if (!inside(segment.p_offset, segment.p_filesz, size)) return truncated();
  }
  const auto sections = read_table<Elf64_Shdr>(fd, elf.e_shoff, elf.e_shnum, elf.e_shentsize, size);
  if (!sections) return std::unexpected(sections.error());
  for (const Elf64_Shdr &section : *sections) {
    if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size, size)) {
      return truncated();
    }
  }
  if (sections->empty() || elf.e_shstrndx >= sections->size()) {
    return fail(BH_E_INVALID,
                "has no section table, so its exports cannot be checked before loading");
  }
  return {};
}

Result<std::vector<std::string>> read_exports(int fd) {
  try {
    return boost::dll::library_info("/proc/self/fd/" + std::to_string(fd)).symbols();
  } catch (const std::exception &e) {
    return fail(BH_E_INVALID, std::string("cannot read its exports: ") + e.what());
  }
}

Result<std::string> read_section(int fd, std::string_view name, std::size_t most) {
  constexpr std::size_t most_names = 1u << 20;
  struct stat status{};
  Elf64_Ehdr elf{};
  if (::fstat(fd, &status) != 0 || !read_at(fd, 0, &elf, sizeof elf)) return truncated();
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto sections = read_table<Elf64_Shdr>(fd, elf.e_shoff, elf.e_shnum, elf.e_shentsize, size);
  if (!sections) return std::unexpected(sections.error());
  if (elf.e_shstrndx >= sections->size()) return truncated();
  const auto contents = [&](const Elf64_Shdr &section, std::size_t bound) -> Result<std::string> {
    if (!inside(section.sh_offset, section.sh_size, size)) return truncated();
    if (section.sh_size > bound) return fail(BH_E_LIMIT, "has a section that is too large");
    std::string bytes(section.sh_size, '\0');
    if (!read_at(fd, section.sh_offset, bytes.data(), bytes.size())) return truncated();
    return bytes;
  };
  const auto names = contents((*sections)[elf.e_shstrndx], most_names);
  if (!names) return names;
  for (const Elf64_Shdr &section : *sections) {
    if (section.sh_type != SHT_PROGBITS || section.sh_name >= names->size()) continue;
    if (std::string_view(names->c_str() + section.sh_name) == name) return contents(section, most);
  }
  return std::string();
}

Result<std::string> sha256_of(int fd) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::array<unsigned char, 64 * 1024> piece;
  for (off_t offset = 0;;) {
    const ssize_t n = ::pread(fd, piece.data(), piece.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot read it", errno);
    if (n == 0) break;
    crypto_hash_sha256_update(&state, piece.data(), static_cast<unsigned long long>(n));
    offset += n;
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256_final(&state, digest.data());
  return bh::hex({reinterpret_cast<const char *>(digest.data()), digest.size()});
}

std::string sha256_of_text(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char *>(text.data()),
                     text.size());
  return bh::hex({reinterpret_cast<const char *>(digest.data()), digest.size()});
}

Result<std::string> read_bounded(int fd, const std::string &path, std::size_t most) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, errno);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
    if (text.size() > most)
      return fail(BH_E_INVALID, path + ": is larger than " + std::to_string(most / 1024) + " KiB");
  }
}

Result<FileView> FileView::of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return io_error("cannot read it", errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return FileView({});
  const void *bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return io_error("cannot map it", errno);
  return FileView({static_cast<const char *>(bytes), size});
}

FileView::~FileView() {
  if (!text_.empty()) ::munmap(const_cast<char *>(text_.data()), text_.size());
}

}  // namespace bulkhead
