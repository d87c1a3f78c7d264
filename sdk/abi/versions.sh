# shellcheck shell=sh
# Functions for the scripts in this folder, which include this file.
#
# A golden file has the name VERSION.txt. VERSION is MAJOR.MINOR, or MAJOR.MINOR-rcN for a release
# candidate (BH_ABI_RC in core.h is N).

# abi_version DUMP: prints the version in an output of dump_slots.sh.
abi_version() {
  awk '$2 == "BH_ABI_MAJOR" { major = $3 + 0; found++ }
    $2 == "BH_ABI_MINOR" { minor = $3 + 0; found++ }
    $2 == "BH_ABI_RC" { rc = $3 + 0 }
    END {
      if (found != 2) exit 1
      print major "." minor (rc ? "-rc" rc : "")
    }' "$1" || { echo "core.h defines no BH_ABI_MAJOR and BH_ABI_MINOR" >&2; return 1; }
}

# abi_last_candidate GOLDEN_DIR MAJOR.MINOR: prints the number of the last release candidate that has
# a golden file, or 0.
abi_last_candidate() {
  abi_n=0
  while [ -f "$1/$2-rc$((abi_n + 1)).txt" ]; do abi_n=$((abi_n + 1)); done
  echo "$abi_n"
}

# abi_baselines GOLDEN_DIR VERSION: prints the versions with which VERSION must be compatible, one per
# line: all earlier minor versions of the same major version, and the last candidate of a released
# version. Fails if a golden file is missing.
abi_baselines() {
  abi_plain=${2%-rc*}
  abi_major=${abi_plain%.*}
  abi_minor=0
  [ "$abi_major" != 0 ] || abi_minor=1 # major version 0 begins with 0.1
  while [ "$abi_minor" -lt "${abi_plain#*.}" ]; do
    abi_one=$abi_major.$abi_minor
    if [ ! -f "$1/$abi_one.txt" ]; then
      abi_n=$(abi_last_candidate "$1" "$abi_one")
      abi_one=$abi_one-rc$abi_n
    fi
    if [ ! -f "$1/$abi_one.txt" ]; then
      echo "$1/${abi_one%-rc0}.txt is missing: the ABI cannot be compared with this version" >&2
      return 1
    fi
    echo "$abi_one"
    abi_minor=$((abi_minor + 1))
  done
  if [ "$abi_plain" = "$2" ]; then
    abi_n=$(abi_last_candidate "$1" "$2")
    [ "$abi_n" = 0 ] || echo "$2-rc$abi_n"
  fi
}

# abi_candidate_pairs GOLDEN_DIR VERSION: prints each release candidate with its successor, as
# "1.0-rc1 1.0-rc2", up to VERSION. Fails if a golden file is missing.
abi_candidate_pairs() {
  case $2 in *-rc*) abi_n=${2##*-rc} ;; *) abi_n=$(abi_last_candidate "$1" "$2") ;; esac
  abi_k=1
  while [ "$abi_k" -lt "$abi_n" ]; do
    abi_one=${2%-rc*}-rc$abi_k
    if [ ! -f "$1/$abi_one.txt" ]; then
      echo "$1/$abi_one.txt is missing: the ABI cannot be compared with this candidate" >&2
      return 1
    fi
    abi_k=$((abi_k + 1))
    echo "$abi_one ${2%-rc*}-rc$abi_k"
  done
}
