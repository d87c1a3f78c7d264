#!/usr/bin/env python3
"""reference.py SDK_DIR RULES_MD OUT_DIR: writes the reference of the plugin ABI.

One Markdown page for each header, type and function of sdk/include/bulkhead/abi, made from the
comments there, from the rules of `bulkhead plugin check`, and from the C templates, whose functions
are the examples. Fails, and writes nothing, if a function has no comment or no thread tag, or if a
comment names an error code that core.h does not define.
"""
import re
import sys
from pathlib import Path

THREADS = {
    "control": "Calls are serialized for each plugin instance. May take milliseconds, and must not wait for the network.",
    "io": "The reactor thread of the compartment. Must not block.",
    "blocking": "A thread of the host's pool. May block.",
    "any": "Any thread, concurrently.",
    "no-host": "Only `log`, `log_enabled` and `get_ext` of `bh_host` may be called inside this function.",
}
TAG = re.compile(r"\[(control|io|blocking|any|no-host)\]")
# The functions of these structs are passed by value and have no tag: their struct states the thread.
BY_VALUE = {"bh_buf"}
problems = []


def clean(comment):
    """Returns the text of a comment without its delimiters and stars, in paragraphs."""
    text = re.sub(r"^/\*|\*/$", "", comment.strip())
    lines = [re.sub(r"^\s*\* ?", "", line) for line in text.split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip().strip("-").strip()


def markdown(text):
    """Escapes what Markdown would interpret, outside of code spans."""
    parts = text.split("`")
    parts[::2] = [p.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") for p in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def without_tags(text):
    """Returns the text of a comment without the thread tags at its end."""
    return re.sub(r"(\s*" + TAG.pattern + r")+$", "", text.strip())


class Item:
    """A declaration with its comment: a member, a constant, a macro or a typedef."""

    def __init__(self, text, comment):
        self.text = " ".join(text.split())
        self.comment = comment
        function = re.search(r"\(\*(\w+)\)", self.text)
        self.is_function = bool(function)
        if function:
            self.name = function.group(1)
        else:
            self.name = re.search(r"(\w+)\s*(\[[^]]*\])?(\s*=.*)?$", self.text).group(1)


def items_of(body, separator):
    """Splits the body of a struct or enum into declarations with their comments."""
    out, before, text, i = [], "", "", 0
    while i < len(body):
        if body.startswith("/*", i):
            end = body.index("*/", i) + 2
            comment = clean(body[i:end])
            on_line = body[: i].rpartition("\n")[2].strip()
            if not text.strip() and out and on_line:  # a comment after a declaration
                out[-1].comment = (out[-1].comment + "\n" + comment).strip()
            elif text.strip():  # between the last declaration and its end
                before = (before + "\n" + comment).strip()
            else:
                before = comment
            i = end
        elif body[i] == separator:
            out.append(Item(text, before))
            before, text, i = "", "", i + 1
        else:
            text += body[i]
            i += 1
    if text.strip():
        out.append(Item(text, before))
    return out


class Struct:
    def __init__(self, name, comment, members):
        self.name, self.comment, self.members = name, comment, members
        self.has_size = bool(members) and members[0].text == "uint32_t size"


class Header:
    def __init__(self, path, name):
        self.name = name
        code = path.read_text(encoding="utf-8")
        end = code.index("*/") + 2
        self.comment = clean(code[:end])
        state = re.search(r"Since (\d+\.\d+)\. (Stable|Draft)", self.comment)
        self.since = state.group(1) if state else "0.1"
        draft = state.group(2) == "Draft" if state else name.startswith("ext/draft/")
        self.state = "draft" if draft else "stable"
        self.ids, self.structs, self.enums, self.typedefs = {}, [], [], []
        self.parse(code[end:])

    def parse(self, code):
        comment, i = "", 0
        token = re.compile(
            r"/\*.*?\*/|#[^\n\\]*(?:\\\n[^\n\\]*)*|typedef struct (\w+) \{(.*?)\n\} \w+;|enum \{(.*?)\};"
            r"|typedef [^{;]*;|extern \"C\" \{|\}", re.S)
        while match := token.search(code, i):
            text, i = match.group(0), match.end()
            if text.startswith("/*"):
                comment = clean(text)
            elif text.startswith("#"):
                found = re.match(r"# *define (BH_EXT_\w+)\s+\"(.*)\"", text)
                if found:
                    self.ids[found.group(1)] = found.group(2)
            elif match.group(1):
                self.structs.append(Struct(match.group(1), comment, items_of(match.group(2), ";")))
                comment = ""
            elif match.group(3):
                self.enums.append((comment, items_of(match.group(3), ",")))
                comment = ""
            elif text.startswith("typedef"):
                after = re.match(r" */\*.*?\*/", code[i:], re.S)
                if after:
                    i += after.end()
                    self.typedefs.append(Item(text[:-1], clean(after.group(0))))
                else:
                    self.typedefs.append(Item(text[:-1], comment))
                    comment = ""

    def id_of(self, struct):
        return self.ids.get("BH_EXT_" + struct.name[3:].upper(), "")


def since(text, header):
    """Returns the version in which something was added: its own, or that of its header."""
    found = re.search(r"[Ss]ince (?:minor (\d+)|(\d+\.\d+))", text)
    if not found:
        return header.since
    return found.group(2) or header.since.split(".")[0] + "." + found.group(1)


def status_codes(core):
    """Returns the meaning of each status code."""
    for _, constants in core.enums:
        if constants[0].name == "BH_OK":
            return {one.name: " ".join(one.comment.split()) for one in constants}
    return {}


def argument_rule(text, moved):
    """Returns what the general rules of core.h state about an argument of this type."""
    name = re.search(r"(\w+)$", text)
    if not name or text == "void":
        return None
    name = name.group(1)
    kind = text[: -len(name)].strip()
    if kind == "void *" and name in ("self", "ctx", "user"):
        return name, {"self": "`bh_plugin.self`", "ctx": "`bh_host.ctx`", "user": "the caller's pointer"}[name]
    if kind == "bh_error *":
        return name, "the caller's buffer; may be null"
    if kind == "bh_buf *":
        return name, "set by the function; the caller then owns the bytes and releases them once"
    if kind.removeprefix("const ").removesuffix(" *") in moved:
        return name, "borrowed until the function returns; the bytes of its `bh_buf` change their owner"
    if kind in ("bh_str", "const bh_str *") or kind.startswith("const "):
        return name, "borrowed until the function returns"
    if kind.endswith("*"):
        return name, "set by the function, in the caller's memory" if kind != "void *" else "passed through unchanged"
    return name, "by value"


def arguments_of(text):
    """Splits the parameter list of a function pointer."""
    inner, depth, parts, part = text[text.index(")(") + 2 : -1], 0, [], ""
    for c in inner:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    parts.append(part.strip())
    return parts


def rules_by_slot(path):
    """Returns the rules of `plugin check` for each slot that they name as their source."""
    out = {}
    for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        rule = re.match(r"(BH\d+): (.*)", section)
        stated = re.search(r"\*\*Stated in:\*\*(.*?)(?:\n\n|$)", section, re.S)
        if not rule or not stated:
            continue
        struct = ""
        for name in re.findall(r"`(\w+(?:\.\w+)?)`", stated.group(1)):
            if "." in name and not name.endswith(".h"):
                struct = name.split(".")[0]
            elif struct and not name.startswith(("bh_", "BH_")):
                name = f"{struct}.{name}"
            out.setdefault(name, []).append((rule.group(1), rule.group(2)))
    return out


def examples_of(folder):
    """Returns the functions of the C templates as (file, name, text)."""
    out = []
    for path in sorted(folder.glob("*-c/*_c.c")):
        code = path.read_text(encoding="utf-8")
        for found in re.finditer(r"^(?:/\*(?:(?!\*/).)*\*/\n)?[a-z][\w ]*[ *](\w+)\([^;{}]*\) \{\n.*?^\}\n", code, re.S | re.M):
            out.append((f"template/{path.parent.name}/{path.name}", found.group(1), found.group(0)))
    return out


def example_for(struct, slot, examples):
    kinds = {"bh_tools": "tools-c", "bh_policy": "policy-c", "bh_telemetry": "telemetry-c",
             "bh_connector": "connector-c", "bh_transport": "transport-c",
             "bh_plugin": "tools-c", "bh_entry": "tools-c"}
    for file, name, text in examples:
        if name == slot and f"/{kinds.get(struct.name)}/" in file:
            return file, text
    if struct.name.startswith("bh_host"):
        for file, _, text in examples:
            if re.search(rf"->{slot}\(", text):
                return file, text
    return None


def page_name(header):
    return header.name[: -len(".h")].replace("/", "-") + ".md"


def function_page(header, struct, slot, context):
    codes, rules, examples, moved = context
    label = f"{struct.name}.{slot.name}"
    tags = TAG.findall(slot.comment)
    if not slot.comment:
        problems.append(f"{header.name}: {label} has no comment")
    elif not tags:
        problems.append(f"{header.name}: {label} has no thread tag, such as [io]")
    text = without_tags(slot.comment)
    side = "the host" if struct.name.startswith("bh_host") else "the plugin"
    out = [f"# {label}", "", "| | |", "| --- | --- |"]
    out.append(f"| header | [`{header.name}`]({page_name(header)}) |")
    out.append(f"| struct | [`{struct.name}`]({struct.name}.md) |")
    if header.id_of(struct):
        out.append(f"| extension | `{header.id_of(struct)}` |")
    out.append(f"| implemented by | {side} |")
    out.append(f"| since, state | {since(slot.comment, header)}, {header.state} |")
    for tag in dict.fromkeys(tags):
        out.append(f"| thread and blocking | `[{tag}]` {THREADS[tag]} |")
    out += ["", "```c", slot.text + ";", "```", "", markdown(text), "", "## Arguments", ""]
    out += ["The description above has precedence.", "", "| argument | ownership |", "| --- | --- |"]
    for argument in arguments_of(slot.text):
        rule = argument_rule(argument, moved)
        if rule:
            out.append(f"| `{rule[0]}` | {rule[1]} |")
        elif argument != "void":
            out.append(f"| `{argument}` | called as the description states |")
    if slot.text.startswith("bh_status"):
        named = list(dict.fromkeys(re.findall(r"\bBH_(?:E_\w+|OK|PENDING|STALE|WOULD_BLOCK)\b", slot.comment)))
        out += ["", "## Status codes", ""]
        out.append("Codes that the description names; other errors are possible. `core.h` defines what the caller does:")
        out += ["", "| code | caller |", "| --- | --- |"]
        for code in named or ["BH_OK"]:
            if code not in codes:
                problems.append(f"{header.name}: {label} names {code}, which core.h does not define")
                continue
            out.append(f"| `{code}` | {markdown(codes[code])} |")
    sentences = re.split(r"(?<=[.])\s+", " ".join(text.split()))
    cancel = [markdown(s) for s in sentences if re.search(r"cancel|stop\(\)|abandon", s, re.I)]
    if any(a.startswith("bh_call ") for a in arguments_of(slot.text)) and slot.name != "call_cancel":
        cancel.append("The host cancels a call with [`bh_tools.call_cancel`](bh_tools.call_cancel.md).")
    if cancel:
        out += ["", "## Cancellation", "", " ".join(cancel)]
    if rules.get(label):
        out += ["", "## Rules of `bulkhead plugin check`", ""]
        out += [f"* [{rule}](../plugin-rules.md): {markdown(title)}" for rule, title in rules[label]]
    example = example_for(struct, slot.name, examples)
    if example:
        out += ["", "## Example", "", f"From `{example[0]}`, which is compiled and tested with the SDK:", "", "```c", example[1].rstrip(), "```"]
    return "\n".join(out) + "\n"


def type_page(header, struct, rules):
    out = [f"# {struct.name}", "", "| | |", "| --- | --- |"]
    out.append(f"| header | [`{header.name}`]({page_name(header)}) |")
    if header.id_of(struct):
        out.append(f"| extension | `{header.id_of(struct)}` |")
    out.append(f"| since, state | {since(struct.comment, header)}, {header.state} |")
    grows = "yes, it begins with its size: check later members with `BH_HAS`" if struct.has_size else "no"
    out.append(f"| may grow in a minor version | {grows} |")
    if struct.comment:
        out += ["", markdown(struct.comment)]
    out += ["", "| member | description |", "| --- | --- |"]
    for member in struct.members:
        link = f"[`{member.name}`]({struct.name}.{member.name}.md)" if member.is_function and struct.name not in BY_VALUE else f"`{member.text}`"
        text = member.comment.split(". ")[0].split(".\n")[0] if member.is_function else member.comment
        out.append(f"| {link} | {markdown(' '.join(without_tags(text).split()))} |")
    if rules.get(struct.name):
        out += ["", "## Rules of `bulkhead plugin check`", ""]
        out += [f"* [{rule}](../plugin-rules.md): {markdown(title)}" for rule, title in rules[struct.name]]
    return "\n".join(out) + "\n"


def header_page(header):
    out = [f"# {header.name}", "", f"Since {header.since}. State: {header.state}.", "", markdown(header.comment), ""]
    for name, value in header.ids.items():
        out.append(f"* `{name}`: `{value}`")
    out += ["", "## Types", ""]
    for struct in header.structs:
        out.append(f"* [`{struct.name}`]({struct.name}.md)")
    for one in header.typedefs:
        out.append(f"* `{one.text}`: {markdown(' '.join(one.comment.split()))}")
    for comment, constants in header.enums:
        out += ["", "## " + ", ".join(c.name for c in constants[:2]) + (" ..." if len(constants) > 2 else ""), ""]
        if comment:
            out += [markdown(comment), ""]
        out += ["| constant | description |", "| --- | --- |"]
        out += [f"| `{c.text}` | {markdown(' '.join(c.comment.split()))} |" for c in constants]
    return "\n".join(out) + "\n"


def main(sdk, rules_file, out_dir):
    root = Path(sdk) / "include/bulkhead/abi"
    headers = [Header(p, str(p.relative_to(root))) for p in sorted(root.rglob("*.h"))]
    codes = status_codes(next(h for h in headers if h.name == "core.h"))
    rules = rules_by_slot(Path(rules_file))
    moved = {s.name for h in headers for s in h.structs for m in s.members if m.text.startswith("bh_buf ")}
    context = (codes, rules, examples_of(Path(sdk) / "template"), moved)
    pages, index = {}, ["# Reference of the plugin ABI", "", "Generated from the headers in `bulkhead/abi`."]
    for header in headers:
        pages[page_name(header)] = header_page(header)
        index += ["", f"## [{header.name}]({page_name(header)})", ""]
        for struct in header.structs:
            pages[f"{struct.name}.md"] = type_page(header, struct, rules)
            functions = [m for m in struct.members if m.is_function and struct.name not in BY_VALUE]
            for slot in functions:
                pages[f"{struct.name}.{slot.name}.md"] = function_page(header, struct, slot, context)
            links = ", ".join(f"[{s.name}]({struct.name}.{s.name}.md)" for s in functions)
            index.append(f"* [{struct.name}]({struct.name}.md)" + (f": {links}" if links else ""))
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    pages["index.md"] = "\n".join(index) + "\n"
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(pages)} pages in {folder}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
