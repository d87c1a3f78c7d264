// Tests the configuration: formats, names, filters, and errors with their position.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { assert, fake, filesBelow, processesWith, program, run, runProgram, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

test('A17 invalid server names are rejected, the other servers load', async (t) => {
  const gateway = await t.gateway({ mcpServers: { '': fake('--tool', 'x'), builtin: fake('--tool', 'x'), a__b: fake('--tool', 'x'), good: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['good__x']);
  const said = gateway.stderr();
  assert.match(said, /name is empty/);
  assert.match(said, /builtin.*reserved/);
  assert.match(said, /a__b.*separator/);
});

test('F01 the VS Code format loads, with comments', async (t) => {
  const text = `{
    // VS Code writes these
    "inputs": [],
    "servers": {
      "weather": { "type": "stdio", "command": ${JSON.stringify(fake().command)}, "args": ["--tool", "get_forecast"],
                   "env": { "API_KEY": "\${WEATHER_API_KEY}" } },
      "github": { "command": ${JSON.stringify(fake().command)}, "args": ["--tool", "list_issues", "--tool", "merge_pull_request"],
                  "env": { "GITHUB_TOKEN": "\${env:GITHUB_TOKEN}" },
                  "allowTools": ["list_issues"], "denyTools": ["merge_pull_request"] },
    },
  }`;
  const env = { WEATHER_API_KEY: 'k', GITHUB_TOKEN: 'g' };
  const gateway = await t.gateway(text, { file: 'mcp.json', env });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['github__list_issues', 'weather__get_forecast']);
  const { servers } = await statusOf(gateway);
  assert.deepEqual(servers.map((server) => `${server.name} ${server.state}`).sort(), ['github ready', 'weather ready']);
});

test("references in a client's own syntax are reported by doctor and serve, with the remedy", async (t) => {
  const profile = { mcpServers: {
    ticks: { httpUrl: 'http://127.0.0.1:9/', headers: { Authorization: 'Bearer $TICKS_TOKEN' } },
    code: { ...fake('--tool', 'x'), args: ['--tool', '${workspaceFolder}/x'] } } };
  const notes = [/headers\.Authorization: `\$NAME` is not a reference here; write `\$\{NAME\}`; `bulkhead import` converts servers in Gemini CLI's settings/,
    /args\[1\]: `\$\{workspaceFolder\}` is not a reference here; write the path itself; `bulkhead import --folder` converts servers in \.vscode\/mcp\.json/];
  const done = runProgram(t, ['doctor', '--json', '--config', '{config}'], { profile });
  const found = JSON.parse(done.stdout).filter((one) => one.result === 'warn').map((one) => one.text);
  const gateway = await t.gateway(profile);
  for (const note of notes) {
    assert.equal(found.filter((text) => note.test(text)).length, 1, found.join('\n'));
    assert.match(gateway.stderr(), note);
  }
});

test('F01 the mcpServers format loads, also as TOML', async (t) => {
  const { command } = fake();
  const toml = `[mcpServers.weather]\ncommand = ${JSON.stringify(command)}\nargs = ["--tool", "get_forecast"]\n[mcpServers.off]\ncommand = "/no/such"\ndisabled = true\n`;
  const gateway = await t.gateway(toml);
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['weather__get_forecast']);
  const { servers } = await statusOf(gateway);
  assert.equal(servers.find((server) => server.name === 'off').state, 'disabled');
});

test('F02 variables are expanded in env only and written nowhere', async (t) => {
  const dump = t.path('env');
  const literal = t.path('${WEATHER_API_KEY}.log');
  const gateway = await t.gateway(
    { mcpServers: { weather: { ...fake('--tool', 'a', '--dump-env', dump, '--log', literal), env: { API_KEY: '${WEATHER_API_KEY}', REGION: '${REGION:-eu}' } } } },
    { env: { WEATHER_API_KEY: 'k123-secret' }, args: ['--log-level', 'debug', '--verbose'] },
  );
  await (await t.http(gateway)).tool('weather__a');
  const seen = readFileSync(dump, 'utf8');
  assert.match(seen, /^API_KEY=k123-secret$/m);
  assert.match(seen, /^REGION=eu$/m);
  assert.ok(existsSync(literal), 'arguments are not expanded');
  const shown = runProgram(t, ['profile', 'show', '--origin', '--config', gateway.config], { env: { WEATHER_API_KEY: 'k123-secret' } });
  assert.equal(shown.code, 0, shown.stderr);
  const files = filesBelow(gateway.dir).flatMap(({ path, text }) => (text === undefined ? [] : [[path, text]]));
  for (const [name, text] of [...files, ['profile show', shown.stdout], ['stderr', gateway.stderr()]]) {
    assert.ok(!text.includes('k123-secret'), name);
  }
});

