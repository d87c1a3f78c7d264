#include "sandbox/child_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

// Embeds the linked child_init.c program in this library.
__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".globl bulkhead_child_init_begin\n"
    ".hidden bulkhead_child_init_begin\n"
    "bulkhead_child_init_begin:\n"
    ".incbin \"" BULKHEAD_CHILD_INIT
    "\"\n"
    ".globl bulkhead_child_init_end\n"
    ".hidden bulkhead_child_init_end\n"
    "bulkhead_child_init_end:\n"
    ".popsection\n");

extern "C" const char bulkhead_child_init_begin[];
extern "C" const char bulkhead_child_init_end[];

namespace bulkhead {

Result<OwnedFd> child_init_image() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  // Kernels before 6.3 reject MFD_EXEC; their memfds are always executable.
  OwnedFd file(::memfd_create("bulkhead-init", flags | MFD_EXEC));
  if (!file && errno == EINVAL) file = OwnedFd(::memfd_create("bulkhead-init", flags));
  const auto size = static_cast<std::size_t>(bulkhead_child_init_end - bulkhead_child_init_begin);
  const bool good =
      file && ::write(file.get(), bulkhead_child_init_begin, size) == static_cast<ssize_t>(size) &&
      // Allow execution only. A process that cannot read its own program file is not dumpable, so
      // the server can neither inspect nor trace it.
      ::fchmod(file.get(), 0111) == 0 &&
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ==
          0;
  if (good) return file;
  return fail(BH_E_IO, std::string("cannot create a memfd for the sandbox's init program: ") +
                           ::strerrorname_np(errno));
}

}  // namespace bulkhead
