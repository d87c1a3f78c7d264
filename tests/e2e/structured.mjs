// Tests structured results. The official client validates structuredContent of each builtin tool
// that has an outputSchema, and text and structured content must be equivalent.
import { createServer } from 'node:http';
import { mkdirSync, writeFileSync } from 'node:fs';
import { assert, importFromNpm, run, test } from './lib.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await importFromNpm(`${sdk}/client/streamableHttp.js`);

async function connected(t, tools) {
  const gateway = await t.gateway({ tools });
  const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities: {} });
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => client.close());
  const listed = (await client.listTools()).tools; // from now on, the client validates results
  const called = new Set();
  const call = async (name, args) => {
    called.add(name);
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, JSON.stringify(result));
    return result;
  };
  const uncalled = () => listed.filter((tool) => tool.outputSchema !== undefined && !called.has(tool.name)).map((tool) => tool.name);
  return { listed, call, uncalled };
}

// Returns what a model needs to choose a tool and to fill in its arguments.
function described({ name, title, description, annotations, inputSchema }) {
  assert.match(description, /^[A-Z][^]{20,299}\.$/, name);
  assert.ok(title.length <= 40 && annotations.title === title, name);
  for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) assert.equal(typeof annotations[hint], 'boolean', name);
  assert.equal(inputSchema.additionalProperties, false, name);
  for (const [key, property] of Object.entries(inputSchema.properties)) {
    const speaks = property.description ?? (property.default !== undefined || property.enum !== undefined ? 'by itself' : undefined);
    assert.ok(property.type !== undefined && (speaks !== undefined || key === 'new_text'), `${name}: ${key} is not described`);
  }
  for (const key of inputSchema.required ?? []) assert.ok(inputSchema.properties[key], `${name}: ${key}`);
}

test('each web tool returns valid structured content', async (t) => {
  const server = createServer((req, res) => res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', 'x-odd': 'caf\u00e9' }).end('one\ntwo é\nthree\n'.repeat(1000))).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  t.defer(() => server.close());
  t.defer(() => server.closeAllConnections());
  const url = `http://127.0.0.1:${server.address().port}/`;
  const methods = ['get', 'post', 'put', 'patch', 'delete', 'head'];
  const { listed, call, uncalled } = await connected(t, { web: { plugin: 'builtin-http', allow_addresses: ['127.0.0.0/8'], methods } });
  assert.deepEqual(listed.filter((tool) => tool.outputSchema === undefined).map((tool) => tool.name), ['web__echo']);
  listed.forEach(described);
  const page = await call('web__fetch_http', { url });
  assert.ok(page.content[0].text.endsWith(`\n\n${page.structuredContent.text}`));
  assert.equal(page.structuredContent.next_start_index, 5000);
  const found = (await call('web__grep_http', { url, pattern: '^T', max_matches: 3 })).structuredContent;
  assert.deepEqual(found.matches, [{ line: 2, text: 'two é' }, { line: 3, text: 'three' }, { line: 5, text: 'two é' }]);
  assert.equal(found.more, true);
  const head = (await call('web__http_headers', { url })).structuredContent;
  assert.equal(head.status, 200);
  assert.deepEqual(head.headers.find((one) => one.name.toLowerCase() === 'x-odd').value, '<binary>');
  for (const method of methods) {
    const { structuredContent } = await call(`web__http_${method}`, { url, max_length: 7 });
    assert.equal(structuredContent.status, 200);
    assert.equal(structuredContent.body, method === 'head' ? '' : 'one\ntwo');
  }
  assert.deepEqual(uncalled(), []);
});

test('each file tool returns valid structured content', async (t) => {
  const work = t.path('work');
  const kept = t.path('kept');
  for (const path of [work, kept]) mkdirSync(path);
  writeFileSync(`${work}/a.txt`, 'one\ntwo\n');
  const { listed, call, uncalled } = await connected(t, { files: { plugin: 'builtin-files', path: work, write: true, snapshots: { path: kept, interval_s: 0 } } });
  listed.forEach(described);
  const made = (await call('files__snapshots_create', { name: 'one' })).structuredContent;
  assert.equal(made.checkpoint, 'cp-10');
  assert.equal((await call('files__file_read', { path: 'a.txt' })).structuredContent.text, 'one\ntwo\n');
  await call('files__file_edit', { path: 'a.txt', old_text: 'two', new_text: 'three' });
  await call('files__file_write', { path: 'd/b.txt', content: 'x' });
  await call('files__file_move', { from: 'd/b.txt', to: 'd/c.txt' });
  await call('files__dir_list', {});
  await call('files__dir_tree', {});
  await call('files__file_info', { path: 'a.txt' });
  const { matches } = (await call('files__file_search', { content: 'T[a-z]+e$', regex: true, ignore_case: true })).structuredContent;
  assert.deepEqual(matches, [{ path: 'a.txt', line: 2, text: 'three' }]);
  for (const format of ['text', 'json']) {
    await call('files__snapshots_changes', { format });
    await call('files__snapshots_list', { format });
  }
  await call('files__snapshots_history', { path: 'a.txt' });
  await call('files__snapshots_revert', { path: 'a.txt' });
  await call('files__file_delete', { path: 'd', recursive: true });
  await call('files__snapshots_create', { name: 'two' });
  await call('files__snapshots_compact', { checkpoints: ['cp-10', 'cp-11'] });
  const last = (await call('files__snapshots_list', { format: 'json' })).structuredContent.snapshots[0].checkpoint;
  await call('files__snapshots_delete', { checkpoint: last });
  assert.deepEqual(uncalled(), []);
});

await run();
