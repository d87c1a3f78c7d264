#include "base/idle_memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace bulkhead {
namespace {

// Drops the pages of a loaded object's read-only segments. The kernel reads them from the file
// again when they are needed. Segments that become read-only only after relocation have PF_W set,
// so they are skipped. Objects with text relocations are skipped, because relocation has modified
// their read-only segments.
int drop_clean_pages(dl_phdr_info *object, std::size_t /*size*/, void *arg) {
  const auto page = *static_cast<const std::uintptr_t *>(arg);
  bool relocated_text = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto *entry =
        reinterpret_cast<const ElfW(Dyn) *>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) relocated_text |= entry->d_tag == DT_TEXTREL;
  }
  if (relocated_text) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    // Drop only whole pages of this segment: the rest of the last page may belong to the next
    // segment.
    const std::uintptr_t end =
        (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    if (end > begin) ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_idle_memory() noexcept {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ::malloc_trim(0);
#endif
  auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::dl_iterate_phdr(drop_clean_pages, &page);
}

}  // namespace bulkhead
