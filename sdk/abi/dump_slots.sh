#!/bin/sh
# dump_slots.sh INCLUDE_DIR: prints all slots of the ABI headers in order, one per line. After the name
# of a header, prints `state stable` or `state draft` if its comment has "Since X.Y. Stable." or
# "Since X.Y. Draft".
#
# If the output changes, the ABI has changed. check_slots.sh compares it with sdk/abi/golden/.
set -eu
cd "$1/bulkhead/abi"
# shellcheck disable=SC2046  # the names contain no spaces
awk '
  function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
  function members(body, separator,    n, i, parts) {
    n = split(body, parts, separator)
    for (i = 1; i <= n; i++) if (trim(parts[i]) != "") print "  " trim(parts[i])
  }
  # Prints the slots of one header.
  function print_slots(text,    n, i, lines, code, head, start, rest, end) {
    if (match(text, /\* Since [0-9]+\.[0-9]+\. (Stable|Draft)[.:]/)) {
      print "state " (substr(text, RSTART, RLENGTH) ~ /Stable/ ? "stable" : "draft")
    }
    while ((start = index(text, "/*")) > 0) {
      rest = substr(text, start + 2)
      end = index(rest, "*/")
      text = substr(text, 1, start - 1) " " substr(rest, end + 2)
    }
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
      if (lines[i] ~ /^#[ ]*define[ ]+BH_[A-Z_0-9]+[ ]+[^ ]/ && lines[i] !~ /\(type/) {
        print trim(lines[i])
      } else if (lines[i] ~ /^#/) {
        while (lines[i] ~ /\\$/) i++
      } else {
        code = code lines[i] "\n"
      }
    }
    gsub(/extern "C" \{/, "", code)
    while (match(code, /(typedef struct [a-z_0-9]+ \{|enum \{|typedef [^{;]*;|[ \n]\}\n*$)/)) {
      head = substr(code, RSTART, RLENGTH)
      code = substr(code, RSTART + RLENGTH)
      if (head ~ /^typedef struct [a-z_0-9]+ \{$/) {
        end = index(code, "\n}")
        print trim(substr(head, 9, length(head) - 10))
        members(substr(code, 1, end), ";")
        code = substr(code, end + 2)
      } else if (head ~ /^enum/) {
        end = index(code, "}")
        print "enum"
        members(substr(code, 1, end - 1), ",")
        code = substr(code, end + 1)
      } else if (head ~ /^typedef/) {
        print trim(head)
      }
    }
  }
  function finish() { if (file != "") { print "file " file; print_slots(text) } }
  FNR == 1 { finish(); file = substr(FILENAME, 3); text = "" }
  { text = text $0 "\n" }
  END { finish() }' $(find . -name '*.h' | LC_ALL=C sort)
