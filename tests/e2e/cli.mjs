// Tests the command line: help, exit codes, lists, calls, import, completion and the banner.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assert, fake, filesBelow, program, run, runProgram, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const two = { mcpServers: { fs: fake('--tool', 'read', '--resource', 'file:///a', '--template', 'file:///{x}', '--prompt', 'ask'), other: fake('--tool', 'o') } };
const onStdout = (done) => {
  assert.equal(done.code, 0, done.stderr);
  return done.stdout;
};
const json = (done) => JSON.parse(onStdout(done));

test('every command has help with an example', async (t) => {
  const script = onStdout(runProgram(t, ['completion', 'bash']));
  const commands = [...script.matchAll(/^ {4}'([a-z ]*)'\) words=/gm)].map((found) => found[1]);
  assert.ok(commands.length > 40 && commands.includes('') && commands.includes('mcp disable'), commands.join());
  for (const command of commands) {
    if (command === 'relay doctor') continue; // same as the help of relay
    const text = onStdout(runProgram(t, [...command.split(' ').filter(Boolean), '--help']));
    assert.match(text, /Examples?.*:\n {2}\S/, command);
    // Examples may be wider, because they are copied.
    const wide = text.split(/^Examples?.*:$/m)[0].split('\n').filter((line) => line.length > 100);
    assert.deepEqual(wide, [], command);
  }
  assert.match(onStdout(runProgram(t, ['--version'])), /^bulkhead \d+\.\d+\.\d+\n$/);
});

test('the three commands that approve something name each other', async (t) => {
  const ends = [['approve'], ['approvals', 'allow'], ['pins', 'approve']].map((words) => onStdout(runProgram(t, [...words, '--help'])).trimEnd().split('\n\n').at(-1));
  assert.equal(new Set(ends).size, 1, show(ends));
  assert.equal(ends[0].replace(/\s+/g, ' ').trim(), '`bulkhead approve` approves the servers of a project file, `bulkhead approvals allow` a waiting call, and `bulkhead pins approve` tool definitions that have changed.');
  const none = 'bulkhead: no project file (.bulkhead.toml or .mcp.json) in the working directory; use --project FILE';
  for (const [words, hint] of [
    [['3f9c'], '; to allow a waiting call, use `bulkhead approvals allow 3f9c`'], [['3F9C01'], '; to allow a waiting call, use `bulkhead approvals allow 3F9C01`'],
    [[], ''], [['3f9'], ''], [['weather'], ''], [['3f9c', '3f9d'], ''],
  ]) {
    const done = runProgram(t, ['approve', ...words]);
    assert.deepEqual([done.code, done.stdout, done.stderr], [1, '', `${none}${hint}\n`]);
  }
});

