#!/bin/sh
# links_no_loader.sh NM READELF MOST_BYTES PROGRAM OBJECT...: checks that the relay for guests loads
# no libraries and stays small. The program is stripped, so the symbols of its objects are checked:
# none of them may refer to the dynamic loader. The C library, which is linked statically, contains
# a loader for its own modules.
set -eu
nm=$1 readelf=$2 most=$3 program=$4
shift 4
failures=0
complain() { echo "$*"; failures=1; }

[ $# -gt 10 ] || complain "expected the objects of the program, got $#"
symbols=$("$nm" -AC "$@")
echo "$symbols" | grep -q ' T main$' || complain "no object has the function main"
if echo "$symbols" | grep -E ' (dlopen|dlmopen|dlsym|dlvsym|dladdr|dlclose)(@|$)|boost::dll'; then
  complain "these objects refer to the dynamic loader"
fi
if "$readelf" -lW "$program" | grep -E 'INTERP|DYNAMIC'; then
  complain "$program is linked dynamically"
fi
if "$readelf" --dyn-syms -W "$program" | grep -E '[0-9]+:'; then
  complain "$program has dynamic symbols"
fi
bytes=$(wc -c <"$program")
[ "$bytes" -le "$most" ] || complain "$program has $bytes bytes, and the limit is $most"
echo "$# objects, $bytes bytes of at most $most"
exit $failures
