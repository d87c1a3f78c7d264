// Attempts to stop the gateway with a variable that is unset for one server, and to find configured
// values in logs, errors and the status.
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { assert, fake, fakeMcp, filesBelow, program, run, runProgram, sleep, test, until } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';

const execute = promisify(execFile);
const cli = (gateway, words, env = {}) =>
  execute(program, words, { env: { ...gateway.env(), ...env }, cwd: gateway.dir, timeout: 10_000 })
    .then((done) => ({ code: 0, ...done }), ({ code, stdout, stderr }) => ({ code, stdout, stderr }));
const modes = [['in compartments', []], ['in one process', ['--single-process']]];

// Each unset variable affects only one server.
const lacking = {
  'in a value': { ...fake('--tool', 'x'), env: { KEY: '${env:UNSET_A}' } },
  'twice': { ...fake('--tool', 'x'), env: { KEY: '${env:UNSET_A}${UNSET_B}' } },
  'with a name of 5,000 bytes': { ...fake('--tool', 'x'), env: { KEY: `\${env:${'A'.repeat(5000)}}` } },
  'that an editor asks for': { ...fake('--tool', 'x'), env: { KEY: '${input:key}' } },
  'of a lazy one': { ...fake('--tool', 'x'), start: 'lazy', env: { KEY: '${env:UNSET_A}' } },
  'in a header': { url: 'http://127.0.0.1:1/', headers: { Authorization: 'Bearer ${env:UNSET_A}' } },
  'in a URL': { url: 'http://${env:UNSET_A}:1/' },
};
for (const [mode, args] of modes) {
  test(`red team: a variable that one server lacks does not stop other servers, ${mode}`, async (t) => {
    const names = Object.keys(lacking).map((_, i) => `late${i}`);
    const mcpServers = { ...Object.fromEntries(Object.values(lacking).map((def, i) => [names[i], def])), good: fake('--tool', 'ok') };
    const gateway = await t.gateway({ mcpServers }, { args });
    const client = await t.http(gateway);
    assert.deepEqual(await client.toolNames(), ['good__ok']);
    assert.equal((await client.tool('good__ok')).content[0].text, 'fake/ok');
    const { servers } = await statusOf(gateway);
    for (const [i, what] of Object.keys(lacking).entries()) {
      const server = servers.find(({ name }) => name === names[i]);
      assert.equal(server.state, 'disabled', `${what}: ${server.reason}`);
    }
    // Commands in a terminal without these variables.
    for (const words of [['pins'], ['policy', 'check'], ['profile', 'show'], ['plugin', 'list'], ['tools'], ['call', 'good__ok']]) {
      const done = await cli(gateway, [...words, '--config', gateway.config]);
      assert.equal(done.code, 0, `${words}: ${done.stderr}`);
    }
  });
}

const secrets = {
  KEY: 'Zx9-Secret/Val+ue=="q',
  LINES: '-----BEGIN KEY-----\nMIIEvQIBADANBgkqh-LINE1\nkiG9w0BAQEFAASC-LINE2\n-----END KEY-----',
  TOKEN: 'tok-3n-ABCDEF-0123456789',
};
// The secrets must not be stored in any form, neither as a whole nor in parts.
const traces = [...Object.values(secrets), 'MIIEvQIBADANBgkqh', 'kiG9w0BAQEFAASC', 'Zx9-Secret', 'tok-3n-ABC', JSON.stringify(secrets.KEY).slice(1, -1)];
// The values as a server prints them. $1 is a pause in the shell script.
const printed = {
  'plain': 'echo "at $KEY end"; echo "$LINES"; echo "$WRAPPED"',
  'in two writes': 'printf %s "tok-3n-A"; sleep 0.3; echo "BCDEF-0123456789"',
  'behind a long line': 'head -c 70000 /dev/zero | tr "\\0" y; echo "$TOKEN"',
  'at the edges of buffers': 'for n in 4090 8185 16377 65529; do head -c $n /dev/zero | tr "\\0" y; echo "$TOKEN"; done',
  'escaped for JSON': 'echo "$KEY" | sed \'s/["\\\\]/\\\\&/g\'',
  'with percent signs': 'echo Zx9-Secret%2FVal%2Bue%3D%3D%22q',
  'without an end of the line': 'printf %s "$TOKEN"',
};
for (const [mode, args] of modes) {
  for (const [how, shell] of Object.entries(printed)) {
    test(`red team: credentials that a server prints ${how} are not stored anywhere, ${mode}`, async (t) => {
      const work = t.path('work');
      mkdirSync(work);
      writeFileSync(join(work, 'program'), `{ echo begin; ${shell}; echo; echo "the end"; } >&2\nexit 3\n`);
      const bad = { command: '/bin/sh', args: [join(work, 'program')], env: { KEY: '${env:KEY}', LINES: '${env:LINES}', TOKEN: '${env:TOKEN}', WRAPPED: 'Bearer ${env:TOKEN}' } };
      const gateway = await t.gateway({ limits: { first_list_wait_ms: 3000 }, mcpServers: { bad, good: fake('--tool', 'x') } }, { args, env: secrets });
      const client = await t.http(gateway);
      const reason = await until('it has ended', async () => {
        const { servers } = await statusOf(gateway);
        return servers.find(({ name }) => name === 'bad').reason.includes('exited') && JSON.stringify(servers);
      }, 10_000);
      const said = await client.tool('bad__x').then(() => assert.fail('it ran'), (error) => error.message);
      const shown = { reason, said, stderr: gateway.stderr() };
      for (const words of [['status'], ['doctor', '--config', gateway.config], ['profile', 'show', '--config', gateway.config]]) {
        const done = await cli(gateway, words);
        shown[words[0]] = done.stdout + done.stderr;
      }
      const state = join(gateway.dir, 'state');
      for (const { path, text } of filesBelow(state)) if (text !== undefined) shown[basename(path)] = text;
      assert.match(shown['bad.log'], /the end/);
      for (const [where, text] of Object.entries(shown)) {
        // The terminal of the reader must not receive escape sequences.
        const seen = text.replace(/\u001b\[[0-9;]*m/g, '');
        for (const trace of traces) assert.ok(!text.includes(trace) && !seen.includes(trace), `${where} has ${JSON.stringify(trace)}`);
      }
    });
  }
}

await run({ parallel: 3 });
