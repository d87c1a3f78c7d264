// Tests unset variables. A variable of a server disables only this server, and a variable that
// every call depends on prevents the start. Commands that start nothing need no variables.
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Skip, alive, assert, fake, processesWith, program, run, runProgram, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const write = (gateway, profile) => writeFileSync(gateway.config, JSON.stringify(profile));
// Runs a command of the same user without the gateway's environment.
const also = (gateway, words, options = {}) =>
  execute(program, [...words, ...(options.bare ? [] : ['--config', gateway.config])], { env: gateway.env(), cwd: gateway.dir })
    .then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), ({ code, stdout, stderr }) => ({ code, stdout, stderr }));

// Servers of each type, with an unset variable in each member that may contain a reference. The
// keys are the variables.
const unset = {
  UNSET_ENV: { ...fake('--tool', 'x'), env: { KEY: 'a${env:UNSET_ENV}b' } },
  UNSET_SHORT: { ...fake('--tool', 'x'), env: { KEY: '${UNSET_SHORT}' } },
  UNSET_LAZY: { ...fake('--tool', 'x'), env: { KEY: '${UNSET_LAZY}' }, start: 'lazy' },
  UNSET_URL: { url: 'http://127.0.0.1:1/${env:UNSET_URL}' },
  UNSET_HEADER: { url: 'http://127.0.0.1:1/', headers: { 'X-Key': '${env:UNSET_HEADER}' } },
  UNSET_SSE: { type: 'sse', url: 'http://127.0.0.1:1/', headers: { 'X-Key': '${env:UNSET_SSE}' } },
  UNSET_BEARER: { url: 'http://127.0.0.1:1/', bearerToken: '${env:UNSET_BEARER}' },
  UNSET_NAMED: { url: 'http://127.0.0.1:1/', bearer_token_env_var: 'UNSET_NAMED' },
};
const nameOf = (variable) => variable.toLowerCase().replace('_', '-');
const servers = { ...Object.fromEntries(Object.entries(unset).map(([variable, def]) => [nameOf(variable), def])), good: fake('--tool', 'ok') };
const kept = '[telemetry.records]\nplugin = "telemetry-sqlite"\n';
const rule = `[security.rules.mcp.r]\non = "mcp.request"\nif = "mcp.request.tool_name == 'bad'"\ndecision = "block"\n`;
const toml = (value) =>
  typeof value !== 'object' ? JSON.stringify(value)
    : Array.isArray(value) ? `[${value.map(toml)}]`
      : `{ ${Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)} = ${toml(inner)}`)} }`;
const profileOf = (list, more = '') =>
  `${more}${Object.entries(list).map(([name, def]) => `[mcpServers.${name}]\n${Object.entries(def).map(([key, value]) => `${key} = ${toml(value)}\n`).join('')}`).join('')}`;

// Commands that start nothing.
const looks = [['calls'], ['timeline'], ['inspect', '--schema'], ['pins'], ['policy', 'check'], ['profile', 'show'], ['plugin', 'list']];

both('serve disables each server that lacks a variable, with the reason, and runs the others', async (t, args) => {
  const gateway = await t.gateway(profileOf(servers, kept + rule), { args });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['good__ok']);
  assert.equal((await client.tool('good__ok')).content[0].text, 'fake/ok');
  const status = await statusOf(gateway);
  const log = readFileSync(join(gateway.dir, 'state/bulkhead/log/bulkhead.log'), 'utf8');
  for (const variable of Object.keys(unset)) {
    const name = nameOf(variable);
    const reason = new RegExp(`the environment variable ${variable} is not set; set it`);
    const server = status.servers.find((one) => one.name === name);
    assert.equal(server.state, 'disabled', name);
    assert.match(server.reason, reason);
    await assert.rejects(client.tool(`${name}__x`), { message: new RegExp(`server "${name}" is disabled: ${reason.source}`) });
    for (const text of [log, gateway.stderr()]) assert.match(text, new RegExp(`server "${name}" is disabled: ${reason.source}`));
  }
  assert.equal(status.servers.find((one) => one.name === 'good').state, 'ready');
  for (const words of looks) {
    const done = await also(gateway, words);
    assert.equal(done.code, 0, `${words}: ${show(done)}`);
  }
  // There are rows, but perhaps no signature yet.
  assert.match((await also(gateway, ['audit', 'verify'])).stdout, /chain 1: intact/);
  const tools = await also(gateway, ['tools']);
  assert.equal(tools.code, 0, show(tools));
  assert.match(tools.stdout, /good__ok/);
  assert.match(tools.stderr, /^bulkhead: server unset-env: disabled: the environment variable UNSET_ENV is not set/m);
  const call = await also(gateway, ['call', 'good__ok']);
  assert.equal(call.stdout.trim(), 'fake/ok', show(call));
  const other = await also(gateway, ['call', 'unset-url__x']);
  assert.equal(other.code, 1);
  assert.match(other.stderr, /server "unset-url" is disabled: the environment variable UNSET_URL is not set/);
  const doctor = await also(gateway, ['doctor']);
  assert.match(doctor.stdout, /^warn +server unset-named is disabled: the environment variable UNSET_NAMED is not set/m);
  for (const name of ['unset-env', 'unset-url', 'unset-named']) {
    assert.equal(doctor.stdout.split('\n').filter((line) => line.includes(name) && line.includes('is disabled')).length, 1, show(doctor));
  }
  assert.match(doctor.stdout, /^ok +server good: 1 tool, MCP 2025-11-25$/m);
  // If the variable is set for this command, it uses the server.
  const set = await execute(program, ['tools', '--config', gateway.config], { env: { ...gateway.env(), UNSET_ENV: 'k' }, cwd: gateway.dir });
  assert.match(set.stdout, /unset-env__x/);
  assert.match(set.stdout, /good__ok/);
});

both('stdio disables each server that lacks a variable', async (t, args) => {
  const client = await t.stdio(profileOf(servers, kept), { args });
  assert.deepEqual(await client.toolNames(), ['good__ok']);
  await assert.rejects(client.tool('unset-env__x'), { message: /server "unset-env" is disabled: the environment variable UNSET_ENV is not set/ });
});

both('a reload that adds a server without its variable names it, and other servers keep their processes', async (t, args) => {
  const log = t.path('log');
  const good = fake('--tool', 'ok', '--log', log);
  const gateway = await t.gateway({ mcpServers: { good } }, { args, env: { SET: 'v' } });
  const client = await t.http(gateway);
  await client.tool('good__ok');
  const pid = processesWith(log).at(-1);
  const reload = async (list) => {
    write(gateway, { mcpServers: list });
    return also(gateway, ['reload'], { bare: true });
  };
  const late = (variable) => ({ ...fake('--tool', 'x'), env: { KEY: `\${env:${variable}}` } });
  const added = await reload({ good, late: late('NOT_THERE'), web: { url: 'http://127.0.0.1:1/${env:NOT_THERE}' } });
  assert.equal(added.code, 0, show(added));
  assert.match(added.stdout, /not connected: .*late \(the environment variable NOT_THERE is not set/);
  assert.match(added.stdout, /not connected: .*web \(the environment variable NOT_THERE is not set/);
  await assert.rejects(client.tool('late__x'), { message: /NOT_THERE/ });
  await client.tool('good__ok');
  // When the variable is set, the server is enabled.
  const set = await reload({ good, late: late('SET') });
  assert.equal(set.code, 0, show(set));
  assert.equal((await client.tool('late__x')).content[0].text, 'fake/x');
  // When the variable is unset again, the server is disabled.
  const again = await reload({ good, late: late('NOT_THERE') });
  assert.match(again.stdout, /not connected: late \(the environment variable NOT_THERE is not set/);
  assert.deepEqual(await client.toolNames(), ['good__ok']);
  assert.equal(processesWith(log).at(-1), pid);
  assert.ok(alive(pid));
});

// Setting a variable in a shell changes nothing in a gateway that is running. Each command names the
// reason and the remedy.
both('a variable that is set after the start: reload, restart and doctor say that the gateway must be restarted', async (t, args) => {
  const keyed = (variable) => ({ ...fake('--tool', 'x'), env: { KEY: `\${env:${variable}}` } });
  const list = { 'late-a': keyed('LATE_A'), 'late-b': keyed('LATE_B'), good: fake('--tool', 'ok') };
  const gateway = await t.gateway({ mcpServers: list }, { args });
  const shell = (words) => execute(program, words, { env: { ...gateway.env(), LATE_A: 'a', LATE_B: 'b' }, cwd: gateway.dir })
    .then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), ({ code, stdout, stderr }) => ({ code, stdout, stderr }));
  const remedy = "variables are read from the gateway's own environment: restart the gateway with the variable set";
  const reload = await shell(['reload']);
  assert.equal(reload.code, 0, show(reload));
  const [{ notes }] = JSON.parse((await shell(['reload', '--json'])).stdout).gateways;
  // The log has each note of a reload once.
  assert.equal((await shell(['reload'])).code, 0);
  const log = readFileSync(join(gateway.dir, 'state/bulkhead/log/bulkhead.log'), 'utf8').split('\n');
  for (const name of ['late-a', 'late-b'])
    assert.equal(log.filter((line) => line.includes(`server "${name}" is disabled`) && line.includes(remedy)).length, 1, name);
  // A command that concerns one server does not repeat the notes about other servers.
  const other = await shell(['mcp', 'restart', 'good']);
  assert.equal(other.code, 0, show(other));
  assert.doesNotMatch(other.stdout, /late-/);
  const doctor = JSON.parse((await shell(['doctor', '--json', '--config', gateway.config])).stdout);
  for (const [name, variable] of [['late-a', 'LATE_A'], ['late-b', 'LATE_B']]) {
    const lines = reload.stdout.split('\n').filter((line) => line.includes(`"${name}"`));
    assert.equal(lines.length, 1, show(reload));
    assert.match(lines[0], new RegExp(`^  note: ~/gateway\\.json.*server "${name}" is disabled: the environment variable ${variable} is not set`));
    assert.ok(lines[0].endsWith(`; ${remedy}`), lines[0]);
    assert.equal(notes.filter((note) => note.includes(`"${name}"`) && note.endsWith(remedy)).length, 1, show(notes));
    const restart = await shell(['mcp', 'restart', name]);
    assert.equal(restart.code, 1, show(restart));
    assert.match(restart.stdout + restart.stderr, new RegExp(`server ${name} is disabled: the environment variable ${variable} is not set.*; ${remedy}`));
    const found = doctor.filter((one) => one.text.startsWith(`server ${name} is disabled`));
    assert.deepEqual(found.map((one) => one.result), ['warn'], show(doctor));
    assert.match(found[0].text, new RegExp(`is disabled in the running gateway: the environment variable ${variable} is not set`));
    assert.match(found[0].advice, /own environment, not from this shell\. Restart the gateway/);
    if (args.length) continue; // a gateway in one process is not shared
    const [sharing] = doctor.filter((one) => one.text.startsWith('`bulkhead stdio`'));
    assert.match(sharing.text, new RegExp(`in the gateway, server ${name} is disabled: the environment variable ${variable} is not set`));
  }
  assert.ok(!doctor.some((one) => /server good is disabled/.test(one.text)));
});

both('the connector API rejects a server whose variable is not set', async (t, args) => {
  const gateway = await t.gateway({ mcpServers: { good: fake('--tool', 'ok') } }, { args });
  const { socket } = await statusOf(gateway);
  const { request } = await import('node:http');
  const answer = await new Promise((done, failed) => {
    const req = request({ socketPath: socket, method: 'POST', path: '/mcp/connectors', headers: { 'content-type': 'application/json' } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, data }));
    });
    req.on('error', failed);
    req.end(JSON.stringify({ id: 'late', url: 'http://127.0.0.1:1/${env:NOT_THERE}' }));
  });
  assert.equal(answer.status, 400, show(answer));
  assert.match(answer.data, /NOT_THERE/);
});

const needed = {
  transports: '[transports.web]\nplugin = "transport-http"\nlisten = "127.0.0.1:0"\ntoken = "${env:UNSET_TOKEN}"\n',
  policies: '[policies.outside]\nplugin = "policy-http"\nurl = "http://127.0.0.1:1/"\nheaders = { Authorization = "Bearer ${env:UNSET_TOKEN}" }\n',
  tools: '[tools.web]\nplugin = "builtin-http"\nallow = [\n"${env:UNSET_TOKEN}"]\n',
  'optional tools': '[tools.web]\nplugin = "builtin-http"\nrequired = false\nallow = ["${env:UNSET_TOKEN}"]\n',
  telemetry: '[telemetry.otlp]\nplugin = "telemetry-otlp"\nurl = "http://127.0.0.1:1/"\nheaders = { Authorization = "${env:UNSET_TOKEN}" }\n',
};
for (const [name, section] of Object.entries(needed)) {
  const group = name.split(' ').at(-1);
  test(`${name}: an unset variable stops the start, but not commands that start nothing`, (t) => {
    const profile = section + profileOf({ good: fake('--tool', 'ok') });
    const cli = (...words) => runProgram(t, [...words, '--config', '{config}'], { profile, file: 'gateway.toml' });
    for (const start of [['serve'], ['stdio'], ['serve', '--single-process']]) {
      const done = cli(...start);
      assert.equal(done.code, 1, `${start}: ${show(done)}`);
      assert.match(done.stderr, new RegExp(`gateway\\.toml:4:\\d+: ${group}\\.\\S+: the environment variable UNSET_TOKEN is not set.*\\[missing_env_var\\]`));
    }
    for (const words of [['pins'], ['profile', 'show'], ['plugin', 'list'], ['policy', 'check']]) {
      const done = cli(...words);
      assert.equal(done.code, 0, `${words}: ${show(done)}`);
      if (words[0] === 'profile') assert.match(done.stderr, new RegExp(`${group}\\.\\S+: the environment variable UNSET_TOKEN is not set.*The gateway does not start without this variable`));
    }
    for (const words of [['calls'], ['timeline'], ['audit', 'verify']]) {
      const done = cli(...words);
      assert.match(done.stderr, /no session database found/, `${words}: ${show(done)}`);
    }
    // A command that is its own client does not use transports.
    const tools = cli('tools');
    assert.equal(tools.code, group === 'transports' ? 0 : 1, show(tools));
    assert.match(tools.code === 0 ? tools.stdout : tools.stderr, tools.code === 0 ? /good__ok/ : /UNSET_TOKEN/);
  });
}

both('a reload that adds a tools table with an unset variable changes nothing and names it', async (t, args) => {
  const good = { good: fake('--tool', 'ok') };
  const gateway = await t.gateway(profileOf(good), { args, env: { SET: 'localhost' } });
  const client = await t.http(gateway);
  const reload = async (variable) => {
    writeFileSync(gateway.config, `[tools.web]\nplugin = "builtin-http"\nallow = ["\${env:${variable}}"]\n${profileOf({ ...good, more: fake('--tool', 'x') })}`);
    return also(gateway, ['reload'], { bare: true });
  };
  const refused = await reload('UNSET_TOKEN');
  assert.equal(refused.code, 1, show(refused));
  assert.match(refused.stdout, /nothing was changed[^]*gateway\.toml:3:\d+: tools\.\S+: the environment variable UNSET_TOKEN is not set/);
  assert.deepEqual(await client.toolNames(), ['good__ok']);
  const done = await reload('SET');
  assert.doesNotMatch(done.stdout, /nothing was changed|SET is not set/, show(done));
  await until('the other changes are applied', async () => (await client.toolNames()).includes('more__x'));
});

test("a server of the corporation that lacks a variable stops the start", (t) => {
  if (existsSync('/etc/bulkhead/corp.toml')) throw new Skip('this system has a corp profile');
  mkdirSync(t.path('corp'), { recursive: true, mode: 0o755 });
  const file = join(t.path('corp'), 'corp.toml');
  writeFileSync(file, profileOf({ search: unset.UNSET_ENV }));
  chmodSync(file, 0o644);
  const cli = (...words) => runProgram(t, [...words, '--config', '{config}'],
    { profile: profileOf({ good: fake('--tool', 'ok') }), file: 'gateway.toml', env: { BULKHEAD_CORP_PROFILE: file } });
  for (const start of [['serve'], ['stdio'], ['tools']]) {
    const done = cli(...start);
    assert.equal(done.code, 1, `${start}: ${show(done)}`);
    assert.match(done.stderr, /corp\.toml:\d+:\d+: mcpServers\.search\.env\.KEY: server "search": the environment variable UNSET_ENV is not set.*\[missing_env_var\]/);
  }
  for (const words of [['pins'], ['profile', 'show'], ['plugin', 'list'], ['policy', 'check']]) {
    const done = cli(...words);
    assert.equal(done.code, 0, `${words}: ${show(done)}`);
  }
});

await run();
