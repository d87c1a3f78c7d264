#!/bin/sh
# header_of.sh DUMP: prints a C header that declares all slots of an output of dump_slots.sh. With a
# golden file, it is the ABI of an earlier version, without its comments.
set -eu
awk '
  # Headers that others include come first.
  function rank(f) {
    if (f == "core.h") return 1
    if (f == "host.h") return 2
    if (f !~ /\//) return 3
    return f ~ /^ext\/draft\// ? 5 : 4
  }
  function close_block() {
    if (block == "struct") text[file] = text[file] "} " type ";\n"
    if (block == "enum") text[file] = text[file] "};\n"
    block = ""
  }
  /^file / { close_block(); file = $2; files[++n] = file; next }
  /^state / { next }
  /^struct / { close_block(); block = "struct"; type = $2; text[file] = text[file] "typedef struct " type " {\n"; next }
  /^enum$/ { close_block(); block = "enum"; text[file] = text[file] "enum {\n"; next }
  /^  / { text[file] = text[file] $0 (block == "enum" ? "," : ";") "\n"; next }
  { close_block(); text[file] = text[file] $0 "\n" }
  END {
    close_block()
    print "#include <stddef.h>\n#include <stdint.h>"
    print "#ifdef __cplusplus\nextern \"C\" {\n#endif"
    for (r = 1; r <= 5; r++) for (i = 1; i <= n; i++) if (rank(files[i]) == r) print "/* " files[i] " */\n" text[files[i]]
    print "#ifdef __cplusplus\n}\n#endif"
    print "#define BH_HAS(type, p, field) \\"
    print "  ((size_t)(p)->size >= offsetof(type, field) + sizeof(((const type *)0)->field))"
  }' "$1"
