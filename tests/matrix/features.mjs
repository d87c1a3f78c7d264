// Defines the features of the matrix, each as a function for all pairs of revisions. `x.client` is
// an open client (client.mjs), and `x.server` the revision of the server behind the gateway
// (content.mjs). A feature asserts what the client receives. All messages are also checked against
// the schemas.
import { strict as assert } from 'node:assert';
import { FORM, LINK, OUTPUT, PNG, SAMPLE, WATCHED, WAV, promptNames, resourceUris, since, toolNames } from './content.mjs';
import { until } from '../e2e/harness.mjs';

const textOf = (result) => {
  assert.equal(result.content.length, 1);
  assert.equal(result.content[0].type, 'text');
  return result.content[0].text;
};
const tool = (client, name, args = {}, options) => client.call('tools/call', { name, arguments: args }, options);
const json = async (client, name, args) => JSON.parse(textOf(await tool(client, name, args)));

// The client's responses to server-initiated requests.
export const ANSWERS = {
  'elicitation/create': { action: 'accept', content: { name: 'Ada' } },
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: '4' }, model: 'matrix' },
  'roots/list': { roots: [{ uri: 'file:///work', name: 'work' }] },
};
export const capabilitiesOf = (revision) => ({
  sampling: {},
  roots: {},
  ...(since(revision, '2025-11-25') ? { elicitation: { form: {}, url: {} } } : since(revision, '2025-06-18') ? { elicitation: {} } : {}),
});

// Calls a tool that sends a request to the client. The server must receive the client's response,
// and the client the server's request.
async function asked({ client }, name, method, check, answer = ANSWERS[method]) {
  client.asked.length = 0;
  client.answers = { ...ANSWERS, [method]: answer };
  assert.deepEqual(await json(client, name), answer);
  assert.deepEqual(client.asked.map((one) => one.method), [method]);
  check(client.asked[0].params);
}

// Makes a call for which a rule of the profile requires approval. The client approves or denies it.
async function decided(client, decision) {
  client.asked.length = 0;
  client.answers = { ...ANSWERS, 'elicitation/create': { action: 'accept', content: { decision } } };
  const before = await json(client, 'counts');
  const outcome = await tool(client, 'guarded').then(textOf, (error) => error);
  assert.equal(client.asked.length, 1);
  assert.match(client.asked[0].params.message, /Tool: guarded/);
  return { outcome, calls: (await json(client, 'counts')).guarded - before.guarded };
}

async function changed({ client }, kind, list, key, nameOf) {
  await client.watch({ kinds: [kind] });
  const before = client.notes.length;
  const name = textOf(await tool(client, 'change', { kind }));
  await until(`${kind}/list_changed`, () => client.notes.slice(before).some(({ method }) => method === `notifications/${kind}/list_changed`), 20_000);
  assert.ok((await client.list(list, key)).items.some((item) => nameOf(item).endsWith(name)), `${name} is listed`);
}

