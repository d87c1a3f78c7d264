#!/bin/sh
# dump_slots.sh INCLUDE_DIR: prints all slots of the ABI headers in order, one per line.
#
# If the output changes, the ABI has changed. check_slots.sh compares it with sdk/abi/golden/.
set -eu
cd "$1/bulkhead/abi"
find . -name '*.h' | LC_ALL=C sort | while read -r header; do
  echo "file ${header#./}"
  # Remove comments, then print one declaration per line.
  awk '
    { text = text $0 "\n" }
    END {
      while ((start = index(text, "/*")) > 0) {
        rest = substr(text, start + 2)
        end = index(rest, "*/")
        text = substr(text, 1, start - 1) " " substr(rest, end + 2)
      }
      printf "%s", text
    }' "$header" |
    awk '
    function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
    function members(body, separator,    n, i, parts) {
      n = split(body, parts, separator)
      for (i = 1; i <= n; i++) if (trim(parts[i]) != "") print "  " trim(parts[i])
    }
    /^#[ ]*define[ ]+BH_[A-Z_0-9]+[ ]+[^ ]/ && !/\(type/ { print trim($0); next }
    /^#/ { while ($0 ~ /\\$/) getline; next }
    { code = code $0 "\n" }
    END {
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
    }'
done
