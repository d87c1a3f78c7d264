// Tests upstream servers that misbehave at startup, later, and at shutdown.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { alive, assert, fake, processesWith, run, show, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const pidIn = (log) => processesWith(log)[0];

test('A19 the gateway starts with the servers that work', async (t) => {
  const gateway = await t.gateway({
    limits: { connect_timeout_ms: 20_000 },
    mcpServers: { one: fake('--tool', 'a'), two: fake('--tool', 'b'), third: { command: '/no/such/program' } },
  });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['one__a', 'two__b']);
  const { servers } = await statusOf(gateway);
  assert.deepEqual(servers.map((server) => server.state).sort(), ['failed', 'ready', 'ready']);
  const third = servers.find((server) => server.name === 'third');
  assert.equal(third.state, 'failed');
  assert.match(third.reason, /no\/such\/program|No such file/);
  await until('a warning names it', () => /third/.test(gateway.stderr()));
});

test('A20 the error of a call to a lost server names the server, and other servers continue', async (t) => {
  const [log, broken] = [t.path('log'), t.path('broken')];
  const gateway = await t.gateway({
    mcpServers: { lost: fake('--tool', 'a', '--log', log, '--fail-while', broken), fine: fake('--tool', 'b') },
  });
  const client = await t.http(gateway);
  await client.tools();
  writeFileSync(broken, '');
  process.kill(pidIn(log), 'SIGKILL');
  await until('its end is detected', async () => (await statusOf(gateway)).servers.some((s) => s.name === 'lost' && s.state !== 'ready'));
  await assert.rejects(client.tool('lost__a'), (error) => error.code !== undefined && /\blost\b/.test(error.message));
  assert.equal((await client.tool('fine__b')).content[0].text, 'fake/b');
});

test('G14 tools of a crashed server are removed after the grace period and return later', async (t) => {
  const [log, broken] = [t.path('log'), t.path('broken')];
  const gateway = await t.gateway({
    naming: { separator: ':' },
    limits: { grace_ms: 300, retry_min_ms: 50, retry_max_ms: 200 },
    mcpServers: { lost: fake('--tool', 'a', '--log', log, '--fail-while', broken), fine: fake('--tool', 'b') },
  });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual((await client.toolNames()).sort(), ['fine:b', 'lost:a']);
  writeFileSync(broken, '');
  process.kill(pidIn(log), 'SIGKILL');
  await client.note('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), ['fine:b']);
  await client.tool('fine:b');
  rmSync(broken);
  await client.note('notifications/tools/list_changed');
  assert.deepEqual((await client.toolNames()).sort(), ['fine:b', 'lost:a']);
  assert.equal((await client.tool('lost:a')).content[0].text, 'fake/a');
});

test('a crash and quick restart within the grace period does not change the list', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ limits: { grace_ms: 5000 }, mcpServers: { up: fake('--tool', 'a', '--log', log) } });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  const before = pidIn(log);
  process.kill(before, 'SIGKILL');
  await until('it is restarted', () => pidIn(log) && pidIn(log) !== before);
  await until('it answers', () => client.tool('up__a'));
  assert.deepEqual(await client.toolNames(), ['up__a']);
  assert.equal(client.notes.length, 0);
});

test('F20 after the connect timeout, 10 s by default, the server is killed', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ limits: { retry_min_ms: 60_000, retry_max_ms: 60_000 }, mcpServers: { mute: fake('--hang', 'initialize', '--log', log, '--ignore-eof') } });
  const started = gateway.startedAt;
  await until('the child runs', () => existsSync(log));
  const pid = pidIn(log);
  const failed = await until('it failed', async () => (await statusOf(gateway)).servers.find((s) => s.name === 'mute' && s.state === 'failed'), 40_000);
  const took = Date.now() - started;
  assert.ok(took > 9000, `${took} ms`);
  // The time-out that remained for initialize. Wall time has no useful upper limit.
  const [, remained] = /did not respond to initialize within (\d+) ms/.exec(failed.reason) ?? assert.fail(failed.reason);
  assert.ok(Number(remained) <= 10_000, failed.reason);
  await until('the child has ended', () => !alive(pid));
});

