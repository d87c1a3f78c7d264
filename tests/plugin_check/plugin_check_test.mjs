// Tests `bulkhead plugin check`: each rule of docs/plugin-rules.md with plugins that violate only
// this rule (see plugins/), its output formats and exit codes, and hostile plugins.
import { execFile } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, program, root, run, show, test } from '../e2e/lib.mjs';
import { patience, processesWith } from '../e2e/gateway.mjs';

const folder = join(build, 'tests/broken_plugins');
const kinds = ['tools', 'policy', 'telemetry', 'connector', 'transport'];
const definition = '{"target":"test"}';
const headings = [...readFileSync(join(root, 'docs/plugin-rules.md'), 'utf8').matchAll(/^## (BH\d{3}): (.*)$/gm)];
const documented = new Map(headings.map(([, rule, title]) => [rule, title]));

// The plugins broken-KIND-NUMBER. A NUMBER with four digits is a rule and a digit.
const fixtures = readFileSync(join(folder, 'list.txt'), 'utf8').trim().split('\n').map((name) => {
  const [, kind, number] = /^broken-([a-z]+)-(\d+)$/.exec(name);
  return { name, kind, number: Number(number), rule: `BH${number.slice(0, 3)}` };
});
const correct = [...kinds.map((kind) => `broken-${kind}-0`), 'broken-tools-5', 'broken-transport-1'];
const breaking = fixtures.filter(({ number }) => number > 100);

// Copies a plugin to a folder of the test, and returns the path of the library.
function install(t, name, to = 'plugins') {
  const dir = t.path(to);
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o755);
  for (const file of [`${name}.so`, `${name}.plugin.toml`]) {
    copyFileSync(join(folder, file), join(dir, file));
    chmodSync(join(dir, file), 0o644);
  }
  return join(dir, `${name}.so`);
}

// Runs the check. Verifies that it leaves neither files nor processes.
async function check(t, path, args = [], env = {}) {
  const temporary = t.path('tmp');
  mkdirSync(temporary, { recursive: true });
  const done = await new Promise((resolve) => {
    execFile(program, ['plugin', 'check', path, ...args], {
      env: { PATH: process.env.PATH, HOME: t.dir, TMPDIR: temporary, ...env }, timeout: 80_000 * patience, killSignal: 'SIGKILL', encoding: 'utf8',
    }, (error, stdout, stderr) => resolve({ code: error ? error.code ?? error.signal : 0, stdout, stderr }));
  });
  assert.deepEqual(readdirSync(temporary), [], 'the temporary folder remains');
  assert.deepEqual(processesWith(t.dir), [], 'a process remains');
  return done;
}
async function report(t, path, args = []) {
  const done = await check(t, path, ['--json', ...args]);
  assert.equal(done.stderr, '', show(done));
  return { code: done.code, ...JSON.parse(done.stdout) };
}

// Verifies that exactly this rule was violated.
function assertViolates(result, rule) {
  const found = result.violations.map((one) => `${one.rule}: ${one.found.join('; ')}`);
  assert.deepEqual(result.violations.map((one) => one.rule), [rule], found.join('\n'));
  assert.equal(result.code, 1);
  assert.equal(result.ok, false);
  assert.ok(result.checked.includes(rule), show(result.checked));
  const [violation] = result.violations;
  assert.equal(violation.title, documented.get(rule), `the title of ${rule} in docs/plugin-rules.md`);
  assert.ok(violation.found.length > 0 && violation.found.every((what) => what !== '') && violation.fix !== '', show(violation));
}

const checkedBy = new Map(); // plugin -> rules
for (const name of correct) {
  test(`${name} satisfies all rules`, async (t) => {
    const result = await report(t, install(t, name), ['--definition', definition]);
    assert.deepEqual(result.violations, []);
    assert.deepEqual([result.code, result.ok, result.complete, result.not_checked], [0, true, true, []]);
    assert.deepEqual([result.id, result.version], [name, '1.2.3']);
    checkedBy.set(name, result.checked);
  });
}

for (const { name, rule } of breaking) {
  test(`${name} violates ${rule}`, async (t) => {
    assertViolates(await report(t, install(t, name), ['--definition', definition]), rule);
  });
}

// Files that violate a rule: [rule, name, function that changes the files].
const name = 'broken-tools-0';
const manifest = (path) => path.replace(/so$/, 'plugin.toml');
const edit = (path, from, to) => writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
const changed = [
  ['BH101', 'writable library', (path) => chmodSync(path, 0o664)],
  ['BH101', 'writable manifest', (path) => chmodSync(manifest(path), 0o646)],
  ['BH101', 'writable folder', (path) => chmodSync(join(path, '..'), 0o777)],
  ['BH102', 'truncated library', (path) => truncateSync(path, 9000)],
  ['BH102', 'text', (path) => writeFileSync(path, 'no library\n')],
  ['BH102', 'library for another machine', (path) => {
    const bytes = readFileSync(path);
    bytes.writeUInt16LE(0xf3, 18); // e_machine = EM_RISCV
    writeFileSync(path, bytes);
  }],
  ['BH103', 'invalid manifest', (path) => writeFileSync(manifest(path), 'id = [\n')],
  ['BH103', 'manifest with another id', (path) => edit(manifest(path), name, 'another-id')],
  ['BH103', 'manifest of a later ABI', (path) => edit(manifest(path), 'abi_minor_needed = 0', 'abi_minor_needed = 99')],
  ['BH103', 'manifest without provides', (path) => edit(manifest(path), /provides.*/, '')],
];
for (const [rule, what, change] of changed) {
  test(`a ${what} violates ${rule}`, async (t) => {
    const path = install(t, name);
    change(path);
    const result = await report(t, path);
    assertViolates(result, rule);
    assert.equal(result.complete, false);
  });
}
test('a symbolic link violates BH101', async (t) => {
  const path = install(t, name);
  mkdirSync(t.path('links'));
  for (const file of [path, manifest(path)]) symlinkSync(file, join(t.path('links'), file.split('/').at(-1)));
  assertViolates(await report(t, join(t.path('links'), `${name}.so`)), 'BH101');
});

test('each rule is documented, and has a plugin that violates it', async (t) => {
  for (const one of correct) {
    if (!checkedBy.has(one)) checkedBy.set(one, (await report(t, install(t, one), ['--definition', definition])).checked);
  }
  const rules = [...new Set([...checkedBy.values()].flat())].sort();
  assert.deepEqual([...documented.keys()], rules, 'the headings of docs/plugin-rules.md');
  const violated = new Set([...breaking.map(({ rule }) => rule), ...changed.map(([rule]) => rule)]);
  assert.deepEqual([...violated].sort(), rules, 'the rules that a plugin violates');
});

// Throws an error if the text is not well-formed XML of the kind that has only elements. Returns
// the elements as {name, attributes, text}.
function parseXml(xml) {
  const stack = [];
  const elements = [];
  const plain = (text) => {
    assert.doesNotMatch(text.replace(/&(lt|gt|amp|quot);/g, ''), /[<>&]/, text);
    return text.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&amp;/g, '&');
  };
  assert.match(xml, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n</);
  for (let rest = xml.slice(xml.indexOf('?>') + 2); rest !== '';) {
    const [tag, text, close, open, attributes, end] = /^([^<]*)(?:<\/([a-z]+)>|<([a-z]+)((?: [a-z]+="[^"<]*")*)(\/?)>|$)/.exec(rest) ?? assert.fail(`no XML: ${rest.slice(0, 80)}`);
    rest = rest.slice(tag.length);
    if (text.trim() !== '') {
      assert.ok(stack.length > 0, `text outside of the elements: ${text}`);
      stack.at(-1).text += plain(text);
    }
    if (close) assert.equal(stack.pop()?.name, close);
    if (!open) continue;
    assert.ok(stack.length > 0 || elements.length === 0, 'two roots');
    const element = { name: open, text: '', attributes: Object.fromEntries([...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)].map(([, key, value]) => [key, plain(value)])) };
    elements.push(element);
    if (!end) stack.push(element);
  }
  assert.deepEqual(stack, []);
  return elements;
}

test('--junit prints well-formed XML with one test case for each rule', async (t) => {
  for (const [one, args, failures, skipped] of [
    ['broken-tools-0', [], 0, 0], ['broken-policy-507', [], 1, 0], ['broken-tools-2034', [], 1, 1], ['broken-tools-1', [], 0, 1],
  ]) {
    const path = install(t, one, 'a <b> & "c"');
    const json = await report(t, path, args);
    const done = await check(t, path, ['--junit', ...args]);
    assert.equal(done.code, json.code, show(done));
    const elements = parseXml(done.stdout);
    const [suite] = elements;
    assert.equal(suite.name, 'testsuite');
    assert.ok(suite.attributes.name.includes(path), show(suite));
    const cases = elements.filter((element) => element.name === 'testcase');
    const counts = [failures, skipped, cases.length].map(String);
    assert.deepEqual([suite.attributes.failures, suite.attributes.skipped, suite.attributes.tests], counts, show(suite));
    assert.equal(cases.length, json.checked.length + json.not_checked.length);
    const failed = elements.filter((element) => element.name === 'failure');
    assert.deepEqual(failed.map((element) => element.text), json.violations.map((violation) => `fix: ${violation.fix}`));
  }
});

test('text has the rule, what was found and the fix', async (t) => {
  const path = install(t, 'broken-tools-2034');
  const json = await report(t, path);
  const done = await check(t, path);
  assert.equal(done.code, 1, show(done));
  const [{ rule, title, found, fix }] = json.violations;
  for (const line of [`${rule}  ${title}`, `  found: ${found[0]}`, `  fix: ${fix}`, `not checked: ${json.not_checked[0]}`]) {
    assert.ok(done.stdout.split('\n').includes(line), `${line}\n${done.stdout}`);
  }
  const good = await check(t, install(t, 'broken-policy-0'));
  assert.match(good.stdout, /^\S+broken-policy-0\.so: broken-policy-0 1\.2\.3, \d+ rules checked, none violated\n$/);
});

test('errors of usage exit with 2', async (t) => {
  const path = install(t, 'broken-tools-0');
  const schema = install(t, 'broken-tools-4');
  for (const [args, message] of [
    [[t.path('missing.so')], /missing\.so does not exist/],
    [[path, '--config', '[]'], /--config must be a JSON object/],
    [[path, '--config', '{"key":'], /--config must be a JSON object/],
    [[path, '--definition', '7'], /--definition must be a JSON object/],
    [[schema, '--config', '{"another":1}'], /--config does not match the plugin's schema: .*key/],
    [[path, '--json', '--junit'], /junit/],
    [[], /requires FILE\.so;/],
  ]) {
    const done = await check(t, ...(args.length ? [args[0], args.slice(1)] : ['--json']));
    assert.equal(done.code, 2, show(done));
    assert.equal(done.stdout, '');
    assert.match(done.stderr, message);
  }
  assert.deepEqual((await report(t, schema, ['--config', '{"key":1}'])).code, 0);
});

test('a plugin that needs a configuration exits with 4, and with 0 if it has one', async (t) => {
  const path = install(t, 'broken-tools-1');
  const without = await report(t, path);
  assert.deepEqual([without.code, without.ok, without.complete, without.violations], [4, true, false, []], show(without));
  assert.ok(without.not_checked.some((why) => why.includes('key is missing') && why.includes('--config')), show(without.not_checked));
  const complete = await report(t, path, ['--config', '{"key":1}']);
  assert.deepEqual([complete.code, complete.complete, complete.not_checked], [0, true, []], show(complete));
});

test('a connector without a definition of a server exits with 4', async (t) => {
  const result = await report(t, install(t, 'broken-connector-0'));
  assert.deepEqual([result.code, result.violations], [4, []], show(result));
  assert.match(result.not_checked.join(), /BH701, BH702 and BH704.*--definition/);
});

test('processes that a plugin starts do not survive the check', async (t) => {
  await report(t, install(t, 'broken-tools-2')); // check() finds remaining processes
});

test('a plugin cannot open files of the user', async (t) => {
  const path = install(t, 'broken-tools-3');
  mkdirSync(join(t.dir, '.ssh'), { mode: 0o700 });
  const secret = join(t.dir, '.ssh/id_test');
  writeFileSync(secret, 'secret\n', { mode: 0o600 });
  const opens = async (file) => (await report(t, path, ['--config', JSON.stringify({ file })])).not_checked.join();
  assert.match(await opens('/dev/null'), /open\(\) succeeded/); // shows that the plugin works
  for (const file of [secret, '/etc/passwd', manifest(path), join(t.dir, 'files/tmp/../../.ssh/id_test')]) {
    const result = await opens(file);
    assert.match(result, /open\(\) failed/, file);
    assert.doesNotMatch(result, /succeeded/, file);
  }
});

// The plugins of the distribution, with the configuration that they need.
const own = join(build, 'lib/bulkhead/plugins');
const url = '{"url":"http://127.0.0.1:9/"}';
const needs = {
  'connector-http': ['--definition', url], 'policy-http': ['--config', url], 'telemetry-otlp': ['--config', url],
};
// These need interfaces that the check does not offer, or that the confinement does not allow.
const incomplete = {
  'connector-stdio': /no lane can be opened: .*command/, 'connector-vsock': /no lane can be opened/,
  'transport-aggregator': /grants = \["control"\]/,
};
for (const name of readdirSync(own).filter((file) => file.endsWith('.so')).map((file) => file.slice(0, -3))) {
  test(`${name} of the distribution satisfies the rules`, async (t) => {
    const result = await report(t, join(own, `${name}.so`), needs[name] ?? []);
    assert.deepEqual(result.violations, []);
    assert.ok(result.checked.length >= 20, show(result));
    if (name.startsWith('transport-') && !(name in incomplete)) assert.ok(result.checked.includes('BH802'), show(result));
    if (name in incomplete) {
      assert.match(result.not_checked.join('\n'), incomplete[name]);
    } else {
      assert.deepEqual([result.code, result.not_checked], [0, []]);
    }
  });
}

// The examples that are tools plugins, with their languages.
for (const [one, language] of [['plugins/hello-tools', 'C++'], ['plugins/hello-tools-c', 'C'], ['rust-tools/rust-tools', 'Rust']]) {
  test(`the example in ${language} satisfies all rules`, async (t) => {
    const path = join(build, 'examples', one);
    if (existsSync(`${path}.skip`)) t.skip(readFileSync(`${path}.skip`, 'utf8').trim());
    const result = await report(t, `${path}.so`);
    assert.deepEqual(result.violations, []);
    assert.deepEqual([result.code, result.complete, result.not_checked], [0, true, []]);
    assert.ok(result.checked.includes('BH408'), show(result.checked));
  });
}

test('a plugin that asks clients for input satisfies all rules', async (t) => {
  const result = await report(t, join(build, 'core/plugin/testing_plugins/plugins/asks.so'));
  assert.deepEqual(result.violations, []);
  assert.ok(['BH402', 'BH413'].every((rule) => result.checked.includes(rule)), show(result.checked));
});

await run({ parallel: 4 });
