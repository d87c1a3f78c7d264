#!/usr/bin/env bash
# distro.sh SUITE: runs the two commands of the README on a fresh Debian system (SUITE is bookworm
# or trixie).
#
# debootstrap creates a minimal system in a new directory. There, the script follows the README: it
# installs git and make, clones the last commit of this tree, runs `make run` until the endpoint
# responds, and runs `make test`. Packages come only from the release, and from npm for tests. The
# last line shows the time of both commands.
#
# Requires root. The system runs in private mount and PID namespaces, which are removed when the
# script exits. It uses the network, apt mirrors and apt settings of this machine. Environment
# variables:
#   DISTRO_DIR      parent directory of the system (default /var/tmp); needs about 6 GB
#   DISTRO_MIRROR   mirror (default: that of this machine, else http://deb.debian.org/debian)
#   DISTRO_CCACHE   compiler cache, for development only (the build is then not fresh)
#   DISTRO_KEEP=1   keep the directory
#   DISTRO_ONLY=run stop after `make run`
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
suite=${1:-}
log=$tree/build-distro/$suite.log

fail() {
  echo "distro.sh: $*" >&2
  exit 1
}

# The script runs itself with --enter, first in private namespaces and then as the first program of
# the new system.
if [ "${1:-}" = --enter ]; then
  root=$2
  mount --bind "$root" "$root"
  cd "$root"
  mount --rbind /dev dev
  mount -t tmpfs -o mode=1777 shm dev/shm
  mount --rbind /sys sys
  mount -t tmpfs -o mode=1777 tmp tmp
  mount -t proc proc proc
  [ -z "${DISTRO_CCACHE:-}" ] || mount --bind "$DISTRO_CCACHE" ccache
  mkdir -p old
  # chroot is not sufficient: a process in a chroot cannot create the user namespaces that sandboxes
  # need.
  pivot_root . old
  exec env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${DISTRO_CCACHE:+CCACHE_DIR=/ccache} ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    ${no_proxy:+no_proxy="$no_proxy"} DISTRO_ONLY="${DISTRO_ONLY:-}" NODE_EXTRA_CA_CERTS=/machine-ca.crt \
    /bin/bash -c 'umount -l /old && exec /bin/bash /trial.sh' </dev/null
fi

[[ $suite =~ ^[a-z]+$ ]] || { echo "usage: $0 SUITE (bookworm, trixie)" >&2; exit 2; }
[ "$(id -u)" = 0 ] || fail "only root can make a system: sudo $0 $suite"
git rev-parse --verify -q HEAD >/dev/null || fail "$tree is no clone of a repository: there is no commit to try"
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "distro.sh: uncommitted changes are not included" >&2
scripts/install-packages.sh distro
[ -e "/usr/share/debootstrap/scripts/$suite" ] || fail "debootstrap knows no suite $suite (bookworm, trixie)"

mirror=${DISTRO_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null |
  grep -E '^https?://.*/debian/?$' | head -1 || true)}
mirror=${mirror:-http://deb.debian.org/debian}
proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy 2>/dev/null | head -1)
mkdir -p "$tree/build-distro"
root=$(mktemp -d "${DISTRO_DIR:-/var/tmp}/bulkhead-$suite.XXXXXX")
finish() {
  if [ "${DISTRO_KEEP:-}" = 1 ]; then
    echo "distro.sh: the system is kept in $root" >&2
  else
    rm -rf --one-file-system "$root"
  fi
}
trap finish EXIT
chmod 755 "$root"
echo "== $suite: a fresh system from $mirror, log in $log"
http_proxy=${proxy:-${http_proxy:-}} debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$log" 2>&1 ||
  { tail -20 "$log" >&2; fail "debootstrap failed"; }
{
  echo "deb $mirror $suite main"
  echo "deb $mirror $suite-updates main"
  echo "deb ${mirror%/}-security $suite-security main"
} >"$root/etc/apt/sources.list"
# Copies the proxies, timeouts and checks of this machine, but not its package sources or
# credentials.
apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https|Retries|Check|ForceIPv)[^ ]* "' >"$root/etc/apt/apt.conf.d/90host" || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
# Copies the certificates that this machine trusts, for example that of a proxy, for npm.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/machine-ca.crt" 2>/dev/null || : >"$root/machine-ca.crt"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
git bundle create -q "$root/bulkhead.bundle" HEAD
mkdir -p "$root/ccache"

cat >"$root/trial.sh" <<'TRIAL'
# Runs in the new system as root, without a terminal.
set -euo pipefail
cd /root
port=8808  # the default port of make run
since=$SECONDS
# answers PORT: checks that the endpoint returns a result for `initialize`.
answers() {
  local body='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"distro","version":"1"}}}'
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
    "$1" "${#body}" "$body" >&3
  timeout 10 cat <&3 >/tmp/answer || true
  exec 3<&- 3>&-
  grep -q '^HTTP/1.1 200' /tmp/answer && grep -q '"serverInfo"' /tmp/answer
}
more=()
if (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; then
  port=18808  # another port, because a gateway of this machine may use the default port
  more=("LISTEN=127.0.0.1:$port")
fi

echo "@@ apt-get update && apt-get install -y git make && git clone"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq git make >/dev/null
git -c advice.detachedHead=false clone -q /bulkhead.bundle bulkhead
cd bulkhead
echo "@@ make run ${more[*]}"
setsid make run "${more[@]}" &
run=$!
until answers $port 2>/dev/null; do
  kill -0 $run 2>/dev/null || { echo "@@ make run ended without an answer"; exit 1; }
  sleep 1
done
echo "@@ TIME run $((SECONDS - since))"
kill -TERM -- -$run  # a background job ignores SIGINT
wait $run || true
[ "${DISTRO_ONLY:-}" != run ] || exit 0

since=$SECONDS
echo "@@ make test"
make test
echo "@@ TIME test $((SECONDS - since))"
TRIAL

status=0
export DISTRO_CCACHE=${DISTRO_CCACHE:-} DISTRO_ONLY=${DISTRO_ONLY:-}
unshare --mount --propagation private --pid --fork --kill-child --ipc --uts \
  "$tree/scripts/distro.sh" --enter "$root" >>"$log" 2>&1 || status=$?
if [ $status != 0 ]; then
  tail -60 "$log" >&2
  fail "$suite: $(grep -E '^@@ (make|apt-get)' "$log" | tail -1 | cut -c 4-) failed, exit code $status, see $log"
fi
if [ -n "$DISTRO_ONLY" ]; then
  echo "$suite: make run answered after $(sed -n 's/^@@ TIME run //p' "$log") s; make test was not run"
  exit
fi
seconds() { sed -n "s/^@@ TIME $1 //p" "$log"; }
summary=$(grep -E '^[0-9]+% tests passed' "$log" | tail -1 || true)
# Prints the tests that were skipped, and why.
grep -E '^SKIP |\(Skipped\)' "$log" | sort -u || true
echo "$suite: make run answered after $(seconds run) s, make test passed after $(seconds test) s (${summary:-not run})"
