#!/usr/bin/env bash
# install-packages.sh SET...: installs the Debian packages that this tree needs. Packages are listed
# only in this file. If all packages are installed, it runs only dpkg-query.
#
# In an entry "a|b", b is a command or file that replaces package a if it exists. In an entry "a,b",
# the package has different names in Debian 12, Debian 13 and Ubuntu 24.04, and the first available
# name is used.
set -euo pipefail

declare -A sets=(
  [build]="g++ make cmake ninja-build ccache|ccache ca-certificates pkg-config|pkg-config python3|python3
           libboost1.81-dev,libboost1.83-dev|/usr/include/boost/dll/shared_library.hpp rapidjson-dev
           libcurl4-openssl-dev|curl-config libssl-dev
           libsqlite3-dev libtomlplusplus-dev libcli11-dev libsimdjson-dev libsodium-dev libgumbo-dev libidn2-dev libre2-dev catch2"
  [test]="npm|npm curl|curl procps|pgrep rustc|rustc minisign b3sum jq xfsprogs btrfs-progs
        abigail-tools|abidiff clang|clang++"
  [guest]="qemu-system-x86 busybox-static cpio xz-utils|xz"
  [lint]="clang-format-19 shellcheck"
  [distro]="debootstrap"
  [full]="clang-19 lld-19 llvm-19 libclang-rt-19-dev clang-tidy-19 clang-format-19 valgrind"
  [bench]="npm|npm nginx-light|nginx haproxy|haproxy socat|socat"
)

[ $# -gt 0 ] || { echo "usage: $0 ${!sets[*]}" >&2; exit 2; }
wanted=()
for set in "$@"; do
  [ -n "${sets[$set]:-}" ] || { echo "$0: no set named $set (there are: ${!sets[*]})" >&2; exit 2; }
  # shellcheck disable=SC2206  # the lists are split into words on purpose
  wanted+=(${sets[$set]})
done

if ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system; install: ${wanted[*]%%|*}" >&2
  exit 0
fi

names=()
for entry in "${wanted[@]}"; do
  IFS=, read -ra names_of_entry <<<"${entry%%|*}"
  names+=("${names_of_entry[@]}")
done
installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "${names[@]}" 2>/dev/null || true)"
missing=()
for entry in "${wanted[@]}"; do
  packages=${entry%%|*}
  instead=${entry#*|}
  IFS=, read -ra names_of_entry <<<"$packages"
  for package in "${names_of_entry[@]}"; do
    case "$installed" in *" installed:$package "*) continue 2 ;; esac
  done
  if [ "$instead" != "$entry" ]; then
    case "$instead" in
      /*) [ -e "$instead" ] && continue ;;
      *) command -v "$instead" >/dev/null && continue ;;
    esac
  fi
  missing+=("$packages")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing, and installing them requires root or sudo:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    echo "(for names joined by a comma: the one that this release has)" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq </dev/null

# On a fresh machine, apt knows no packages before the first apt-get update.
chosen=()
for packages in "${missing[@]}"; do
  IFS=, read -ra names_of_entry <<<"$packages"
  for package in "${names_of_entry[@]}"; do
    [ "${#names_of_entry[@]}" -gt 1 ] || break
    [ -z "$(apt-cache madison "$package" 2>/dev/null)" ] || break
    package=
  done
  if [ -z "$package" ]; then
    # shellcheck disable=SC1091
    release=$(. /etc/os-release && echo "${PRETTY_NAME:-unknown}")
    echo "This system ($release) has none of the packages ${packages//,/, }. Bulkhead is built on Debian 12," >&2
    echo "Debian 13 and Ubuntu 24.04; on other systems install one of them manually." >&2
    exit 1
  fi
  chosen+=("$package")
done
echo "Installing: ${chosen[*]}" >&2
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${chosen[@]}" </dev/null >/dev/null
