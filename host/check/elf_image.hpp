// Reads the parts of a shared library that matter for a host, without running its code. The file is
// untrusted: all offsets are checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::check {

struct ElfImage {
  struct Symbol {
    std::string name;
    bool defined = false, unique = false;
  };
  std::vector<Symbol> symbols;             // the dynamic symbols
  std::vector<std::string> library_paths;  // DT_RPATH and DT_RUNPATH, split at ':'
  bool static_tls = false;                 // DF_STATIC_TLS
  bool text_relocations = false;           // DT_TEXTREL or DF_TEXTREL
  bool writable_code = false;              // a segment is writable and executable
  bool executable_stack = false;
};

// The file must have passed check_elf(). Returns BH_E_INVALID if its dynamic section or its
// symbols are damaged, and BH_E_LIMIT if it has more than 256 MiB or 1,000,000 symbols.
Result<ElfImage> read_elf(int fd);

}  // namespace bulkhead::check
