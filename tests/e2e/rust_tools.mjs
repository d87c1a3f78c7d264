// Tests the plugin in examples/rust-tools, which is written in Rust: its unit tests, its tools in a
// gateway with its profile, errors and panics.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, root, run, runProgram, show, Skip, test } from './lib.mjs';
import { statusOf } from './status.mjs';

const folder = join(build, 'examples/rust-tools');
const skipFile = join(folder, 'rust-tools.skip'); // written by build.sh
const library = join(folder, 'rust-tools.so');

// Returns the profile of the example, with the library of this build and other lines of its table.
function profile(lines = '') {
  if (existsSync(skipFile)) throw new Skip(readFileSync(skipFile, 'utf8').trim());
  const original = readFileSync(join(root, 'examples/rust-tools/gateway.toml'), 'utf8');
  const text = original.replace('"./build/rust-tools.so"', JSON.stringify(library));
  assert.notEqual(text, original);
  return `${text}${lines}\n`;
}
const texts = (result) => result.content.map(({ type, text }) => (assert.equal(type, 'text'), text));
const compartment = async (gateway) => (await statusOf(gateway)).compartments.find(({ name }) => name.includes('rust'));

test('the unit tests of the plugin pass', () => {
  profile();
  const output = execFileSync(join(folder, 'rust-tools-test'), { encoding: 'utf8' });
  const [, passed, failed] = /test result: ok\. (\d+) passed; (\d+) failed/.exec(output) ?? assert.fail(output);
  assert.ok(Number(passed) >= 5, output);
  assert.equal(Number(failed), 0);
});

for (const args of [[], ['--single-process']]) {
  const where = args[0] ?? 'in a compartment';
  test(`a gateway with the profile of the example lists and calls both tools (${where})`, async (t) => {
    const client = await t.http(await t.gateway(profile(), { args }));
    const tools = await client.tools();
    assert.deepEqual(tools.map(({ name }) => name).sort(), ['rust__shout', 'rust__word_count']);
    for (const { inputSchema } of tools) assert.deepEqual(inputSchema.required, ['text']);
    for (const [tool, args, expected] of [
      ['word_count', { text: ' one  two\nthree ' }, '3'],
      ['word_count', { text: '' }, '0'],
      ['word_count', '{"other":[{"text":7}],"text":"\\u0061\\t\\ud83d\\ude00"}', '2'],
      ['shout', { text: 'hello' }, 'HELLO!!'],
      ['shout', { text: 'Straße "ü"\\\n' }, 'STRASSE "Ü"\\\n!!'],
      ['shout', { text: 'x'.repeat(1 << 20) }, `${'X'.repeat(1 << 20)}!!`],
    ]) {
      const result = await client.tool(`rust__${tool}`, args);
      assert.deepEqual([texts(result), result.isError ?? false], [[expected], false], `${tool} ${show(args)}`);
    }
  });

  test(`invalid arguments are results with isError, and the plugin continues (${where})`, async (t) => {
    const gateway = await t.gateway(profile(), { args });
    const client = await t.http(gateway);
    for (const tool of ['rust__word_count', 'rust__shout']) {
      for (const [args, reason] of [
        [{}, /"text" is missing/],
        [{ text: 7 }, /"text" must be a string/],
        [{ text: ['a'] }, /"text" must be a string/],
        [{ text: null }, /"text" must be a string/],
        ['{"text":"a","text":"b"}', /"text" occurs more than once/],
        ['{"text":"\\ud800"}', /lone surrogate/],
      ]) {
        const result = await client.tool(tool, args);
        assert.equal(result.isError, true, show(args));
        assert.match(texts(result).join(), reason, show(args));
      }
    }
    assert.deepEqual(texts(await client.tool('rust__word_count', { text: 'a b' })), ['2']);
  });

  test(`a panic is an error of its call only (${where})`, async (t) => {
    const gateway = await t.gateway(profile('rehearse = true'), { args });
    const client = await t.http(gateway);
    for (let round = 0; round < 3; ++round) {
      await assert.rejects(client.tool('rust__shout', { text: 'panic' }), /the plugin panicked/);
      assert.deepEqual(texts(await client.tool('rust__shout', { text: 'a' })), ['A!!']);
    }
    if (args.length === 0) assert.equal((await compartment(gateway)).restarts, 0);
    assert.match(gateway.stderr(), /rehearsal of a panic/);
    const other = await t.http(await t.gateway(profile(), { args }));
    assert.deepEqual(texts(await other.tool('rust__shout', { text: 'panic' })), ['PANIC!!'], 'without the key');
  });
}

test('errors of the configuration are reported with their line', (t) => {
  for (const [line, key] of [['rehearse = 7', 'rehearse'], ['unknown = "x"', 'unknown']]) {
    const { code, stderr } = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
      profile: profile(line), file: 'gateway.toml',
    });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /gateway\.toml:5:/);
    assert.ok(stderr.includes(key), stderr);
  }
});

await run();