test('each outcome has its exit code', async (t) => {
  for (const args of [[], ['srve'], ['serve', '--nonsense'], ['call'], ['serve', '--log-level', 'loud'], ['profile']]) {
    const done = runProgram(t, args);
    assert.equal(done.code, 2, `${args}: ${done.stderr}`);
    assert.equal(done.stdout, '');
    assert.notEqual(done.stderr, '');
  }
  for (const [words, of, meant] of [[['srve'], 'bulkhead', 'serve'], [['completion', 'fish'], 'bulkhead completion'], [['policy', 'expl'], 'bulkhead policy', 'explain'], [['aprovals'], 'bulkhead', 'approvals']]) {
    const { stderr } = runProgram(t, words);
    const hint = meant === undefined ? '' : `did you mean "${meant}"? `;
    assert.equal(stderr, `${of} has no command "${words.at(-1)}"; ${hint}\`${of} --help\` lists them.\n`);
  }
  for (const [words, meant] of [[['serve', '--conifg', 'x'], '--config'], [['calls', '--folow'], '--follow'], [['approvals', 'allow', '3f9c', '--minute=5'], '--minutes'], [['pins', 'approve', 'x', '--hahs', 'y'], '--hash']]) {
    const done = runProgram(t, words);
    assert.equal(done.code, 2);
    const unknown = words.find((word) => word.startsWith('--')).replace(/=.*/, '');
    const name = `bulkhead ${words.slice(0, words[0] === 'serve' || words[0] === 'calls' ? 1 : 2).join(' ')}`;
    assert.equal(done.stderr, `${name} has no option "${unknown}"; did you mean "${meant}"? \`${name} --help\` lists its options.\n`);
  }
  for (const [words, missing] of [[['logs'], 'NAME'], [['call'], 'NAME'], [['mcp', 'remove'], 'NAME'], [['policy', 'test'], 'FILE'], [['approvals', 'deny'], 'ID']]) {
    const name = `bulkhead ${words.join(' ')}`;
    const done = runProgram(t, words);
    assert.deepEqual([done.code, done.stderr], [2, `${name} requires ${missing}; \`${name} --help\` describes its arguments.\n`]);
  }
  assert.equal(runProgram(t, ['mcp']).stderr, 'bulkhead mcp requires a command; `bulkhead mcp --help` lists them.\n');
  assert.equal(runProgram(t, ['-v']).code, 2);
  for (const option of ['--port', '--host=::1', '-p']) {
    const { stderr } = runProgram(t, ['serve', option, '8080']);
    assert.equal(stderr, `bulkhead serve has no option "${option.replace(/=.*/, '')}"; use --listen ADDRESS:PORT. \`bulkhead serve --help\` lists its options.\n`);
  }
  assert.equal(runProgram(t, ['calls', '--port', '1']).stderr, 'bulkhead calls has no option "--port"; `bulkhead calls --help` lists its options.\n');
  assert.equal(runProgram(t, ['status', 'a', 'b']).stderr, 'bulkhead status does not expect the argument "a"; `bulkhead status --help` lists its arguments.\n');
  assert.doesNotMatch(runProgram(t, ['serve', '--zzzzzz']).stderr, /did you mean/);
  assert.equal(runProgram(t, ['status']).code, 3);
  assert.deepEqual(JSON.parse(runProgram(t, ['status', '--json']).stdout), { gateways: [] });
  assert.equal(runProgram(t, ['serve', '--config', 'missing.json']).code, 1);
  const unknown = runProgram(t, ['tools', '--server', 'nope', '--config', '{config}'], { profile: two });
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /nope.*fs other/);
});

test('lists are tables as text, and the original items as JSON', async (t) => {
  const tool = '{"name":"big","description":"First.\\nSecond \\u001b[2J","inputSchema":{"type":"object","maximum":1e400},"x-more":[-0.0]}';
  const profile = { mcpServers: { ...two.mcpServers, odd: fake('--tool-json', tool) } };
  const table = onStdout(runProgram(t, ['tools', '--config', '{config}'], { profile }));
  assert.match(table, /^NAME +DESCRIPTION\n/);
  assert.match(table, /^fs__read/m);
  assert.match(table, /^odd__big +First\.$/m);
  assert.ok(!table.includes('\u001b'));
  const raw = onStdout(runProgram(t, ['tools', '--server', 'odd', '--json', '--config', '{config}'], { profile }));
  assert.ok(raw.includes('"maximum":1e400') && raw.includes('"x-more":[-0.0]'), raw);
  assert.deepEqual(json(runProgram(t, ['tools', '--json', '--config', '{config}'], { profile: two })).tools.map((item) => item.name).sort(), ['fs__read', 'other__o']);
  const resources = json(runProgram(t, ['resources', '--json', '--config', '{config}'], { profile: two }));
  assert.deepEqual(resources.resources.map((item) => item.uri), ['bulkhead://fs/file:///a']);
  assert.equal(resources.resourceTemplates.length, 1);
  assert.match(onStdout(runProgram(t, ['prompts', '--config', '{config}'], { profile: two })), /^fs__ask/m);
});

