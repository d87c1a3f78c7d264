// Tests the fixtures and clients with each other, without a gateway. All other tests depend on
// them.
import { assert, fakeMcp, member, path, run, test, until, StdioClient } from './lib.mjs';
import { readFileSync } from 'node:fs';

const ODD = '{"big":123456789012345678901,"huge":1e400,"neg":-0.0,"s":"\\ud83d\\ude00\\u0000","k":1,"k":2}';

test('fixture stdio: bytes, pages, list_changed, log', async (t) => {
  const log = t.path('log');
  const args = ['--tool', 'a', '--tool', 'b', '--add', 'a=c', '--page-size', '1', '--log', log, '--extra-members'];
  const client = await t.spawn(fakeMcp, args);
  assert.deepEqual(await client.toolNames(), ['a', 'b']);
  const answer = await client.request('tools/call', `{"name":"a","arguments":${ODD}}`);
  assert.equal(member(answer.resultText, 'echo'), ODD);
  await client.note('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), ['a', 'b', 'c']);
  await assert.rejects(client.tool('nope'), { code: -32602 });
  await client.close();
  const lines = readFileSync(log, 'utf8').split('\n');
  assert.ok(lines.some((line) => line.startsWith('< ') && line.includes(ODD)));
  assert.equal(lines.at(-2), '! eof');
});

test('fixture stdio: ask, progress, delay, errors, death', async (t) => {
  const client = await t.spawn(
    fakeMcp,
    ['--tool', 'ask', '--ask', 'ask={"method":"roots/list"}', '--tool', 'slow', '--delay', 'slow=50', '--progress', '3',
      '--tool', 'bad', '--error', 'bad={"code":-5,"message":"m","data":[1e400]}', '--tool', 'die', '--die', 'die'],
    { capabilities: { roots: {} }, onAsk: () => ({ roots: [] }) },
  );
  const asked = await client.tool('ask');
  assert.deepEqual(asked.asked, { result: { roots: [] } });
  await client.tool('slow', {}, { meta: { progressToken: 'tok' } });
  assert.equal(client.notes.filter((note) => note.params.progressToken === 'tok').length, 3);
  await assert.rejects(client.tool('bad'), (error) => error.code === -5 && error.data[0] === Infinity);
  await assert.rejects(client.tool('die'));
  assert.deepEqual(await client.exited, { code: 3, signal: null });
});

test('fixture stdio: dirty start, hangs', async (t) => {
  const client = new StdioClient(fakeMcp, ['--banner', '--tool', 'a', '--hang', 'tools/list', '--init-delay', '30'], {});
  t.defer(() => client.close());
  await client.initialize();
  assert.ok(client.lines[0].startsWith('Welcome'));
  const list = client.call('tools/list').then(() => 'answered', () => 'ended');
  assert.equal(await Promise.race([list, new Promise((r) => setTimeout(r, 100, 'waiting'))]), 'waiting');
});

test('fixture HTTP: JSON, SSE, session rules, polling, ask', async (t) => {
  const fake = await t.fakeHttp();
  const client = await t.http(fake.url, { capabilities: { elicitation: {} }, onAsk: () => ({ action: 'accept', content: {} }) });
  assert.ok((await client.toolNames()).includes('echo_sse'));
  for (const [tool, via] of [['echo', 'json'], ['echo_sse', 'sse']]) {
    const answer = await client.request('tools/call', `{"name":"${tool}","arguments":${ODD}}`);
    assert.equal(answer.via, via);
    assert.equal(path(answer.raw, 'result', 'echo'), ODD);
  }
  assert.deepEqual((await client.tool('ask')).asked.result.action, 'accept');
  assert.equal((await client.tool('poll', { x: 1 })).echo.x, 1);
  await assert.rejects(client.tool('drop'), /without an answer/);
  await client.listen();
  await client.tool('grow');
  assert.equal((await client.note('notifications/tools/list_changed')).via, 'get');
  const wrong = await client.exchange('POST', { body: '{}', headers: { ...client.headers(), 'mcp-session-id': 'x' } });
  assert.equal(wrong.status, 404);
  await client.close();
  assert.deepEqual([fake.opened, fake.deleted], [1, 1]);
  assert.equal(fake.messages('tools/call').at(-1).headers['mcp-protocol-version'], '2025-11-25');
});

test('fixture HTTP: failures', async (t) => {
  const fake = await t.fakeHttp();
  const client = await t.http(fake.url, { leaveOpen: true });
  for (const mode of ['401', '404', '500']) {
    fake.mode = mode;
    await assert.rejects(client.tool('echo'), { status: Number(mode) });
  }
  fake.mode = 'ok';
  fake.forgetSessions();
  await assert.rejects(client.tool('echo'), { status: 404 });
});

test('fixture HTTP: HTTP+SSE', async (t) => {
  const fake = await t.fakeHttp({ streamable: false });
  const { SSEClientTransport } = await (await import('./lib.mjs')).importFromNpm('@modelcontextprotocol/sdk/client/sse.js');
  const { Client } = await (await import('./lib.mjs')).importFromNpm('@modelcontextprotocol/sdk/client/index.js');
  const client = new Client({ name: 'x', version: '1' });
  await client.connect(new SSEClientTransport(new URL(fake.sseUrl)));
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 9);
  await client.close();
  await until('the stream is closed', () => fake.oldStreams.size === 0);
});

await run();