// A terminal displays names unchanged, and a model reads them.
for (const args of [[], ['--single-process']]) {
  test(`items whose names have control or invisible characters are left out and reported ${args}`, async (t) => {
    const names = ['a\u001b[31mred', 'b\nc', 'd\u007f', 'e\u009b', 'f\u202egnp', 'o\u200bk', 'o\ufe0fk', 'ok\u{e0041}'];
    const odd = (option, prefix) => names.flatMap((name) => [option, prefix + name]);
    const gateway = await t.gateway({
      mcpServers: {
        evil: fake('--tool', 'ok', ...odd('--tool', ''), '--prompt', 'ok', ...odd('--prompt', ''), '--resource', 'mem://ok', ...odd('--resource', 'mem://'),
          '--template', 'mem://{id}', ...odd('--template', 'mem://{id}')),
        good: fake('--tool', 'ok'),
      },
    }, { args });
    const client = await t.http(gateway);
    assert.deepEqual(await client.toolNames(), ['evil__ok', 'good__ok']);
    assert.deepEqual((await client.all('prompts/list', 'prompts')).map((item) => item.name), ['evil__ok']);
    assert.deepEqual((await client.all('resources/list', 'resources')).map((item) => item.uri), ['bulkhead://evil/mem://ok']);
    assert.deepEqual((await client.all('resources/templates/list', 'resourceTemplates')).map((item) => item.uriTemplate), ['bulkhead://evil/mem://{id}']);
    for (const name of names) await assert.rejects(client.tool(`evil__${name}`), (error) => error.code === -32601, name);
    const { collisions } = await statusOf(gateway);
    for (const [noun, prefix, member] of [['tool', '', 'name'], ['prompt', '', 'name'], ['resource', 'mem://', 'uri'], ['resource template', 'mem://{id}', 'uriTemplate']]) {
      for (const name of ['a\\u001b[31mred', 'b\\u000ac', 'd\\u007f', 'e\\u009b', 'f\\u202egnp', 'o\\u200bk', 'o\\ufe0fk', 'ok\\udb40\\udc41']) {
        const line = `${noun} "${prefix}${name}" of server "evil" is not offered: its ${member} contains control or invisible characters`;
        assert.ok(collisions.includes(line), `${line}\n${collisions.join('\n')}`);
      }
    }
    assert.equal(collisions.length, 4 * names.length);
    const log = () => readFileSync(join(gateway.dir, 'state/bulkhead/log/bulkhead.log'), 'utf8');
    await until('the log names the first of each kind', () => log().match(/evil.*is not offered: its .* contains control or invisible characters \(8 in total\)/g)?.length === 4);
    assert.ok(!log().includes('\u001b'));
    const listed = runProgram(t, ['tools', '--config', gateway.config]);
    assert.match(listed.stderr, /not offered: tool "b\\u000ac" of server "evil"/);
    assert.ok(!/[\u001b\u009b\u202e]/.test(listed.stdout + listed.stderr));
  });
}

test('F05 allowTools and denyTools apply to lists and calls', async (t) => {
  const log = t.path('log');
  const tools = ['--tool', 'a', '--tool', 'b', '--tool', 'c'];
  const gateway = await t.gateway({
    mcpServers: {
      both: { ...fake(...tools, '--log', log), allowTools: ['a', 'b'], denyTools: ['b'] },
      deny: { ...fake(...tools), denyTools: ['c'] },
      none: { ...fake(...tools), allowTools: [] },
    },
  });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['both__a', 'deny__a', 'deny__b']);
  await client.tool('both__a');
  for (const hidden of ['both__b', 'both__c', 'deny__c', 'none__a']) await assert.rejects(client.tool(hidden), { code: -32601 }, hidden);
  const calls = readFileSync(log, 'utf8').split('\n').filter((line) => line.includes('tools/call'));
  assert.equal(calls.length, 1, 'refused here, not upstream');
});

test('G13 configuration errors are distinct, have file and line, and are reported together', async (t) => {
  const show = (profile, file) => runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile, file });
  const missing = show(undefined);
  const broken = show('{"mcpServers": {"a": {"command": "x",}\n  "b"');
  const wrong = show('{\n "mcpServers": {\n  "a": {"command": 5},\n  "b": {"command": "x", "comand": "y"}\n }\n}');
  const variable = show({ transports: { http: { token: '${env:NO_SUCH_VARIABLE}' } } }); // unset.mjs tests variables of servers
  for (const done of [missing, broken, wrong, variable]) assert.equal(done.code, 1, done.stderr);
  assert.match(missing.stderr, /file_not_found/);
  assert.match(broken.stderr, /invalid_json/);
  assert.match(broken.stderr, /gateway\.json:2/);
  assert.match(wrong.stderr, /invalid_schema/);
  assert.match(wrong.stderr, /gateway\.json:3.*mcpServers\.a\.command/);
  assert.match(wrong.stderr, /gateway\.json:4.*comand/, 'all errors at once');
  assert.match(variable.stderr, /missing_env_var/);
  assert.match(variable.stderr, /transports\.http\.token/);
  assert.match(variable.stderr, /NO_SUCH_VARIABLE/);
});