test('B17 a call is routed by its name to builtin tools, a server, or an error', (t) => {
  const [folder, snapshots] = [t.path('w'), t.path('snapshots')];
  for (const one of [folder, snapshots]) mkdirSync(one);
  const profile = (prefix) => ({
    naming: { prefix, aliases: { snapshots_list: 'files__snapshots_list', builtin__fetch: 'local__fetch_http', old: 'files__gone' } },
    mcpServers: { github: fake('--tool', 'x') },
    tools: {
      local: { plugin: 'builtin-http' },
      files: { plugin: 'builtin-files', workspaces: [{ name: 'w', path: folder }], snapshots: { path: snapshots } },
    },
  });
  const call = (name, prefix = 'always') => runProgram(t, ['call', name, '--json', '--config', '{config}'], { profile: profile(prefix) });
  assert.match(call('local__fetch_http').stdout, /url.*"isError":true/);
  assert.match(call('builtin__fetch').stdout, /url.*"isError":true/);
  assert.match(onStdout(call('files__snapshots_list')), /snapshot/);
  assert.match(onStdout(call('snapshots_list')), /snapshot/);
  assert.match(onStdout(call('snapshots_list', 'never')), /snapshot/);
  assert.match(onStdout(call('github__x')), /"echo"/);
  for (const [name, why] of [['github__nosuch', /-32601: Tool not found: github__nosuch/], ['nosuch', /-32602: .*nosuch/], ['old', /-32601: Tool not found: files__gone/]]) {
    const none = call(name);
    assert.equal(none.code, 1);
    assert.match(none.stderr, why);
  }
});

test('a server that does not start is reported and does not hide the others', async (t) => {
  const profile = { mcpServers: { ...two.mcpServers, broken: { command: '/no/such/command' } } };
  const done = runProgram(t, ['tools', '--config', '{config}'], { profile });
  assert.match(onStdout(done), /fs__read/);
  assert.match(done.stderr, /broken/);
  assert.equal(runProgram(t, ['tools', '--server', 'broken', '--config', '{config}'], { profile }).code, 1);
  const web = { command: '/bin/sh', args: ['-c', 'echo Listening on port 3000; exit 3'] };
  const banner = runProgram(t, ['tools', '--config', '{config}'], { profile: { mcpServers: { ...two.mcpServers, web } } });
  assert.match(onStdout(banner), /fs__read/);
  assert.match(banner.stderr, /web.*exited with status 3; it printed "Listening on port 3000" to standard output, which must carry only MCP messages/);
});

test('if no server is reachable, a list fails', (t) => {
  const profile = { mcpServers: { broken: { command: '/no/such/command' }, off: { ...two.mcpServers.fs, enabled: false } } };
  const done = runProgram(t, ['tools', '--config', '{config}'], { profile });
  assert.equal(done.code, 1);
  assert.equal(done.stdout, '');
  assert.match(done.stderr, /server broken: failed: .*\n.*no server is available/);
});

test('a profile without tools causes a hint how to enable the builtin tools', (t) => {
  const profile = '[security]\ndefault = "allow"\n';
  const listed = runProgram(t, ['tools', '--config', '{config}'], { profile, file: 'gateway.toml' });
  assert.equal(listed.code, 0, listed.stderr);
  assert.match(listed.stderr, /no servers and no tools, so nothing is offered.*\[tools\.files\]/);
  const shown = runProgram(t, ['profile', 'show', '--config', '{config}'], { profile, file: 'gateway.toml' });
  assert.match(shown.stderr, /nothing is offered/);
});

test('a server that exits with an exception is reported with its message, not its location', (t) => {
  const profile = { mcpServers: { node: { command: process.execPath, args: ['-e', "require('/no/such/module.js')"] } } };
  const done = runProgram(t, ['tools', '--config', '{config}'], { profile });
  assert.equal(done.code, 1);
  assert.match(done.stderr, /its last lines: Error: Cannot find module '\/no\/such\/module\.js'/);
  assert.doesNotMatch(done.stderr, /Module\._/);
});

