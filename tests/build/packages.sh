#!/usr/bin/env bash
# packages.sh TREE: tests scripts/install-packages.sh on systems with different package names.
# Scripts replace apt-get, apt-cache and dpkg-query.
set -euo pipefail
tree=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/dpkg-query" <<'END'
#!/bin/sh
for package in $INSTALLED; do printf 'installed:%s ' "$package"; done
END
cat >"$work/bin/apt-get" <<'END'
#!/bin/sh
[ "$1" = install ] && echo "$*" >>"$RECORD"
exit 0
END
# Knows packages only after `apt-get update`, as on a fresh system.
cat >"$work/bin/apt-cache" <<'END'
#!/bin/sh
case " $RELEASE " in *" $2 "*) echo " $2 | 1.0 | http://deb.debian.org" ;; esac
END
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work/bin"/*
# Makes a copy of the script that needs only one package, so that the test does not depend on the
# packages of this machine.
awk '/^ *\[build\]="/ { print "  [build]=\"one libboost1.81-dev,libboost1.83-dev|/nonexistent\""; skip = 1 }
  !skip { print }
  /"$/ { skip = 0 }' "$tree/scripts/install-packages.sh" >"$work/install.sh"
chmod +x "$work/install.sh"
run() {
  : >"$work/record"
  INSTALLED=$1 RELEASE=$2 RECORD=$work/record PATH=$work/bin:$PATH "$work/install.sh" build >"$work/log" 2>&1
}
bad() {
  echo "FAIL: $*"
  cat "$work/log" "$work/record"
  exit 1
}
run "" "one libboost1.81-dev" && grep -q ' one libboost1.81-dev$' "$work/record" || bad "Debian 12"
run "" "one libboost1.83-dev" && grep -q ' one libboost1.83-dev$' "$work/record" || bad "Debian 13"
run "" "one libboost1.83-dev libboost1.81-dev" && grep -q ' one libboost1.81-dev$' "$work/record" || bad "both"
run "one libboost1.83-dev" "" && [ ! -s "$work/record" ] || bad "all there, by the second name"
run "one libboost1.81-dev" "" && [ ! -s "$work/record" ] || bad "all there, by the first name"
if run "one" "libboost1.90-dev"; then bad "a release without any of the names"; fi
grep -q 'none of the packages libboost1.81-dev, libboost1.83-dev' "$work/log" || bad "no clear message"

echo "packages are found by the names of each release"