test('G16 the separator can be configured', async (t) => {
  for (const separator of ['__', ':', '.']) {
    const gateway = await t.gateway({ naming: { separator }, mcpServers: { fs: fake('--tool', 'a') } });
    const client = await t.http(gateway);
    assert.deepEqual(await client.toolNames(), [`fs${separator}a`]);
    assert.equal((await client.tool(`fs${separator}a`)).content[0].text, 'fake/a');
  }
  for (const separator of ['', ' ', '\t']) {
    const done = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile: { naming: { separator }, mcpServers: { fs: fake() } } });
    assert.equal(done.code, 1, JSON.stringify(separator));
    assert.match(done.stderr, /separator/);
  }
});

test('without prefixes, colliding names are rejected and reported', async (t) => {
  const one = await t.gateway({ naming: { prefix: 'never' }, mcpServers: { a: fake('--tool', 'x', '--resource', 'r:1'), b: fake('--tool', 'y') } });
  const client = await t.http(one);
  assert.deepEqual((await client.toolNames()).sort(), ['x', 'y']);
  assert.equal((await client.tool('y')).content[0].text, 'fake/y');
  assert.equal((await client.all('resources/list', 'resources'))[0].uri, 'r:1');
  const two = await t.gateway({ naming: { prefix: 'never' }, mcpServers: { a: fake('--tool', 'x'), b: fake('--tool', 'x', '--tool', 'y') } });
  const other = await t.http(two);
  assert.deepEqual(await other.toolNames(), ['y']);
  await assert.rejects(other.tool('x'), { code: -32602, message: /"x" is ambiguous: servers "a", "b" have a tool with this name/ });
  const { collisions } = await statusOf(two);
  assert.deepEqual(collisions, ['tool "x" is not offered: servers "a", "b" have a tool with this name']);
});