test('doctor reports each fault and its remedy', async (t) => {
  const profile = { mcpServers: { good: fake('--tool', 'a'), bad: { command: 'no-such-command' } } };
  const sick = runProgram(t, ['doctor', '--config', '{config}'], { profile });
  assert.equal(sick.code, 1);
  assert.match(sick.stdout, /^ok    server good: 1 tool, MCP 2025-11-25$/m);
  assert.match(sick.stdout, /^FAIL  server bad: command "no-such-command".*was not found on PATH\n {6}\S/m);
  assert.doesNotMatch(sick.stdout, /bad\.log/);  // no gateway has written this log
  const broken = { mcpServers: { x: { comand: 'y' } } };
  const said = JSON.parse(runProgram(t, ['doctor', '--json', '--config', '{config}'], { profile: broken }).stdout);
  assert.ok(said.some(({ result, text }) => result === 'FAIL' && /comand/.test(text)), JSON.stringify(said));
  const healthy = runProgram(t, ['doctor', '--config', '{config}'], { profile: { mcpServers: { good: fake('--tool', 'a') } } });
  assert.equal(healthy.code, 0, healthy.stdout);
  assert.doesNotMatch(healthy.stdout, /^FAIL/m);
});

test('call prints text, or the result with --json; errors cause exit code 1', async (t) => {
  const profile = {
    mcpServers: {
      fs: fake('--tool', 'read', '--tool', 'bad', '--result', 'bad={"content":[{"type":"text","text":"no such file"}],"isError":true}', '--tool', 'picture', '--result', 'picture={"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}'),
      never: { command: '/no/such/command' },
    },
  };
  const call = (...args) => runProgram(t, ['call', '--config', '{config}', ...args], { profile, input: '{"from":"stdin"}' });
  assert.match(onStdout(call('fs__read', '{"path":"x"}')), /fake\/read/);
  assert.match(onStdout(call('fs__read', '-', '--json')), /"from":"stdin"|from.*stdin/);
  const bad = call('fs__bad');
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /no such file/);
  assert.match(onStdout(call('fs__picture')), /\[image image\/png, 3 bytes/);
  const near = call('fs__raed');
  assert.equal(near.code, 1);
  assert.match(near.stderr, /did you mean "fs__read"\?/);
  const unknown = call('fs__nothing');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /fs__nothing/);
  for (const text of ['[1]', '{', '{"a":1}x', '']) {
    if (text !== '') assert.equal(call('fs__read', text).code, 2, text);
  }
});

test('serve prints its address, servers and client configuration', async (t) => {
  const gateway = await t.gateway({ mcpServers: { ...two.mcpServers, off: { command: 'x', disabled: true } } });
  await until('the table is printed', () => /off +stdio +disabled/.test(gateway.stderr()));
  const text = gateway.stderr();
  assert.match(text, /fs +stdio +ready +1/);
  assert.ok(text.includes(`claude mcp add --transport http bulkhead ${gateway.url}`));
  for (const file of ['.vscode/mcp.json', '~/.cursor/mcp.json', '~/.gemini/settings.json', 'bulkhead.log']) assert.ok(text.includes(file), file);
  for (const block of text.match(/^ +\{ .*\}$/gm)) {
    const servers = Object.values(JSON.parse(block))[0];
    assert.equal(servers.bulkhead.url ?? servers.bulkhead.httpUrl, gateway.url);
  }
  assert.equal(gateway.stdoutText, '', 'standard output is left alone');
  const status = await statusOf(gateway);
  assert.equal(status.endpoints[0], gateway.url);
  const people = onStdout(runProgramIn(gateway, ['status']));
  assert.match(people, /fs +stdio +ready/);
});