export const features = {
  async tools({ client, server }) {
    const { items } = await client.list('tools/list', 'tools');
    const names = items.map(({ name }) => name).filter((name) => !name.startsWith('extra_'));
    assert.deepEqual(names.sort(), toolNames(server).sort());
    assert.equal(items.find(({ name }) => name === 'echo').description, 'Tool echo');
    const args = { text: 'déjà', n: 1.5, deep: [{ a: null }] };
    assert.deepEqual(await json(client, 'echo', args), args);
    await assert.rejects(tool(client, 'nosuch'), ({ code }) => [-32601, -32602].includes(code));
  },
  async resources({ client }) {
    const { items } = await client.list('resources/list', 'resources');
    for (const uri of resourceUris) assert.ok(items.some((item) => item.uri === uri), uri);
    const { contents } = await client.call('resources/read', { uri: 'test://text' });
    assert.deepEqual(contents, [{ uri: 'test://text', mimeType: 'text/plain', text: 'content of test://text' }]);
    const code = since(client.revision, '2026-07-28') ? -32602 : -32002;
    await assert.rejects(client.call('resources/read', { uri: 'test://nosuch' }), { code });
  },
  async templates({ client }) {
    const { items } = await client.list('resources/templates/list', 'resourceTemplates');
    assert.deepEqual(items, [{ uriTemplate: 'test://item/{id}', name: 'item' }]);
    const { contents } = await client.call('resources/read', { uri: 'test://item/7' });
    assert.equal(contents[0].text, 'content of test://item/7');
  },
  async prompts({ client }) {
    const { items } = await client.list('prompts/list', 'prompts');
    for (const name of promptNames) assert.ok(items.some((item) => item.name === name), name);
    const { messages } = await client.call('prompts/get', { name: 'greet', arguments: { whom: 'Ada' } });
    assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'Greet Ada' } }]);
  },
  async completion({ client }) {
    for (const ref of [{ type: 'ref/prompt', name: 'greet' }, { type: 'ref/resource', uri: 'test://item/{id}' }]) {
      const { completion } = await client.call('completion/complete', { ref, argument: { name: 'whom', value: 'par' } });
      assert.deepEqual(completion, { values: ['paris', 'park'], total: 2, hasMore: false });
    }
  },
  async progress({ client }) {
    for (const token of ['a token', 17]) {
      await tool(client, 'progress', {}, { token });
      const got = client.notesOf('notifications/progress').filter(({ progressToken }) => progressToken === token);
      assert.deepEqual(got.map(({ progress, total }) => [progress, total]), [[1, 3], [2, 3], [3, 3]]);
    }
    const before = client.notes.length;
    await tool(client, 'progress');
    assert.deepEqual(client.notes.slice(before), [], 'without a token');
  },
  async log({ client }) {
    if (since(client.revision, '2026-07-28')) {
      await client.setLevel(undefined);
      await tool(client, 'log');
      assert.deepEqual(client.notes, [], 'without a level');
    }
    await client.setLevel('info');
    await tool(client, 'log');
    const got = client.notesOf('notifications/message').map(({ level, data }) => [level, data]);
    assert.deepEqual(got, [['info', { level: 'info' }], ['error', { level: 'error' }]]);
  },
  async cancel({ client }) {
    const before = await json(client, 'counts');
    const { id, done } = client.start('tools/call', { name: 'wait', arguments: {} });
    done.catch(() => {});
    const waits = (what, test) => until(what, async () => test(await json(client, 'counts')), 20_000);
    await waits('the call runs', ({ waiting }) => waiting === before.waiting + 1);
    await client.cancel(id);
    await waits('the server stops', ({ waiting, stopped }) => waiting === before.waiting && stopped === before.stopped + 1);
  },
  async list_changed(x) {
    await changed(x, 'tools', 'tools/list', 'tools', ({ name }) => name);
    await changed(x, 'prompts', 'prompts/list', 'prompts', ({ name }) => name);
    await changed(x, 'resources', 'resources/list', 'resources', ({ uri }) => uri);
  },
  async resource_updates({ client }) {
    await client.watch({ uris: [WATCHED] });
    await tool(client, 'touch');
    assert.equal((await client.note('notifications/resources/updated')).uri, WATCHED);
  },
  elicitation_form: (x) => asked(x, 'elicit', 'elicitation/create', ({ message, requestedSchema }) => {
    assert.ok(message.includes(FORM.message), message);
    assert.deepEqual(requestedSchema, FORM.requestedSchema);
  }),
  elicitation_url: (x) => asked(x, 'elicit_url', 'elicitation/create', ({ mode, message, url, elicitationId }) => {
    assert.deepEqual({ mode, url }, { mode: LINK.mode, url: LINK.url });
    assert.ok(message.includes(LINK.message), message);
    assert.equal(typeof elicitationId, since(x.client.revision, '2026-07-28') ? 'undefined' : 'string');
  }, { action: 'accept' }),
  sampling: (x) => asked(x, 'sample', 'sampling/createMessage', ({ messages, maxTokens }) => assert.deepEqual({ messages, maxTokens }, SAMPLE)),
  roots: (x) => asked(x, 'roots', 'roots/list', () => {}),
  async pagination({ client }) {
    const { items, pages } = await client.list('tools/list', 'tools');
    assert.equal(new Set(items.map(({ name }) => name)).size, items.length);
    assert.ok(items.length > 5, 'more than one page of the server');
    assert.ok(pages > 1, 'more than one page of the gateway');
    await assert.rejects(client.call('tools/list', { cursor: 'no such cursor' }), { code: -32602 });
  },
  async structured({ client }) {
    const { items } = await client.list('tools/list', 'tools');
    assert.deepEqual(items.find(({ name }) => name === 'structured').outputSchema, OUTPUT);
    const result = await tool(client, 'structured', { a: 2, b: 3 });
    assert.deepEqual(result.structuredContent, { sum: 5 });
    assert.deepEqual(JSON.parse(textOf(result)), { sum: 5 });
  },
  async binary({ client }) {
    const { contents } = await client.call('resources/read', { uri: 'test://blob' });
    assert.deepEqual(contents, [{ uri: 'test://blob', mimeType: 'image/png', blob: PNG }]);
    assert.deepEqual((await tool(client, 'image')).content, [{ type: 'image', data: PNG, mimeType: 'image/png' }]);
  },
  async approval({ client }) {
    const allowed = await decided(client, 'allow');
    assert.match(allowed.outcome, /^guarded \d+$/);
    assert.equal(allowed.calls, 1);
    const denied = await decided(client, 'deny');
    assert.match(denied.outcome.message, /needs approval, which was denied/);
    assert.equal(denied.calls, 0);
  },
  async rewrite({ client }) {
    const args = { text: 'rewrite this secret', other: [1.5, null] };
    const told = await json(client, 'echo', args);
    assert.deepEqual(told, { text: 'rewrite this [argument]', other: [1.5, null] }, 'the arguments');
    assert.deepEqual(await json(client, 'echo', { text: 'a hidden word' }), { text: 'a [result] word' }, 'the result');
  },
  async tasks({ client }) {
    const done = await client.task('job', { ms: 60 });
    assert.equal(done.status, 'completed');
    assert.equal(textOf(done.result), 'worked for 60 ms');
    assert.equal((await client.task('job', { ms: 5000 }, { cancel: true })).status, 'cancelled');
    assert.equal(textOf(await tool(client, 'job', { ms: 1 })), 'worked for 1 ms', 'without a task');
    await assert.rejects(client.call('tasks/get', { taskId: 'no such task' }));
  },
  async batch({ client }) {
    const call = (text) => ({ method: 'tools/call', params: { name: 'echo', arguments: { text } } });
    const [first, ping, second] = await Promise.all(client.batch([call('one'), { method: 'ping' }, call('two')]));
    assert.deepEqual([textOf(first), ping, textOf(second)], ['{"text":"one"}', {}, '{"text":"two"}']);
  },
  async audio({ client }) {
    assert.deepEqual((await tool(client, 'audio')).content, [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  },
};

// The rules in the gateway's profile that `approval` and `rewrite` need, and pages for `pagination`.
export const PROFILE = {
  limits: { page_items: 7 },
  approval: { elicitation: true },
  security: {
    rules: {
      mcp: {
        guard: { on: 'mcp.request', if: 'mcp.request.tool_name == "guarded"', decision: 'ask' },
        arguments: { on: 'mcp.request', if: 'mcp.request.tool_name == "echo"', decision: 'rewrite', rewrite_target: 'arguments =~ "secret"', rewrite_value: '[argument]' },
        results: { on: 'mcp.response', if: 'mcp.request.tool_name == "echo"', decision: 'rewrite', rewrite_target: 'response.text =~ "hidden"', rewrite_value: '[result]' },
      },
    },
  },
};

// What a cell asserts if its feature cannot exist between these revisions.
export const refusals = {
  // The server's revision does not have such a tool, so the gateway responds as for any unknown
  // tool.
  async unknownTool({ client }, name) {
    await assert.rejects(tool(client, name), ({ code, message }) => [-32601, -32602].includes(code) && message.includes(name));
  },
  // The client cannot declare the capability, so the server sends no request and reports this.
  async undeclared({ client }, name, capability) {
    client.asked.length = 0;
    const result = await tool(client, name);
    assert.equal(result.isError, true);
    assert.equal(textOf(result), `the client does not declare ${capability}`);
    assert.deepEqual(client.asked, []);
  },
  // The client cannot be asked for approval, so the call is rejected without being sent.
  async unapproved({ client }) {
    client.asked.length = 0;
    const before = await json(client, 'counts');
    await assert.rejects(tool(client, 'guarded'), ({ message }) => /needs approval, but no approval surface is available/.test(message));
    assert.equal((await json(client, 'counts')).guarded, before.guarded);
    assert.deepEqual(client.asked, []);
  },
  // The client cannot request a task, so the tool runs within the call.
  async withoutTask({ client }) {
    assert.equal(textOf(await tool(client, 'job', { ms: 1 })), 'worked for 1 ms');
  },
  // Only 2025-03-26 has batches. Otherwise there is one error without an ID, and no request is
  // executed.
  async batch({ client }) {
    client.anonymous.length = 0;
    const before = (await client.list('tools/list', 'tools')).items;
    client.batch([{ method: 'tools/call', params: { name: 'change', arguments: { kind: 'tools' } } }, { method: 'ping' }]);
    const error = await until('an error without an id', () => client.anonymous[0], 20_000);
    assert.equal(error.code, -32600);
    assert.match(error.message, /batch/i);
    assert.deepEqual((await client.list('tools/list', 'tools')).items, before);
  },
  // The client's revision does not have this kind of content, but receives what the server has sent.
  async foreignAudio(x) {
    await features.audio(x);
    assert.ok(x.client.errors.length > 0 && x.client.errors.every((error) => /CallToolResult.*content/.test(error)), x.client.errors.join());
    x.client.forgetErrors();
  },
  // The client's revision does not have this kind of content, so it receives a text.
  async asText({ client }, name) {
    const { content } = await tool(client, name);
    assert.deepEqual(content.map(({ type }) => type), ['text']);
    assert.match(content[0].text, /audio/);
  },
};
