// Configuration: shapes that people have, names, filters, and errors that say where.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assert, fake, run, runProgram, test } from './lib.mjs';
import { statusOf } from './status.mjs';

test('A17 names that are refused, the others load', async (t) => {
  const gateway = await t.gateway({ mcpServers: { '': fake('--tool', 'x'), builtin: fake('--tool', 'x'), a__b: fake('--tool', 'x'), good: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['good__x']);
  const said = gateway.stderr();
  assert.match(said, /name is empty/);
  assert.match(said, /builtin.*reserved/);
  assert.match(said, /a__b.*separator/);
});

test('F01 the VS Code form, with comments', async (t) => {
  const text = `{
    // what VS Code writes
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

test('F01 the mcpServers form, as TOML too', async (t) => {
  const { command } = fake();
  const toml = `[mcpServers.weather]\ncommand = ${JSON.stringify(command)}\nargs = ["--tool", "get_forecast"]\n[mcpServers.off]\ncommand = "/no/such"\ndisabled = true\n`;
  const gateway = await t.gateway(toml);
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['weather__get_forecast']);
  const { servers } = await statusOf(gateway);
  assert.equal(servers.find((server) => server.name === 'off').state, 'disabled');
});

test('F02 variables are expanded in env only, and stay out of everything we write', async (t) => {
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
  const files = readdirSync(gateway.dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), 'latin1')]);
  for (const [name, text] of [...files, ['profile show', shown.stdout], ['stderr', gateway.stderr()]]) {
    assert.ok(!text.includes('k123-secret'), name);
  }
});

test('F05 allowTools and denyTools hold for lists and calls', async (t) => {
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

test('G13 configuration errors: distinct, with file and line, all at once', async (t) => {
  const show = (profile, file) => runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile, file });
  const missing = show(undefined);
  const broken = show('{"mcpServers": {"a": {"command": "x",}\n  "b"');
  const wrong = show('{\n "mcpServers": {\n  "a": {"command": 5},\n  "b": {"command": "x", "comand": "y"}\n }\n}');
  const variable = show({ mcpServers: { a: { command: 'x', env: { T: '${env:NO_SUCH_VARIABLE}' } } } });
  for (const done of [missing, broken, wrong, variable]) assert.equal(done.code, 1, done.stderr);
  assert.match(missing.stderr, /file_not_found/);
  assert.match(broken.stderr, /invalid_json/);
  assert.match(broken.stderr, /gateway\.json:2/);
  assert.match(wrong.stderr, /invalid_schema/);
  assert.match(wrong.stderr, /gateway\.json:3.*mcpServers\.a\.command/);
  assert.match(wrong.stderr, /gateway\.json:4.*comand/, 'all errors at once');
  assert.match(variable.stderr, /missing_env_var/);
  assert.match(variable.stderr, /mcpServers\.a\.env\.T/);
  assert.match(variable.stderr, /NO_SUCH_VARIABLE/);
});

test('G16 the separator', async (t) => {
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

test('names without prefix; collisions are refused by name', async (t) => {
  const one = await t.gateway({ naming: { prefix: 'never' }, mcpServers: { a: fake('--tool', 'x', '--resource', 'r:1'), b: fake('--tool', 'y') } });
  const client = await t.http(one);
  assert.deepEqual((await client.toolNames()).sort(), ['x', 'y']);
  assert.equal((await client.tool('y')).content[0].text, 'fake/y');
  assert.equal((await client.all('resources/list', 'resources'))[0].uri, 'r:1');
  const two = await t.gateway({ naming: { prefix: 'never' }, mcpServers: { a: fake('--tool', 'x'), b: fake('--tool', 'x', '--tool', 'y') } });
  const other = await t.http(two);
  assert.equal((await other.toolNames()).filter((name) => name === 'x').length <= 1, true);
  const { collisions } = await statusOf(two);
  assert.match(JSON.stringify(collisions), /\bx\b/);
});

await run();