// Runs the program in the environment of the gateway, where `status` can find it.
function runProgramIn(gateway, args) {
  try {
    return { code: 0, stdout: execFileSync(program, args, { env: gateway.env(), encoding: 'utf8' }), stderr: '' };
  } catch (error) {
    return { code: error.status, stdout: error.stdout, stderr: error.stderr };
  }
}

test('state, log and sockets are private, and the socket is removed with the gateway', async (t) => {
  const gateway = await t.gateway(two);
  const made = [...filesBelow(join(gateway.dir, 'state')), ...filesBelow(join(gateway.dir, 'bulkhead'))];
  const paths = made.map(({ path }) => path);
  assert.ok(paths.some((path) => path.endsWith('bulkhead.log')) && paths.some((path) => path.endsWith('.sock')), paths.join(' '));
  for (const { path, mode } of made) assert.equal(mode & 0o077, 0, path);
  await gateway.stop();
  assert.deepEqual(readdirSync(join(gateway.dir, 'bulkhead')), []);
});

test('a second signal terminates the gateway immediately and removes its sockets', async (t) => {
  const gateway = await t.gateway({ mcpServers: { slow: fake('--tool', 'a', '--ignore-eof', '--ignore-term') } });
  gateway.mayExit = true;
  gateway.child.kill('SIGTERM');
  gateway.child.kill('SIGINT');
  await gateway.exited;
  assert.deepEqual(readdirSync(join(gateway.dir, 'bulkhead')), []);
});

test('a port in use is reported with exit code 1', async (t) => {
  const gateway = await t.gateway(two);
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', `127.0.0.1:${gateway.port}`], { profile: two });
  assert.equal(done.code, 1);
  assert.match(done.stderr, new RegExp(`127\\.0\\.0\\.1:${gateway.port}`));
  assert.match(done.stderr, /already in use by another program/);
  // With the same runtime directory, the program recognizes its own gateway.
  const own = await execute(program, ['serve', '--config', gateway.config, '--listen', `127.0.0.1:${gateway.port}`], { env: gateway.env(), timeout: 20_000 })
    .catch((error) => error);
  assert.equal(own.code, 1, show(own));
  assert.match(own.stderr, new RegExp(`127\\.0\\.0\\.1:${gateway.port}: the address is already in use by your gateway with pid ${gateway.pid} `));
});

test('one signal stops the gateway and its servers in order', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const gateway = await t.gateway(two);
    gateway.mayExit = true;
    gateway.child.kill(signal);
    await gateway.exited;
    assert.deepEqual(gateway.exit, { code: 0, signal: null }, signal);
  }
});

test('stdio writes only MCP to standard output, and exits when its input is closed', async (t) => {
  const client = await t.stdio(two);
  assert.equal((await client.tool('fs__read')).content[0].text, 'fake/read');
  const child = spawn(program, ['stdio', '--config', 'missing.json'], { cwd: t.dir });
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  const code = await new Promise((done) => child.on('close', done));
  assert.equal(code, 1);
  assert.equal(out, '');
});

test('the builtin servers run without configuration', async (t) => {
  const namesIn = (folder) => {
    mkdirSync(join(folder, 'home'), { recursive: true });
    const done = runProgram(t, ['tools', '--json'], { env: { HOME: join(folder, 'home') } });
    return json(done).tools.map((tool) => tool.name);
  };
  const names = namesIn(t.path('elsewhere'));
  assert.ok(names.includes('http__fetch_http'), names.join(' '));
  assert.ok(names.some((name) => name.startsWith('files__')), names.join(' '));
  // The file tools are disabled in the home directory, because it contains keys of all kinds.
  const done = runProgram(t, ['tools', '--json']);
  assert.ok(!done.stdout.includes('files__'), done.stdout);
  assert.match(runProgram(t, ['profile', 'show']).stderr, /builtin file tools are disabled/);
});

