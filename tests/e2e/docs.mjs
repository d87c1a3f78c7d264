// Tests that all commands and options in the documents exist, that all profiles in the documents
// load, that their JSON is valid, and that the list of tests that run the commands is complete.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { begins, blocksOf, codeOf, files, shown } from './documents.mjs';
import { assert, root, run, runProgram, show, test } from './lib.mjs';


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

test('each profile in the documents and examples loads, and its rules are valid', async (t) => {
  const wrong = [];
  const examples = ['examples/profiles/guest.toml', 'examples/policy-plugin/gateway.toml'];
  const profiles = [...code.filter(({ lang }) => lang === 'toml'), ...examples.map((file) => ({ file, line: 1, text: readFileSync(join(root, file), 'utf8') }))];
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

test('each block of commands is run by a test, or has a reason why not', async () => {
  const blocks = files.flatMap(blocksOf);
  const fits = (entry, { file, commands }) => entry.file === file && begins(entry.first, commands[0]);
  const wrong = [];
  for (const one of blocks) {
    const entries = shown.filter((entry) => fits(entry, one));
    if (entries.length !== 1) wrong.push(`${one.file}:${one.line}: in ${entries.length} entries of documents.mjs: ${one.commands[0]}`);
    for (const first of entries.flatMap((entry) => Object.keys(entry.except ?? {}))) {
      if (!one.commands.some((command) => command.startsWith(first))) wrong.push(`${one.file}:${one.line}: has no command "${first}" (documents.mjs)`);
    }
  }
  for (const entry of shown) {
    const found = blocks.filter((one) => fits(entry, one)).length;
    if (found !== 1) wrong.push(`documents.mjs: ${found} blocks of ${entry.file} begin with ${entry.first}`);
    const tested = entry.test && `tests/e2e/${entry.test}.mjs`;
    const source = tested && existsSync(join(root, tested)) ? readFileSync(join(root, tested), 'utf8') : '';
    if (tested && !(entry.file.startsWith('sdk/') || source.includes(entry.first))) wrong.push(`documents.mjs: ${tested} does not run ${entry.file}, ${entry.first}`);
    if (tested && !source) wrong.push(`documents.mjs: there is no ${tested}`);
    if (!tested === !entry.not) wrong.push(`documents.mjs: ${entry.file}, ${entry.first}: needs a test or a reason`);
  }
  assert.deepEqual(wrong, []);
  assert.ok(blocks.length > 40, `only ${blocks.length} blocks were found`);
  const excepted = shown.reduce((n, { not, except }) => n + (not ? 1 : 0) + Object.keys(except ?? {}).length, 0);
  assert.ok(excepted <= 12, `${excepted} exceptions`);
});

await run();
