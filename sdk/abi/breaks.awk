# breaks.awk OLD NEW: compares two outputs of dump_slots.sh. Prints one line for each slot of OLD that
# NEW does not keep: FILE:SLOT, a tab, and what has changed. Without output, NEW is compatible: a
# program that was compiled with OLD can use the structs of NEW.
#
# A slot of a draft is kept too. check_slots.sh decides which breaks of drafts are permitted.
#
# A slot is a member ("bh_tools.list"), a constant, a macro or a typedef. Structs that begin with
# their size may have additional members at the end. A member named `reserved` may get another name.
function trim(s) { sub(/^ +/, "", s); sub(/ +$/, "", s); return s }
# The name that a declaration declares.
function name_of(s) {
  if (match(s, /\(\*[A-Za-z_0-9]+\)/)) return substr(s, RSTART + 2, RLENGTH - 3)
  sub(/;$/, "", s)
  sub(/ *\[[^]]*\]$/, "", s)
  match(s, /[A-Za-z_0-9]+$/)
  return substr(s, RSTART, RLENGTH)
}
# A declaration with another name in place of its own.
function renamed(s, name) {
  sub(name_of(s), name, s)
  return s
}
# Records a slot that is compared by its text.
function fixed(name, text) {
  text_of[side, file, name] = text
  if (side == 1) order[++slots] = file SUBSEP name
}
function report(slot, what) { print slot "\t" what }

FNR == 1 { side++ }
/^file / {
  file = $2
  block = ""
  if (side == 1) old_files[file] = 1
  state[side, file] = file ~ /^ext\/draft\// ? "draft" : "stable"
  next
}
/^state / { state[side, file] = $2; next }
/^struct / {
  block = $2
  if (side == 1) order[++slots] = file SUBSEP "struct " block
  count[side, file, block] = 0
  next
}
/^enum$/ { block = "enum"; next }
/^  / {
  line = trim($0)
  if (block == "enum") {
    split(line, part, " ")
    fixed(part[1], line)
  } else {
    n = ++count[side, file, block]
    member[side, file, block, n] = line
    place[side, file, block, name_of(line)] = n
  }
  next
}
/^#define / {
  block = ""
  if ($2 != "BH_ABI_MINOR" && $2 != "BH_ABI_RC") fixed($2, $0)
  next
}
/^typedef / { block = ""; fixed(name_of($0), $0) }

function compare_struct(file, name,    n, i, was, is, id, at, label) {
  label = file ":" name
  if (!((2, file, name) in count)) { report(label, "was removed"); return }
  n = count[1, file, name]
  if (member[1, file, name, 1] != "uint32_t size" && count[2, file, name] > n) {
    report(label, "has grown, but does not begin with its size")
  }
  for (i = 1; i <= n; i++) {
    was = member[1, file, name, i]
    is = member[2, file, name, i]
    if (was == is) continue
    id = name_of(was)
    if (id ~ /^reserved/ && is != "" && renamed(is, id) == was) continue
    if (!((2, file, name, id) in place)) { report(label "." id, "was removed"); continue }
    at = place[2, file, name, id]
    if (at != i) report(label "." id, "has moved")
    else report(label "." id, "was \"" was "\", and is \"" is "\"")
  }
}
END {
  for (file in old_files) {
    if (state[1, file] == "stable" && state[2, file] == "draft") report(file ":state", "was stable, and is a draft")
  }
  for (i = 1; i <= slots; i++) {
    split(order[i], part, SUBSEP)
    if (part[2] ~ /^struct /) {
      compare_struct(part[1], substr(part[2], 8))
      continue
    }
    was = text_of[1, part[1], part[2]]
    is = text_of[2, part[1], part[2]]
    if (was == is) continue
    if (is == "") report(part[1] ":" part[2], "was removed")
    else report(part[1] ":" part[2], "was \"" was "\", and is \"" is "\"")
  }
}
