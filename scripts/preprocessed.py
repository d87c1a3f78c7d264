#!/usr/bin/env python3
"""preprocessed.py COMPILE_COMMANDS FILE: what the compiler sees of a file, comments included."""
import json
import shlex
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as commands:
    entry = next(e for e in json.load(commands) if e["file"].endswith("/" + sys.argv[2]))
words = [w for w in shlex.split(entry["command"]) if not w.endswith("/ccache")]
for flag in ("-MT", "-MF", "-o"):
    if flag in words:
        at = words.index(flag)
        del words[at : at + 2]
words = [w for w in words if w not in ("-MD", "-c")]
sys.exit(subprocess.run(words + ["-E", "-CC"], cwd=entry["directory"], check=False).returncode)