test('the default profile is read, and profile show prints the origin of each value', async (t) => {
  const home = t.path('home');
  mkdirSync(join(home, 'bulkhead'), { recursive: true });
  writeFileSync(join(home, 'bulkhead/profile.toml'), '[mcpServers.mine]\ncommand = "x"\nenv = { TOKEN = "${env:MY_SECRET}" }\n');
  const env = { XDG_CONFIG_HOME: home, MY_SECRET: 'hunter22' };
  const text = onStdout(runProgram(t, ['profile', 'show', '--origin'], { env }));
  assert.match(text, /mcpServers\.mine\.command += x +file .*profile\.toml:2/);
  assert.ok(!text.includes('hunter22'), text);
  const shown = json(runProgram(t, ['profile', 'show', '--json'], { env }));
  assert.equal(shown.find((value) => value.path === 'transports.http.listen').layer, 'builtin');
});

test('plugin list shows installed and used plugins', async (t) => {
  const found = json(runProgram(t, ['plugin', 'list', '--json']));
  const stdio = found.find((plugin) => plugin.id === 'connector-stdio');
  assert.match(stdio.used_for, /servers of type stdio/);
  assert.deepEqual(stdio.error, '');
  assert.match(onStdout(runProgram(t, ['plugin', 'list'])), /^transport-http +\S+ +bh\.transport/m);
  assert.equal(runProgram(t, ['plugin', 'list', '--plugin-dir', t.dir]).code, 1);
});

test('import shows servers of other projects with their project and does not write them', async (t) => {
  const home = t.path('home');
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, '.claude.json'), JSON.stringify({ numStartups: 1, projects: { '/p/one': { mcpServers: { proj: { command: 'x' } } } } }));
  const written = join(home, 'profile.toml');
  const done = runProgram(t, ['import', '--write', written, '--no-warm'], { env: { HOME: home } });
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /\.claude\.json of \/p\/one\s+proj\s+x/);
  assert.match(done.stdout, /other projects are not imported.*run `bulkhead import` in the\nfolder of each project/);
  assert.doesNotMatch(readFileSync(written, 'utf8'), /proj/);
  const { configs } = JSON.parse(runProgram(t, ['import', '--json'], { env: { HOME: home } }).stdout);
  assert.deepEqual(configs.map((config) => [config.project, config.servers]), [['/p/one', ['proj']]]);
});

test('import shows the servers of clients and writes a profile without secrets', async (t) => {
  const first = runProgram(t, ['import']);
  assert.match(onStdout(first), /No client/);
  const home = t.path('home');
  mkdirSync(join(home, '.cursor'), { recursive: true });
  writeFileSync(join(home, '.cursor/mcp.json'), JSON.stringify({ mcpServers: { weather: { command: 'npx', args: ['-y', 'w'], env: { WEATHER_API_KEY: 'k123-secret-value' } } } }));
  const env = { HOME: home };
  const shown = onStdout(runProgram(t, ['import'], { env }));
  assert.match(shown, /Cursor +~\/\.cursor\/mcp\.json +weather/);
  assert.ok(!shown.includes('k123'), shown);
  const target = t.path('new/profile.toml');
  mkdirSync(t.path('new'));
  writeFileSync(`${target}.new`, 'somebody else\'s');
  const wrote = onStdout(runProgram(t, ['import', '--write', target, '--no-warm'], { env }));
  assert.match(wrote, /WEATHER_API_KEY/);
  const text = readFileSync(target, 'utf8');
  assert.ok(text.includes('weather') && !text.includes('k123'), text);
  assert.equal(statSync(target).mode & 0o777, 0o600);
  const again = runProgram(t, ['import', '--write', target, '--no-warm'], { env });
  assert.match(onStdout(again), /^Already in the profile, kept: weather$/m);
  onStdout(runProgram(t, ['import', '--write', target, '--force', '--no-warm'], { env }));
  assert.equal(readFileSync(target, 'utf8'), text);
  assert.deepEqual(readdirSync(t.path('new')).sort(), ['profile.toml', 'profile.toml.new']);
  assert.ok(json(runProgram(t, ['import', '--json'], { env })).configs.length === 1);
});