test('without prefixes, a name never moves from one server to another', async (t) => {
  const gate = t.path('gate');
  const log = t.path('log-of-a');
  const late = { command: 'sh', args: ['-c', 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"', gate, fake().command, '--tool', 'x', '--tool', 'own', '--log', log], sandbox: 'off' };
  const gateway = await t.gateway({ naming: { prefix: 'never' }, limits: { first_list_wait_ms: 60000, connect_timeout_ms: 60000, grace_ms: 0 }, mcpServers: { a: late, b: fake('--tool', 'x', '--tool', 'y') } });
  const client = await t.http(gateway);
  // Until `a` responds, the owner of x is unknown, so the call waits. It is then rejected.
  const call = client.tool('x').then(() => 'answered', (error) => error.message);
  writeFileSync(gate, '');
  assert.match(await call, /servers "a", "b" have a tool with this name/);
  assert.deepEqual((await client.toolNames()).sort(), ['own', 'y']);
  // Names that `a` has listed remain reserved while `a` is down.
  rmSync(gate);
  for (const pid of processesWith(log)) process.kill(pid, 'SIGKILL');
  await until('only y is listed', async () => (await client.toolNames()).join() === 'y', 10_000);
  await assert.rejects(client.tool('x'), { code: -32602, message: /servers "a", "b" have a tool with this name/ });
  await assert.rejects(client.tool('own'), { message: /server "a" is not available/ });
});

test("clients' own files work as --config: their servers start, and other settings are noted once", async (t) => {
  const a = fake('--tool', 'x');
  const files = {
    'settings.json': { theme: 'x', selectedAuthType: 'y', tools: { core: ['ls'] }, telemetry: { enabled: true }, mcpServers: { a } },
    '.claude.json': { numStartups: 3, projects: { '/p': { mcpServers: { b: a } } }, mcpServers: { a } },
    'claude_desktop_config.json': { globalShortcut: '', mcpServers: { a } },
    'other.json': { 'editor.fontSize': 12, 'mcp.servers': { a } } };
  for (const [file, profile] of Object.entries(files)) {
    const gateway = await t.gateway(profile, { file });
    assert.deepEqual(await (await t.http(gateway)).toolNames(), ['a__x'], file);
    assert.equal(gateway.stderr().split('keys of another program are ignored').length, 2, gateway.stderr());
  }
});

test("VS Code's inputs are read from the environment; without a value, only that server is disabled", async (t) => {
  const profile = { inputs: [{ id: 'key', type: 'promptString' }], servers: { vs: { ...fake('--tool', 'x'), env: { K: '${input:key}' } }, b: fake('--tool', 'y') } };
  const without = await t.gateway(profile, { file: 'mcp.json' });
  const client = await t.http(without);
  assert.deepEqual(await client.toolNames(), ['b__y']);
  assert.match(without.stderr(), /server "vs" is disabled: the environment variable VS_KEY is not set; set it to the value of \$\{input:key\}/);
  await assert.rejects(client.tool('vs__x'), /VS_KEY/);
  const set = await t.gateway(profile, { file: 'mcp.json', env: { VS_KEY: 'v' } });
  assert.deepEqual((await (await t.http(set)).toolNames()).sort(), ['b__y', 'vs__x']);
});

test('all errors in plugin tables are reported together, each once with its line', async (t) => {
  const toml = [
    '[transports.http]', 'listen = "foo"', 'allowed_hosts = "x"', 'bogus = 1', '[transports.http.more]', 'a = 1',
    '[tools.files]', 'plugin = "builtin-files"', 'wrong = 2',
    '[tools.http]', 'plugin = "builtin-http"', 'timeout_ms = "x"',
    '[tools.x]', 'plugin = "no-such"', '[tools.y]', 'plugin = "neither"', '[tools.z]', 'plugin = "nor-this"', 'required = false'].join('\n');
  const wanted = [
    /:2: transports\.http\.listen: must be an address: 127\.0\.0\.1:8808/, /:3: transports\.http\.allowed_hosts: must match type "array"/,
    /:4: transports\.http\.bogus: unknown key; known keys: listen, /, /:6: transports\.http\.more: unknown key/,
    /:9: tools\.files\.wrong: unknown key; known keys: /, /:12: tools\.http\.timeout_ms: must match type "integer"/,
    /:14: tools\.x\.plugin: plugin no-such: no-such\.so was not found in /, /:16: tools\.y\.plugin: plugin neither: neither\.so was not found in/];
  for (const command of [['serve'], ['serve', '--single-process'], ['stdio'], ['tools']]) {
    const done = runProgram(t, [...command, '--config', '{config}'], { profile: toml, file: 'pl.toml' });
    assert.equal(done.code, 1, command.join(' '));
    const lines = done.stderr.trim().split('\n');
    // Commands that do not serve HTTP do not use this transport.
    const here = command[0] === 'serve' ? wanted : wanted.slice(4);
    assert.equal(lines.length, here.length, `${command}: ${done.stderr}`);
    here.forEach((pattern, i) => assert.match(lines[i], pattern));
  }
  const doctor = runProgram(t, ['doctor', '--config', '{config}'], { profile: toml, file: 'pl.toml' });
  assert.equal(doctor.code, 1);
  for (const pattern of wanted) assert.match(doctor.stdout, pattern);
});

test('a reload with errors in plugin tables changes nothing and reports all errors', async (t) => {
  const gateway = await t.gateway(`[mcpServers.a]\ncommand = ${JSON.stringify(fake().command)}\nargs = ["--tool", "x"]\n`);
  writeFileSync(gateway.config, '[tools.files]\nplugin = "builtin-files"\nwrong = 1\n[tools.y]\nplugin = "neither"\n');
  const done = spawnSync(program, ['reload'], { env: gateway.env(), cwd: gateway.dir, encoding: 'utf8', timeout: 20_000 });
  assert.equal(done.status, 1);
  assert.match(done.stdout + done.stderr, /:3: tools\.files\.wrong: unknown key/);
  assert.match(done.stdout + done.stderr, /:5: tools\.y\.plugin: plugin neither/);
  assert.deepEqual(await (await t.http(gateway)).toolNames(), ['a__x']);
});

test('an invalid address is a usage error, reported once', async (t) => {
  for (const address of ['foo', '127.0.0.1', ':8808', '127.0.0.1:99999', '127.0.0.1:', '[::1:80', 'unix:', 'example.org:80']) {
    const done = runProgram(t, ['serve', '--listen', address, '--config', '{config}'], { profile: { mcpServers: {} } });
    assert.equal(done.code, 2, address);
    assert.equal(done.stderr.split('is not a valid address').length, 2, done.stderr);
  }
});

test('a failed start is reported once', async (t) => {
  for (const more of [[], ['--single-process']]) {
    const done = runProgram(t, ['serve', '--listen', '192.0.2.1:1', ...more, '--config', '{config}'], { profile: { mcpServers: {} } });
    assert.equal(done.code, 1);
    assert.equal(done.stderr.split('192.0.2.1:1').length, 2, done.stderr);
  }
});

await run();