test('pending calls fail immediately with the name of the server and are not repeated', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { up: fake('--tool', 'die', '--tool', 'slow', '--die', 'die', '--delay', 'slow=20000', '--log', log, '--stderr', 'last words of a child') } });
  const client = await t.http(gateway);
  await client.tools();
  const slow = client.tool('up__slow').catch((error) => error);
  await until('the slow call arrives', () => readFileSync(log, 'utf8').includes('"slow"'));
  const died = await client.tool('up__die').catch((error) => error);
  for (const error of [died, await slow]) {
    assert.match(error.message, /\bup\b/);
    assert.equal(error.code, -32603);
    assert.match(error.message, /^-32603 tool call failed: server "/);
  }
  assert.match(died.message, /told to die|last words/, 'the last lines of its standard error are in the error');
  await until('it is back', () => client.call('ping').then(async () => (await statusOf(gateway)).servers[0].state === 'ready'));
  await sleep(200);
  const calls = readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('< ') && line.includes('tools/call'));
  assert.equal(calls.length, 2, 'each call ran once');
});

test('shutdown kills servers that ignore all signals, and their child processes', async (t) => {
  const [log, grandchild] = [t.path('log'), t.path('grandchild')];
  const gateway = await t.gateway({
    limits: { shutdown_grace_ms: 300 },
    mcpServers: { stubborn: fake('--tool', 'a', '--log', log, '--ignore-eof', '--ignore-term', '--grandchild', grandchild) },
  });
  await (await t.http(gateway)).tools();
  const pids = processesWith(log);
  assert.equal(pids.length, 2, 'the server and its child');
  await gateway.stop();
  await until('all have ended', () => !pids.some(alive));
});

// If the status were 404, the client would assume that the call was not executed and can be
// retried.
for (const args of [[], ['--single-process']]) {
  const how = args.length ? 'in one process' : 'in compartments';
  test(`after SIGTERM, in-flight calls may finish within the grace period; then the error names calls that may have run (${how})`, async (t) => {
    const gateway = await t.gateway({
      limits: { shutdown_grace_ms: 4000 },
      mcpServers: { s: fake('--tool', 'soon', '--delay', 'soon=700', '--tool', 'never', '--hang', 'tool:never') },
    }, { args });
    gateway.mayExit = true;
    const client = await t.http(gateway);
    await client.toolNames();
    const soon = client.tool('s__soon');
    const never = client.tool('s__never').catch((error) => error);
    await until('both are in flight', async () => (await statusOf(gateway)).servers[0].in_flight === 2);
    process.kill(gateway.pid, 'SIGTERM');
    assert.equal((await soon).content[0].text, 'fake/soon');
    const error = await never;
    assert.equal(error.code, -32603, show(error));
    assert.match(error.message, /the gateway is stopping; server "s" may have run the request$/);
    assert.deepEqual(await gateway.exited, { code: 0, signal: null });
  });
}

test('a child\'s standard error is stored up to a limit', async (t) => {
  const gateway = await t.gateway({
    limits: { stderr_bytes: 65_536 },
    mcpServers: { chatty: fake('--tool', 'a', '--stderr-flood', 2_000_000) },
  });
  const client = await t.http(gateway);
  await client.tool('chatty__a');
  const { execFileSync } = await import('node:child_process');
  const sizes = execFileSync('find', [gateway.dir, '-type', 'f', '-name', '*chatty*', '-printf', '%s\n'], { encoding: 'utf8' });
  const total = sizes.split('\n').reduce((sum, size) => sum + Number(size), 0);
  assert.ok(total > 0 && total <= 3 * 65_536, `${total} bytes`);
});

test('the first list waits for a limited time; later tools are announced', async (t) => {
  const gateway = await t.gateway({
    limits: { first_list_wait_ms: 3000 },
    mcpServers: { early: fake('--tool', 'a'), late: fake('--tool', 'b', '--init-delay', '8000'), soon: fake('--tool', 'c', '--init-delay', '50') },
  });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual((await client.toolNames()).sort(), ['early__a', 'soon__c']);
  assert.equal((await statusOf(gateway)).servers.find((server) => server.name === 'late').state, 'connecting');
  await client.note('notifications/tools/list_changed');
  assert.deepEqual((await client.toolNames()).sort(), ['early__a', 'late__b', 'soon__c']);
});

test('a call to a server that is still starting waits for it', async (t) => {
  const gateway = await t.gateway({ limits: { first_list_wait_ms: 50 }, mcpServers: { late: fake('--tool', 'b', '--init-delay', '3000') } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), []);
  const said = await client.tool('late__b').catch((error) => error);
  // Either the call waits, or the error names the server that is not ready.
  if (said instanceof Error) assert.match(said.message, /late/);
  else assert.equal(said.content[0].text, 'fake/b');
});

test('a ping from a server is answered', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x', '--unsolicited-ask', 'ping', '--log', log) } });
  await (await t.http(gateway)).tool('a__x');
  await until('the answer', () => /^< .*"id":"unsolicited".*"result":\{\}/m.test(readFileSync(log, 'utf8')));
});

await run({ parallel: 4 });