test('import adds servers to a profile, keeps its servers, and names servers that other clients still start', async (t) => {
  const home = t.path('home');
  const [cursor, claude] = [join(home, '.cursor/mcp.json'), join(home, '.claude.json')];
  mkdirSync(join(home, '.cursor'), { recursive: true });
  const bulkhead = { command: 'bulkhead', args: ['stdio'] };
  const time = { command: 'uvx', args: ['time'] };
  const web = { url: 'http://127.0.0.1:9/' };
  const notes = { command: 'notes', env: { DIR: '/n', NOTES_TOKEN: 'k123-secret-value' } };
  writeFileSync(cursor, JSON.stringify({ mcpServers: { bulkhead, time, web, notes, idle: { command: 'i', disabled: true } } }));
  writeFileSync(claude, JSON.stringify({ mcpServers: { time, web: { ...web, headers: { A: '1' } } } }));
  const target = t.path('profile.toml');
  const before = '# mine\n[mcpServers.time]\ncommand = "uvx" # pinned\nargs = ["time"]\nsandbox = "strict"\n\n[mcpServers.notes]\ncommand = "notes"\nenv = { DIR = "/other" }\n\n[limits]\nsessions = 7\n';
  writeFileSync(target, before);
  const env = { HOME: home };
  const write = (...words) => runProgram(t, ['import', '--write', target, '--no-warm', ...words], { env });
  const text = onStdout(write());
  assert.match(text, /^Added: web, idle, web-2$|^Added: web, web-2, idle$/m);
  assert.match(text, /^Already in the profile, kept: time$/m);
  assert.match(text, /^Not changed: notes has a different definition in Cursor, ~\/\.cursor\/mcp\.json \(differs in: env\.DIR, env\.NOTES_TOKEN\); use --force/m);
  assert.match(text, /run twice:\n.*\n *Claude Code +~\/\.claude\.json +time, web\n *Cursor +~\/\.cursor\/mcp\.json +time, web\nRemove these entries/);
  assert.match(text, /^ {2}Claude Code, Cursor: `bulkhead serve` prints the entry$/m);
  assert.match(text, /^web-2 starts the same program as web \(differs in: headers\.A\); it was added as disabled$/m);
  assert.match(text, /^skipped bulkhead: it is this gateway$/m);
  assert.ok(!text.includes('k123'), text);
  assert.ok(readFileSync(target, 'utf8').startsWith(before), 'the profile stays as it is');
  const servers = () => Object.fromEntries(json(runProgram(t, ['mcp', 'list', '--json', '--config', target], { env: { ...env, NOTES_TOKEN: 'x' } })).servers.map((server) => [server.name, server]));
  assert.deepEqual(Object.keys(servers()).sort(), ['idle', 'notes', 'time', 'web', 'web-2']);
  assert.equal(servers().idle.disabled, true);

  const forced = json(write('--force', '--json'));
  assert.deepEqual(forced.servers.map((server) => [server.name, server.state, server.differences]).sort(), [
    ['idle', 'kept', []], ['notes', 'replaced', ['env.DIR', 'env.NOTES_TOKEN']], ['time', 'kept', []], ['web', 'kept', []], ['web-2', 'kept', []],
  ]);
  assert.deepEqual(forced.started_twice, [
    { client: 'Claude Code', file: claude, servers: ['time', 'web'] },
    { client: 'Cursor', file: cursor, servers: ['time', 'web', 'notes'] },
  ]);
  assert.match(forced.secrets[0], /^NOTES_TOKEN from .*mcp\.json$/);
  const after = readFileSync(target, 'utf8');
  assert.match(after, /^command = "uvx" # pinned$/m);
  assert.match(after, /^sessions = 7$/m);
  assert.match(after, /^DIR = "\/n"$/m);

  // A client whose entries were removed is not listed, and an unreadable profile is not changed.
  writeFileSync(cursor, JSON.stringify({ mcpServers: { bulkhead } }));
  assert.deepEqual(json(write('--json')).started_twice.map((one) => one.client), ['Claude Code']);
  writeFileSync(target, '[broken');
  const failed = write();
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /profile\.toml: line 1/);
  assert.equal(readFileSync(target, 'utf8'), '[broken');
});

