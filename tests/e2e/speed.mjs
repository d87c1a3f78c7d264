// Measures the goals of the aggregator specification on this machine (row G15). Wall time varies on
// a shared machine, so the best of three rounds counts.
import { assert, fake, fakeMcp, run, test } from './lib.mjs';

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const ms = (start) => Number(process.hrtime.bigint() - start) / 1e6;
async function timed(body) {
  const start = process.hrtime.bigint();
  await body();
  return ms(start);
}
async function best(rounds, body) {
  let least = Infinity;
  for (let i = 0; i < rounds; ++i) least = Math.min(least, await body());
  return least;
}

test('G15 the start of ten servers, concurrent calls, a long list and the added latency are within the goals', async (t) => {
  const mcpServers = {};
  for (let i = 0; i < 10; ++i) mcpServers[`s${i}`] = fake('--tools', 12);
  const started = process.hrtime.bigint();
  const gateway = await t.gateway({ mcpServers });
  const client = await t.http(gateway);
  assert.equal((await client.toolNames()).length, 120);
  const ready = ms(started);
  assert.ok(ready < 5000, `ready after ${ready} ms`);

  const stdio = await t.stdio({ mcpServers });
  assert.equal((await stdio.toolNames()).length, 120);
  const call = (i) => stdio.tool(`s${i % 10}__tool_${i % 12}`, { i });
  const calls = await best(3, () => timed(() => Promise.all(Array.from({ length: 100 }, (_, i) => call(i)))));
  const list = await best(3, () => timed(() => stdio.call('tools/list', {})));
  const direct = await t.spawn(fakeMcp, ['--tools', '12']);
  const one = async (where, name) => {
    const times = [];
    for (let i = 0; i < 200; ++i) times.push(await timed(() => where.tool(name, { i })));
    return median(times);
  };
  const added = await best(3, async () => (await one(stdio, 's3__tool_3')) - (await one(direct, 'tool_3')));
  console.log(`    ready ${ready.toFixed(0)} ms, 100 calls ${calls.toFixed(1)} ms, list ${list.toFixed(2)} ms, added ${added.toFixed(3)} ms a call`);
  assert.ok(calls < 200, `100 concurrent calls took ${calls} ms`);
  assert.ok(list < 50, `a list of 120 tools took ${list} ms`);
  assert.ok(added < 1, `${added} ms added a call`);
});

await run();
