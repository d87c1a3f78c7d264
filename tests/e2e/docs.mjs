// Tests that all commands and options in the documents exist, that all profiles in the documents
// load, and that their JSON is valid.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, root, run, runProgram, show, test } from './lib.mjs';

const files = [
  'README.md', 'HACKING.md', 'SECURITY.md', 'tests/README.md', 'examples/policy-plugin/README.md',
  ...readdirSync(join(root, 'sdk/template')).map((name) => `sdk/template/${name}/README.md`),
  ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
];

// Returns the code in a document as {file, line, lang, text}. `lang` is "" for inline code.
function codeOf(file) {
  const out = [];
  let block = null;
  readFileSync(join(root, file), 'utf8').split('\n').forEach((text, i) => {
    const fence = /^```(\w*)\s*$/.exec(text);
    if (fence && block) {
      out.push(block);
      block = null;
    } else if (fence) {
      block = { file, line: i + 2, lang: fence[1], text: '' };
    } else if (block) {
      block.text += `${text}\n`;
    } else if (/^ {4}\S/.test(text)) {
      out.push({ file, line: i + 1, lang: 'sh', text: text.trim() });
    } else {
      for (const [, code] of text.matchAll(/`([^`]+)`/g)) out.push({ file, line: i + 1, lang: '', text: code });
    }
  });
  return out;
}
const code = files.flatMap(codeOf);

// Returns the program's commands and their options from its completion script, as "mcp add" -> Set.
function commandsOf(t) {
  const done = runProgram(t, ['completion', 'bash']);
  assert.equal(done.code, 0, show(done));
  const found = [...done.stdout.matchAll(/^ {4}'([a-z ]*)'\) words='([^']*)'/gm)];
  return new Map(found.map(([, path, words]) => [path, new Set(words.split(' '))]));
}

test('each command and option in the documents exists', async (t) => {
  const commands = commandsOf(t);
  const wrong = [];
  let checked = 0;
  for (const { file, line, lang, text } of code) {
    if (!['', 'sh', 'json'].includes(lang)) continue;
    for (const [, rest] of text.replace(/\\\n/g, ' ').matchAll(/(?:^|[\s|;&(`"]|bin\/)bulkhead (?!https?:)((?:[a-z-]|<)[^\n|;&`)]*)/g)) {
      const words = rest.trim().split(/\s+/);
      let path = '';
      while (words.length && commands.has(path ? `${path} ${words[0]}` : words[0])) path = path ? `${path} ${words.shift()}` : words.shift();
      const own = words.indexOf('--');
      const options = (own < 0 ? words : words.slice(0, own)).map((word) => /^\[?(--[a-z-]+)/.exec(word)?.[1]).filter(Boolean);
      ++checked;
      const has = commands.get(path);
      const problem = path === '' && !words[0].startsWith('-') ? `no command "${words[0]}"` : options.find((option) => !has.has(option) && option !== '--help');
      if (problem) wrong.push(`${file}:${line}: bulkhead ${rest}: ${problem}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(checked > 100, `only ${checked} commands were found`);
});

test('each profile in the documents loads, and its rules are valid', async (t) => {
  const wrong = [];
  const profiles = code.filter(({ lang }) => lang === 'toml');
  profiles.forEach(({ file, line, text }, i) => {
    const name = t.path(`${i}.toml`);
    writeFileSync(name, text, { mode: 0o644 });
    if (/^abi_major/m.test(text)) return; // a plugin's manifest
    const env = file === 'docs/corp.md' ? { BULKHEAD_CORP_PROFILE: name } : {};
    const checks = [['profile', 'show']];
    if (/^\[security|^\[policy|allowed_tools/m.test(text)) checks.push(['policy', 'check']);
    for (const command of checks) {
      const done = runProgram(t, [...command, ...(env.BULKHEAD_CORP_PROFILE ? [] : ['--config', name])], { env });
      if (done.code !== 0) wrong.push(`${file}:${line}: ${command.join(' ')}: ${done.stderr.replaceAll(name, 'profile')}${command[0] === 'policy' ? done.stdout : ''}`);
    }
  });
  assert.deepEqual(wrong, []);
  assert.ok(profiles.length > 15, `only ${profiles.length} profiles were found`);
});

test('each JSON block in the documents is valid JSON', async () => {
  const wrong = [];
  // A line that begins with an object, without a comment after it.
  const blocks = code.filter(({ lang, text }) => lang === 'json' || (lang === 'sh' && /^\{ .*\}$/.test(text)));
  for (const { file, line, text } of blocks) {
    try {
      JSON.parse(text);
    } catch (error) {
      wrong.push(`${file}:${line}: ${error.message}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(blocks.length > 5, `only ${blocks.length} blocks were found`);
});

await run();
