#!/bin/sh
# dump_layout.sh INCLUDE_DIR [COMPILER [OPTION...]]: prints the layout of all structs of the ABI
# headers (name, size and alignment; for each member, name, offset and size), and the values of all
# constants, as the compiler (default: cc) sees them. The target must be a 64-bit target.
#
# The compiler writes the numbers into assembly text, which needs no linker and no execution.
set -eu
here=${0%/*}
include=$1
shift
[ $# -gt 0 ] || set -- cc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/dump_slots.sh" "$include" >"$work/slots"
awk '
  function name_of(s) {
    if (match(s, /\(\*[A-Za-z_0-9]+\)/)) return substr(s, RSTART + 2, RLENGTH - 3)
    sub(/ *\[[^]]*\]$/, "", s)
    match(s, /[A-Za-z_0-9]+$/)
    return substr(s, RSTART, RLENGTH)
  }
  function line(text, inputs) { body = body "  __asm__ volatile(\".ascii \\\"@@" text "@@\\\"\"" (inputs ? " : : " inputs : "") ");\n" }
  /^file / {
    print "#include \"bulkhead/abi/" $2 "\""
    line($0)
    next
  }
  /^struct / {
    type = $2
    line("struct " type " %c0 %c1", "\"i\"(sizeof(" type ")), \"i\"(ALIGN(" type "))")
    next
  }
  /^enum$/ { type = ""; next }
  /^  / && type == "" { line("constant " $1 " %c0", "\"i\"((long)" $1 ")"); next }
  /^  / {
    name = name_of($0)
    line("  " name " %c0 %c1", "\"i\"(offsetof(" type ", " name ")), \"i\"(sizeof(((" type " *)0)->" name "))")
  }
  END {
    print "#ifdef __cplusplus\n#define ALIGN(t) alignof(t)\n#else\n#define ALIGN(t) _Alignof(t)\n#endif"
    print "typedef char only_for_64_bit_targets[sizeof(void *) == 8 ? 1 : -1];"
    print "void layout(void);\nvoid layout(void) {\n" body "}"
  }' "$work/slots" >"$work/layout.c"
"$@" -I "$include" -O1 -fno-lto -S -o "$work/layout.s" "$work/layout.c" || {
  echo "The ABI headers do not compile with $*, or their layout cannot be determined." >&2
  exit 1
}
sed -n 's/^.*@@\(.*\)@@.*$/\1/p' "$work/layout.s"