test('import skips the gateway in every spelling, and prints entries for the clients that serve does not print', async (t) => {
  const home = t.path('home');
  const put = (file, text) => {
    mkdirSync(join(home, file, '..'), { recursive: true });
    writeFileSync(join(home, file), text);
  };
  const remote = (url) => ({ command: 'npx', args: ['-y', 'mcp-remote', url] });
  put('.codeium/windsurf/mcp_config.json', JSON.stringify({ mcpServers: {
    default: remote('http://localhost:8808/mcp'), port: { serverUrl: 'http://127.0.0.1:18999/mcp' }, far: { serverUrl: 'http://127.0.0.1:18998/mcp' },
    shell: { command: 'bash', args: ['-c', 'exec bulkhead stdio'] }, env: { command: '/usr/bin/env', args: ['bulkhead', 'stdio'] }, one: { command: 'one' } } }));
  put('.codex/config.toml', '[mcp_servers.one]\ncommand = "one"\n');
  put('.config/zed/settings.json', JSON.stringify({ context_servers: { one: { command: 'one' } } }));
  put('.cursor/mcp.json', JSON.stringify({ mcpServers: { one: { command: 'one' } } }));
  const target = t.path('profile.toml');
  writeFileSync(target, '[transports.http]\nplugin = "transport-http"\nlisten = "127.0.0.1:18999"\n');
  const text = onStdout(runProgram(t, ['import', '--write', target, '--no-warm'], { env: { HOME: home } }));
  const skipped = [...text.matchAll(/^skipped (.*): it is this gateway$/gm)].map((match) => match[1]);
  assert.deepEqual(skipped.sort(), ['default', 'env', 'port', 'shell']);
  assert.match(text, /^Added: one, far$|^Added: far, one$/m);
  assert.deepEqual([...readFileSync(target, 'utf8').matchAll(/^\[mcpServers\.(\w+)\]/gm)].map((match) => match[1]).sort(), ['far', 'one']);
  assert.match(text, /^ {2}Cursor: `bulkhead serve` prints the entry$/m);
  const start = { command: program, args: ['stdio', '--config', target] };
  assert.deepEqual(JSON.parse(/^ {2}Windsurf\n {4}(.*)$/m.exec(text)[1]), { mcpServers: { bulkhead: start } });
  assert.deepEqual(JSON.parse(/^ {2}Zed\n {4}(.*)$/m.exec(text)[1]), { context_servers: { bulkhead: { source: 'custom', ...start } } });
  assert.ok(text.includes(`  Codex\n    [mcp_servers.bulkhead]\n    command = "${program}"\n    args = ["stdio", "--config", "${target}"]\n`), text);
  const shown = json(runProgram(t, ['import', '--json'], { env: { HOME: home } }));
  assert.deepEqual(shown.skipped.sort(), ['default', 'env', 'shell'], 'without the profile, only the default port is known');
});

test('bash accepts the completion script', async (t) => {
  const script = onStdout(runProgram(t, ['completion', 'bash']));
  const out = execFileSync('bash', ['-c', `${script}\nCOMP_WORDS=(bulkhead ser); COMP_CWORD=1; _bulkhead; echo "\${COMPREPLY[@]}"`], { encoding: 'utf8' });
  assert.equal(out, 'serve\n');
});

await run();
