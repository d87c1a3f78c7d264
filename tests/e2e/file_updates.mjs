// Tests subscriptions to workspace files with the official client: with compartments and with
// --single-process, during a reload and after the crash of a compartment.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { assert, importFromNpm, run, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await importFromNpm(`${sdk}/client/streamableHttp.js`);
const { ResourceUpdatedNotificationSchema } = await importFromNpm(`${sdk}/types.js`);
const modes = { compartments: [], 'one process': ['--single-process'] };

async function workspace(t, args, more = {}) {
  const work = t.path('work');
  mkdirSync(`${work}/d`, { recursive: true });
  writeFileSync(`${work}/d/a b.txt`, 'one');
  writeFileSync(`${work}/other.txt`, 'one');
  const gateway = await t.gateway({ tools: { files: { plugin: 'builtin-files', path: work, write: true } }, ...more }, { args });
  const connect = async () => {
    const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities: {} });
    const updates = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updates.push(params.uri));
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
    t.defer(() => client.close());
    const { resourceTemplates } = await client.listResourceTemplates();
    const uri = (path) => resourceTemplates[0].uriTemplate.replace('{+path}', path);
    const told = async (path, change) => {
      updates.length = 0;
      change();
      await until(`an update of ${path}`, () => updates.includes(uri(path)), 10_000);
    };
    const read = async (path) => (await client.readResource({ uri: uri(path) })).contents[0].text;
    return { client, updates, uri, told, read };
  };
  return { work, gateway, connect };
}

for (const [mode, args] of Object.entries(modes)) {
  test(`writing, replacing, deleting and recreating a subscribed file is reported (${mode})`, async (t) => {
    const { work, connect } = await workspace(t, args);
    const { client, updates, uri, told, read } = await connect();
    assert.equal(client.getServerCapabilities().resources.subscribe, true);
    const path = 'd/a%20b.txt';
    await client.subscribeResource({ uri: uri(path) });
    await told(path, () => writeFileSync(`${work}/d/a b.txt`, 'two'));
    assert.equal(await read(path), 'two');
    await told(path, () => {
      writeFileSync(`${work}/d/next`, 'three');
      renameSync(`${work}/d/next`, `${work}/d/a b.txt`);
    });
    assert.equal(await read(path), 'three');
    await told(path, () => rmSync(`${work}/d`, { recursive: true }));
    await assert.rejects(read(path), /there is no/);
    await told(path, () => {
      mkdirSync(`${work}/d`);
      writeFileSync(`${work}/d/a b.txt`, 'four');
    });
    assert.equal(await read(path), 'four');
    // Only the subscribed file causes notifications. After unsubscribing, it does not.
    await client.subscribeResource({ uri: uri('other.txt') });
    await client.unsubscribeResource({ uri: uri(path) });
    await told('other.txt', () => {
      writeFileSync(`${work}/d/a b.txt`, 'five');
      writeFileSync(`${work}/other.txt`, 'two');
    });
    assert.deepEqual(updates.filter((one) => one !== uri('other.txt')), []);
  });

  test(`each client is notified of its own subscriptions (${mode})`, async (t) => {
    const { work, connect } = await workspace(t, args);
    const one = await connect();
    const two = await connect();
    for (const { client, uri } of [one, two]) await client.subscribeResource({ uri: uri('other.txt') });
    await two.client.subscribeResource({ uri: two.uri('d/a%20b.txt') });
    await one.told('other.txt', () => writeFileSync(`${work}/other.txt`, 'two'));
    await until('the other client is notified, too', () => two.updates.includes(two.uri('other.txt')));
    await one.client.close();
    await two.told('other.txt', () => writeFileSync(`${work}/other.txt`, 'three'));
    await two.told('d/a%20b.txt', () => writeFileSync(`${work}/d/a b.txt`, 'two'));
    assert.ok(!one.updates.includes(one.uri('d/a%20b.txt')));
  });

  test(`an invalid subscription is rejected with the reason (${mode})`, async (t) => {
    const { connect } = await workspace(t, args);
    const { client, uri } = await connect();
    await assert.rejects(client.subscribeResource({ uri: uri('d') }), /not a regular file/);
    await assert.rejects(client.subscribeResource({ uri: uri('../x') }), /\.\./);
    await assert.rejects(client.subscribeResource({ uri: uri('').replace(/file:.*/, 'file:///etc/passwd') }), /no workspace has/);
  });
}

for (const [mode, args] of Object.entries(modes)) {
  test(`subscriptions survive a new configuration of the plugin (${mode})`, async (t) => {
    const { work, gateway, connect } = await workspace(t, args);
    const { client, uri, told } = await connect();
    await client.subscribeResource({ uri: uri('other.txt') });
    const hasWrite = async () => (await client.listTools()).tools.some((tool) => tool.name === 'files__file_write');
    assert.ok(await hasWrite());
    writeFileSync(gateway.config, JSON.stringify({ tools: { files: { plugin: 'builtin-files', path: work } } }));
    process.kill(gateway.pid, 'SIGHUP');
    await until('the new configuration', async () => !(await hasWrite()));
    let n = 0;
    await told('other.txt', () => {
      const timer = setInterval(() => writeFileSync(`${work}/other.txt`, `change ${++n}`), 200);
      t.defer(() => clearInterval(timer));
    });
    await client.unsubscribeResource({ uri: uri('other.txt') });
  });
}

test('subscriptions survive a crash of the compartment', async (t) => {
  const { work, gateway, connect } = await workspace(t, []);
  const { client, uri, told, read } = await connect();
  await client.subscribeResource({ uri: uri('other.txt') });
  const pidOf = async () => (await statusOf(gateway)).compartments.find((c) => c.name === 'files' && c.state === 'running')?.pid;
  const pid = await pidOf();
  process.kill(pid, 'SIGKILL');
  await until('another process', async () => ![undefined, pid].includes(await pidOf()));
  await until('it answers', () => read('other.txt').then(() => true, () => false));
  // The test cannot detect when the new process has subscribed, so it repeats the change.
  let n = 0;
  await told('other.txt', () => {
    const timer = setInterval(() => writeFileSync(`${work}/other.txt`, `change ${++n}`), 200);
    t.defer(() => clearInterval(timer));
  });
});

test('subscriptions survive a crash of the endpoint', async (t) => {
  const { work, gateway, connect } = await workspace(t, []);
  const { client, uri, told } = await connect();
  await client.subscribeResource({ uri: uri('other.txt') });
  const { pid } = (await statusOf(gateway)).compartments.find((c) => c.name === 'endpoint');
  process.kill(pid, 'SIGKILL');
  let n = 0;
  await told('other.txt', () => {
    const timer = setInterval(() => writeFileSync(`${work}/other.txt`, `change ${++n}`), 200);
    t.defer(() => clearInterval(timer));
  });
});

await run();
