// Measures the goals of the aggregator specification on this machine (row G15). Wall time varies on
// a shared machine, so the best round counts. If three rounds miss the goal, up to ten are tried.
import { assert, fake, fakeMcp, run, test } from './lib.mjs';

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const ms = (start) => Number(process.hrtime.bigint() - start) / 1e6;
async function timed(body) {
  const start = process.hrtime.bigint();
  await body();
  return ms(start);
}
async function best(goal, body) {
  let least = Infinity;
  for (let i = 0; i < 10 && (i < 3 || least >= goal); ++i) least = Math.min(least, await body());
  return least;
}
const goals = { ready: 5000, calls: 200, list: 50, added: 1 }; // milliseconds

test('G15 the start of ten servers, concurrent calls, a long list and the added latency are within the goals', async (t) => {
  const mcpServers = {};
  for (let i = 0; i < 10; ++i) mcpServers[`s${i}`] = fake('--tools', 12);
  let ready = Infinity;
  for (let i = 0; i < 3 && ready >= goals.ready; ++i) {
    const started = process.hrtime.bigint();
    const gateway = await t.gateway({ mcpServers });
    const client = await t.http(gateway);
    assert.equal((await client.toolNames()).length, 120);
    ready = ms(started);
  }
  assert.ok(ready < goals.ready, `ready after ${ready} ms`);

  const stdio = await t.stdio({ mcpServers });
  assert.equal((await stdio.toolNames()).length, 120);
  const call = (i) => stdio.tool(`s${i % 10}__tool_${i % 12}`, { i });
  const calls = await best(goals.calls, () => timed(() => Promise.all(Array.from({ length: 100 }, (_, i) => call(i)))));
  const list = await best(goals.list, () => timed(() => stdio.call('tools/list', {})));
  const direct = await t.spawn(fakeMcp, ['--tools', '12']);
  const one = async (where, name) => {
    const times = [];
    for (let i = 0; i < 200; ++i) times.push(await timed(() => where.tool(name, { i })));
    return median(times);
  };
  const added = await best(goals.added, async () => (await one(stdio, 's3__tool_3')) - (await one(direct, 'tool_3')));
  console.log(`    ready ${ready.toFixed(0)} ms, 100 calls ${calls.toFixed(1)} ms, list ${list.toFixed(2)} ms, added ${added.toFixed(3)} ms a call`);
  assert.ok(calls < goals.calls, `100 concurrent calls took ${calls} ms`);
  assert.ok(list < goals.list, `a list of 120 tools took ${list} ms`);
  assert.ok(added < goals.added, `${added} ms added a call`);
});

await run();
