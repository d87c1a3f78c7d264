// Tests tasks: the extension of 2026-07-28, the experimental tasks of 2025-11-25, and what happens
// between the two.
import { fileURLToPath } from 'node:url';
import { Guest } from './frames.mjs';
import { assert, importFromNpm, node, npmDir, run, show, sleep, test, until } from './lib.mjs';
import { Records } from './records.mjs';
import { PREFIX, httpOf, lines, meta } from './stateless_client.mjs';

const script = fileURLToPath(new URL('../fixtures/task_server.mjs', import.meta.url));
const server = (revision, log, ...flags) => ({ command: node, args: [script, revision, log, ...flags], sandbox: 'off' });
const TASKS = `${PREFIX}tasks`;
const declaring = (more) => ({ [`${PREFIX}clientCapabilities`]: { extensions: { [TASKS]: {} }, ...more } });
const DECLARED = declaring({});
const RELATED = `${PREFIX}related-task`;
const textOf = (result) => result.content[0].text;
const STATELESS = '2026-07-28', SESSIONS = '2025-11-25';

// A client of 2026-07-28 that declares the extension in each request.
class StatelessTasks {
  constructor(http, declared) {
    this.http = http;
    this.declared = declared;
  }
  send(method, params, more = this.declared) {
    return this.http.send(method, params, { more });
  }
  async result(method, params) {
    const { answer } = await this.send(method, params);
    assert.equal(answer.error, undefined, show(answer));
    return answer.result;
  }
  async refused(method, params, code, message) {
    const { answer } = await this.send(method, params);
    assert.equal(answer.error?.code, code, show(answer));
    assert.match(answer.error.message, message);
    return answer.error;
  }
  async start(name, args = {}) {
    const task = await this.result('tools/call', { name, arguments: args });
    assert.equal(task.resultType, 'task', show(task));
    return task;
  }
  get(taskId) {
    return this.result('tasks/get', { taskId });
  }
  ended(taskId) {
    return until('the task ends', async () => {
      const task = await this.get(taskId);
      return ['completed', 'failed', 'cancelled'].includes(task.status) && task;
    });
  }
}
const statelessOf = async (t, gateway, declared = DECLARED) => new StatelessTasks(await httpOf(t, gateway), declared);

const refused = (promise, code, message) => assert.rejects(promise, (error) => {
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return true;
});
async function startedBy(client, name, args = {}) {
  const { task } = await client.call('tools/call', { name, arguments: args, task: { ttl: 60_000 } });
  return task;
}
const endedFor = (client, taskId) => until('the task ends', async () => {
  const task = await client.call('tasks/get', { taskId });
  return ['completed', 'failed', 'cancelled'].includes(task.status) && task;
});

// ---- 2026-07-28 on both sides ----------------------------------------------------------------

test('2026-07-28: a task from its call to its result, with servers whose ids collide', async (t) => {
  const logs = { a: t.path('a'), b: t.path('b') };
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, logs.a), b: server(STATELESS, logs.b) } });
  const client = await statelessOf(t, gateway);
  const { capabilities } = await client.result('server/discover', {});
  assert.deepEqual(capabilities.extensions, { [TASKS]: {} });
  const one = await client.start('a__job', { ms: 50, text: 'from a' });
  const two = await client.start('b__job', { text: 'from b' });
  const [created] = lines(logs.a, '>', undefined).filter(({ result }) => result?.resultType === 'task');
  assert.equal(created.result.taskId, 'task-1');
  const { _meta, ...members } = one;
  assert.deepEqual({ ...members, taskId: 'task-1' }, created.result, 'only the id is replaced');
  assert.notEqual(one.taskId, two.taskId);
  for (const { taskId } of [one, two]) assert.match(taskId, /^[A-Za-z0-9_-]{60,}$/);
  const [ended, other] = [await client.ended(one.taskId), await client.ended(two.taskId)];
  assert.deepEqual([textOf(ended.result), textOf(other.result)], ['from a', 'from b']);
  assert.deepEqual([ended.taskId, other.taskId], [one.taskId, two.taskId], 'the id is always the one that the client knows');
  assert.deepEqual([ended.resultType, ended.status, ended.ttlMs, ended.pollIntervalMs], ['complete', 'completed', 60_000, 20]);
  // Each server received its own id, and the declaration.
  for (const log of Object.values(logs)) {
    const [got] = lines(log, '<', 'tasks/get');
    assert.equal(got.params.taskId, 'task-1');
    assert.deepEqual(got.params._meta[`${PREFIX}clientCapabilities`], { extensions: { [TASKS]: {} } });
  }
  const broken = await client.ended((await client.start('a__broken')).taskId);
  assert.deepEqual([broken.status, broken.result.isError], ['completed', true]);
  const failed = await client.ended((await client.start('a__fails', { text: 'no disk' })).taskId);
  assert.deepEqual([failed.status, failed.error], ['failed', { code: -32603, message: 'no disk' }]);
  assert.equal(textOf(await client.result('tools/call', { name: 'a__count' })), '4', 'the server may respond without a task');
});

test('2026-07-28: input for a task, and its cancellation', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, log) } });
  const client = await statelessOf(t, gateway, declaring({ elicitation: {} }));
  const { taskId } = await client.start('a__asks');
  const undeclared = await until('the gateway refuses the request for input', async () => {
    const { answer } = await client.send('tasks/get', { taskId }, DECLARED);
    return answer.error;
  });
  assert.equal(undeclared.code, -32603);
  assert.match(undeclared.message, /elicitation\/create, which requires a capability that was not declared to it/);
  const asking = await until('the task asks', async () => {
    const task = await client.get(taskId);
    return task.status === 'input_required' && task;
  });
  assert.equal(asking.inputRequests.who.params.message, 'Which name?');
  const inputResponses = { who: { action: 'accept', content: { name: 'Ada' } } };
  const updated = await client.result('tasks/update', { taskId, inputResponses });
  assert.equal(updated.resultType, 'complete');
  assert.equal(textOf((await client.ended(taskId)).result), 'hello Ada');
  const [sent] = lines(log, '<', 'tasks/update');
  assert.deepEqual([sent.params.taskId, sent.params.inputResponses], ['task-1', inputResponses]);

  const slow = await client.start('a__job', { ms: 60_000 });
  assert.equal((await client.result('tasks/cancel', { taskId: slow.taskId })).resultType, 'complete');
  assert.equal((await client.get(slow.taskId)).status, 'cancelled');
  assert.equal(lines(log, '<', 'tasks/cancel')[0].params.taskId, 'task-2');
  // The server's own errors are relayed.
  await client.refused('tasks/cancel', { taskId: slow.taskId }, -32602, /has ended/);
});

test('2026-07-28: requests of clients that do not declare the extension', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, log) } });
  const client = await statelessOf(t, gateway);
  const { taskId } = await client.start('a__job', { ms: 60_000 });
  const requests = [
    ['tasks/get', { taskId }], ['tasks/cancel', { taskId }], ['tasks/update', { taskId, inputResponses: {} }],
    ['subscriptions/listen', { notifications: { taskIds: [taskId] } }],
  ];
  for (const [method, params] of requests) {
    const { status, answer } = await client.send(method, params, {});
    assert.equal(status, 400);
    assert.equal(answer.error.code, -32021, show(answer));
    assert.deepEqual(answer.error.data, { requiredCapabilities: { extensions: { [TASKS]: {} } } });
  }
  assert.equal(lines(log, '<', 'tasks/get').length, 0);
  // The server does not create tasks for such clients.
  const { answer } = await client.send('tools/call', { name: 'a__job', arguments: { text: 'at once' } }, {});
  assert.equal(textOf(answer.result), 'at once');
  const [first, second] = lines(log, '<', 'tools/call');
  assert.deepEqual(first.params._meta[`${PREFIX}clientCapabilities`], { extensions: { [TASKS]: {} } });
  assert.deepEqual(second.params._meta[`${PREFIX}clientCapabilities`], {}, 'the declaration is valid for one request');
  // Methods of the other revision.
  for (const method of ['tasks/result', 'tasks/list']) {
    const got = await client.send(method, { taskId });
    assert.deepEqual([got.status, got.answer.error.code], [404, -32601]);
  }
});

for (const [revision, name] of [[STATELESS, '2026-07-28'], [SESSIONS, '2025-11-25']]) {
  test(`${name}: ids that are foreign, forged, truncated or of another principal are unknown`, async (t) => {
    const log = t.path('log');
    const socket = t.path('guest.sock');
    const gateway = await t.gateway({
      transports: {
        http: { plugin: 'transport-http', listen: '127.0.0.1:0' },
        guests: { plugin: 'transport-vsock', listen: `unix:${socket}` },
      },
      mcpServers: { a: server(revision, log) },
    }, { listen: null });
    const stateless = revision === STATELESS;
    const client = stateless ? await statelessOf(t, gateway) : await t.http(gateway);
    const { taskId } = stateless ? await client.start('a__job', { ms: 60_000 }) : await startedBy(client, 'a__job', { ms: 60_000 });
    const guest = new Guest(t, socket);
    const ask = async (method, id) => {
      const { error } = await guest.request(method, { taskId: id, inputResponses: {}, _meta: meta(DECLARED) });
      return error;
    };
    const own = async (method, params) => (stateless
      ? (await client.send(method, { inputResponses: {}, ...params })).answer.error
      : client.call(method, params).then(() => undefined, ({ error }) => error));
    const methods = stateless ? ['tasks/get', 'tasks/update', 'tasks/cancel'] : ['tasks/get', 'tasks/result', 'tasks/cancel'];
    const wrong = ['task-1', '', 'no such task', taskId.slice(0, -1), taskId.slice(1), `${taskId}A`, taskId.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))];
    for (const method of methods) {
      for (const id of wrong) {
        const error = await own(method, { taskId: id });
        assert.equal(error?.code, -32602, `${method} ${id}: ${show(error)}`);
        assert.match(error.message, /Task not found/);
      }
      for (const params of [{}, { taskId: 7 }]) {
        if (!stateless) assert.match((await own(method, params)).message, /requires params\.taskId/);
      }
    }
    // The guest of another principal learns nothing about a valid id of this client.
    if (stateless) {
      for (const method of methods) {
        assert.deepEqual(await ask(method, taskId), await ask(method, 'no such task'));
        assert.equal((await ask(method, taskId)).code, -32602);
      }
    }
    for (const method of [...methods, 'tasks/list']) assert.equal(lines(log, '<', method).length, 0, 'nothing reached the server');
    if (stateless) assert.equal((await client.get(taskId)).status, 'working');
    else assert.equal((await client.call('tasks/get', { taskId })).status, 'working');
  });
}

// ---- rules, records and limits -----------------------------------------------------------------

const RULES = {
  job: { on: 'mcp.request', if: 'mcp.request.tool_name == "job" && has(mcp.request.arguments.text) && mcp.request.arguments.text == "forbidden"', decision: 'block' },
  mask: { on: 'mcp.response', if: 'mcp.request.tool_name in ["job", "message"]', decision: 'rewrite', rewrite_target: 'response.text =~ "secret"', rewrite_value: '***' },
  hide: { on: 'mcp.response', if: 'mcp.request.tool_name == "fails" && mcp.response.text.contains("password")', decision: 'block' },
};

test('2026-07-28: rules about results apply to the results of tasks', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, log) }, security: { rules: { mcp: RULES } } });
  const client = await statelessOf(t, gateway);
  const { taskId } = await client.start('a__job', { text: 'a secret' });
  const done = await client.ended(taskId);
  assert.equal(textOf(done.result), 'a ***');
  assert.deepEqual([done.taskId, done.status, done.ttlMs], [taskId, 'completed', 60_000]);
  const status = await client.start('a__message', { text: 'my secret' });
  assert.equal(status.statusMessage, 'my ***');
  const shown = await client.get(status.taskId);
  assert.deepEqual([shown.statusMessage, shown.taskId], ['my ***', status.taskId]);
  const failing = await client.start('a__fails', { text: 'the password', ms: 50 });
  await until('the task has failed', () => lines(log, '>', undefined).length && sleep(100).then(() => true));
  const error = await client.refused('tasks/get', { taskId: failing.taskId }, -32600, /blocked by policy/);
  assert.doesNotMatch(JSON.stringify(error), /password/);
  // Rules about calls apply to the call, not again to the requests about its task.
  await client.refused('tools/call', { name: 'a__job', arguments: { text: 'forbidden' } }, -32600, /policy/);
  assert.equal(lines(log, '<', 'tools/call').length, 3);
});

test('2026-07-28: rules about inputs cannot evaluate the input of a task', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    mcpServers: { a: server(STATELESS, log) },
    security: { rules: { mcp: { inputs: { on: 'mcp.input_request', if: 'mcp.input.text.contains("password")', decision: 'block' } } } },
  });
  const client = await statelessOf(t, gateway);
  const { taskId } = await client.start('a__asks');
  await until('the request is not forwarded', async () => {
    const { answer } = await client.send('tasks/get', { taskId });
    return answer.error !== undefined && /rules about inputs/.test(answer.error.message);
  });
  await client.refused('tasks/update', { taskId, inputResponses: {} }, -32602, /rules about inputs/);
  assert.equal(lines(log, '<', 'tasks/update').length, 0);
});

test('the call that creates a task is recorded once, and requests about it name its tool', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, t.path('log')) }, telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } } });
  const client = await statelessOf(t, gateway);
  const { taskId } = await client.start('a__job', { text: 'x' });
  await client.ended(taskId);
  await client.refused('tasks/get', { taskId: 'no such task' }, -32602, /Task not found/);
  const records = new Records(gateway);
  const counted = (where, ok) => records.until(`SELECT count(*) FROM mcp_calls WHERE ${where}`, ok);
  await counted("method = 'tools/call' AND tool_name = 'job' AND server_name = 'a'", (count) => count === 1);
  await counted("method = 'tasks/get' AND target = 'job' AND server_name = 'a' AND error_message IS NULL", (count) => count >= 1);
  await counted("method = 'tasks/get' AND error_message LIKE '%Task not found%'", (count) => count === 1);
});

test('a server\'s id that is missing or too long ends the call; ids expire', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, t.path('log')) }, limits: { task_lifetime_ms: 4000 } });
  const client = await statelessOf(t, gateway);
  await client.refused('tools/call', { name: 'a__long', arguments: { size: 1023 } }, -32603, /an id that is too long/);
  await client.refused('tools/call', { name: 'a__none' }, -32603, /a task without an id/);
  assert.equal((await client.ended((await client.start('a__long', { size: 1022 })).taskId)).status, 'completed');
  const { taskId } = await client.start('a__job', { ms: 60_000 });
  assert.equal((await client.get(taskId)).status, 'working');
  await sleep(4100);
  await client.refused('tasks/get', { taskId }, -32602, /unknown or has expired/);
});

test('tasks/update is evaluated and counted like a call of the tool', async (t) => {
  const log = t.path('log');
  const input = 'has(mcp.request.extra.inputResponses) && mcp.request.extra.inputResponses.who.content.name';
  const rules = {
    content: { on: 'mcp.request', if: `mcp.request.tool_name == "asks" && ${input} == "forbidden"`, decision: 'block' },
    bytes: { on: 'mcp.request', if: 'mcp.request.tool_name == "asks"', decision: 'block', over: { bytes: 8000, by: ['tool'] } },
  };
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, log) }, security: { rules: { mcp: rules } } });
  const client = await statelessOf(t, gateway, declaring({ elicitation: {} }));
  const update = (taskId, name) => ({ taskId, inputResponses: { who: { action: 'accept', content: { name } } } });
  const [one, two] = [await client.start('a__asks'), await client.start('a__asks')];
  for (const { taskId } of [one, two]) {
    await client.refused('tasks/update', update(taskId, 'forbidden'), -32600, /blocked by policy \(.*content\)/);
  }
  assert.equal(lines(log, '<', 'tasks/update').length, 0);
  const long = 'x'.repeat(5000);
  assert.equal((await client.result('tasks/update', update(one.taskId, long))).resultType, 'complete');
  assert.equal(textOf((await client.ended(one.taskId)).result), `hello ${long}`);
  await client.refused('tasks/update', update(two.taskId, long), -32600, /blocked by policy \(.*bytes\)/);
  assert.deepEqual(lines(log, '<', 'tasks/update').map(({ params }) => params.taskId), ['task-1']);
  assert.equal((await client.get(two.taskId)).status, 'input_required');
});

for (const revision of [STATELESS, SESSIONS]) {
  test(`${revision}: the results of tasks count towards byte budgets`, async (t) => {
    const rules = { bytes: { on: 'mcp.request', if: 'mcp.request.tool_name == "job" && !has(mcp.request.arguments.free)', decision: 'block', over: { bytes: 23_000, by: ['tool'] } } };
    const gateway = await t.gateway({ mcpServers: { a: server(revision, t.path('log')) }, security: { rules: { mcp: rules } } });
    const client = await statelessOf(t, gateway);
    for (let i = 0; i < 2; ++i) {  // the call itself counts 6000 bytes, its result another 6000
      const { taskId } = await client.start('a__job', { text: 'x'.repeat(6000) });
      assert.equal(textOf((await client.ended(taskId)).result).length, 6000);
    }
    await client.refused('tools/call', { name: 'a__job', arguments: { text: 'x' } }, -32600, /blocked by policy \(.*bytes\)/);
    await client.start('a__message', { text: 'another tool' });
  });
}

test('a task whose response is blocked is cancelled at its server', async (t) => {
  const logs = { a: t.path('a'), b: t.path('b') };
  const gateway = await t.gateway({
    mcpServers: { a: server(STATELESS, logs.a), b: server(SESSIONS, logs.b) },
    security: { rules: { mcp: { all: { on: 'mcp.response', if: 'mcp.request.tool_name == "message" && mcp.response.text.contains("password")', decision: 'block' } } } },
  });
  const client = await statelessOf(t, gateway), session = await t.http(gateway);
  for (const name of ['a__message', 'b__message']) {
    await client.refused('tools/call', { name, arguments: { text: 'the password' } }, -32600, /blocked by policy/);
    await refused(startedBy(session, name, { text: 'the password' }), -32600, /blocked by policy/);
  }
  for (const log of Object.values(logs)) {
    const cancelled = await until('the tasks are cancelled', () => {
      const found = lines(log, '<', 'tasks/cancel');
      return found.length === 2 && found;
    });
    assert.deepEqual(cancelled.map(({ params }) => params.taskId), ['task-1', 'task-2']);
    const responses = () => lines(log, '>', undefined).filter(({ id }) => cancelled.some((one) => one.id === id));
    await until('the server responds', () => responses().length === 2);
    for (const { error } of responses()) assert.equal(error, undefined, 'the server accepts the request');
  }
});

// ---- 2025-11-25 on both sides ------------------------------------------------------------------

test('2025-11-25: a task from its call to its result, with servers whose ids collide', async (t) => {
  const logs = { a: t.path('a'), b: t.path('b') };
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, logs.a), b: server(SESSIONS, logs.b) } });
  const client = await t.http(gateway);
  assert.deepEqual(client.server.capabilities.tasks, { cancel: {}, requests: { tools: { call: {} } } });
  assert.deepEqual((await client.tools()).find(({ name }) => name === 'a__job').execution, { taskSupport: 'optional' });
  const one = await startedBy(client, 'a__job', { ms: 50, text: 'from a' });
  const two = await startedBy(client, 'b__job', { text: 'from b' });
  const created = lines(logs.a, '>', undefined).find(({ result }) => result?.task);
  assert.deepEqual({ ...one, taskId: 'task-1' }, created.result.task, 'only the id is replaced');
  assert.equal(lines(logs.a, '<', 'tools/call')[0].params.task.ttl, 60_000);
  assert.notEqual(one.taskId, two.taskId);
  for (const [{ taskId }, text] of [[one, 'from a'], [two, 'from b']]) {
    const result = await client.call('tasks/result', { taskId });
    assert.equal(textOf(result), text);
    assert.deepEqual(result._meta, { [RELATED]: { taskId } });
    assert.deepEqual([(await client.call('tasks/get', { taskId })).status, (await client.call('tasks/get', { taskId })).taskId], ['completed', taskId]);
  }
  const slow = await startedBy(client, 'b__job', { ms: 60_000 });
  const cancelled = await client.call('tasks/cancel', { taskId: slow.taskId });
  assert.deepEqual([cancelled.status, cancelled.taskId], ['cancelled', slow.taskId]);
  assert.equal(lines(logs.b, '<', 'tasks/cancel')[0].params.taskId, 'task-2');
  await refused(client.call('tasks/result', { taskId: (await startedBy(client, 'a__fails', { text: 'no disk' })).taskId }), -32603, /no disk/);
  // A list would contain the tasks of other clients of the server.
  await refused(client.call('tasks/list'), -32601, /Method not found/);
  await refused(client.call('tasks/update', { taskId: one.taskId, inputResponses: {} }), -32601, /Method not found/);
  assert.equal(textOf(await client.tool('a__job', { text: 'at once' })), 'at once');
});

test('2025-11-25: a shared server asks each client about its own task', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, log) } });
  const client = async (name) => {
    const asked = [];
    const connected = await t.http(gateway, {
      capabilities: { elicitation: {} },
      onAsk: (method, params) => {
        asked.push(params._meta[RELATED].taskId);
        return { action: 'accept', content: { name } };
      },
    });
    return { name, asked, connected, task: await startedBy(connected, 'a__elicits') };
  };
  const clients = [await client('Ada'), await client('Bob')];
  const created = lines(log, '>', undefined).flatMap(({ result }) => result?.task?.taskId ?? []);
  assert.deepEqual(created, ['task-1', 'task-2'], 'both tasks are in one process');
  const results = await Promise.all(clients.map(({ connected, task }) => connected.call('tasks/result', { taskId: task.taskId })));
  assert.deepEqual(results.map(textOf), ['hello Ada', 'hello Bob']);
  for (const { asked, task } of clients) assert.deepEqual(asked, [task.taskId], 'the id that the client knows');
  // A request about a task that no client has reaches no client.
  const [{ asked, connected }] = clients;
  const { taskId } = await startedBy(connected, 'a__elicits', { about: 'task-9' });
  assert.equal(textOf(await connected.call('tasks/result', { taskId })), 'error -32602');
  assert.equal(asked.length, 1);
});

test('2025-11-25: a server that does not declare tasks does not receive task', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, log, '--plain') } });
  const client = await t.http(gateway);
  for (const text of ['one', 'two']) {
    const result = await client.call('tools/call', { name: 'a__job', arguments: { text }, task: { ttl: 60_000 } });
    assert.equal(textOf(result), text, 'the tool runs within the call');
    const { params } = lines(log, '<', 'tools/call').at(-1);
    assert.deepEqual([params.task, params.arguments], [undefined, { text }]);
  }
});

test('2025-11-25: rules about results apply to tasks/result', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, t.path('log')) }, security: { rules: { mcp: RULES } } });
  const client = await t.http(gateway);
  const { taskId } = await startedBy(client, 'a__job', { text: 'a secret' });
  const result = await client.call('tasks/result', { taskId });
  assert.equal(textOf(result), 'a ***');
  assert.deepEqual(result._meta, { [RELATED]: { taskId } });
  const message = await startedBy(client, 'a__message', { text: 'my secret' });
  assert.match(message.taskId, /^[A-Za-z0-9_-]{60,}$/);
  assert.equal(message.statusMessage, 'my ***');
  assert.equal((await client.call('tasks/get', { taskId: message.taskId })).statusMessage, 'my ***');
  const failing = await startedBy(client, 'a__fails', { text: 'the password' });
  await refused(client.call('tasks/result', { taskId: failing.taskId }), -32603, /^(?!.*password).*blocked by policy/);
});

test('sessions of older revisions have no tasks', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, t.path('log')) } });
  const client = await t.http(gateway, { revision: '2025-06-18' });
  assert.equal(client.server.capabilities.tasks, undefined);
  await refused(client.call('tasks/get', { taskId: 'x' }), -32601, /Method not found/);
});

// The official SDK 1.x on both sides, with the reference server.
test('2025-11-25: the SDK calls a tool that requires a task, and answers its question', async (t) => {
  const { Client } = await importFromNpm('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { CallToolResultSchema, ElicitRequestSchema } = await importFromNpm('@modelcontextprotocol/sdk/types.js');
  const everything = `${npmDir}/node_modules/@modelcontextprotocol/server-everything/dist/index.js`;
  const gateway = await t.gateway({ mcpServers: { e: { command: node, args: [everything, 'stdio'], sandbox: 'off' } } });
  const client = new Client({ name: 'sdk', version: '1' }, { capabilities: { elicitation: {} } });
  const asked = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { interpretation: 'snake' } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => client.close());
  const name = 'e__simulate-research-query';
  await until('the tool is listed', async () => (await client.listTools()).tools.some((tool) => tool.name === name));
  const seen = [];
  let report;
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: { topic: 'python', ambiguous: true } }, CallToolResultSchema)) {
    if (message.type === 'error') throw message.error;
    if (message.type === 'result') report = message.result;
    else seen.push([message.type, message.task.status, message.task.taskId]);
  }
  assert.equal(seen[0][0], 'taskCreated');
  assert.equal(new Set(seen.map(([, , id]) => id)).size, 1, 'one id from the start to the end');
  assert.match(textOf(report), /python \(snake\)/);
  assert.equal(asked.length, 1);
  assert.match(asked[0], /multiple interpretations/);
});

// ---- different revisions -----------------------------------------------------------------------

test('a client of 2025-11-25 and a server of 2026-07-28', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(STATELESS, log) } });
  const asked = [];
  const client = await t.http(gateway, {
    capabilities: { elicitation: {} },
    onAsk: (method, params) => {
      asked.push(params.message);
      return { action: 'accept', content: { name: 'Ada' } };
    },
  });
  const task = await startedBy(client, 'a__job', { ms: 300, text: 'late' });
  assert.deepEqual(Object.keys(task).sort(), ['createdAt', 'lastUpdatedAt', 'pollInterval', 'status', 'taskId', 'ttl']);
  assert.deepEqual([task.ttl, task.pollInterval, task.status], [60_000, 20, 'working']);
  const [call] = lines(log, '<', 'tools/call');
  assert.equal(call.params.task, undefined, 'the extension has no such member');
  assert.deepEqual(call.params._meta[`${PREFIX}clientCapabilities`].extensions, { [TASKS]: {} });
  // tasks/result waits for the task.
  const result = await client.call('tasks/result', { taskId: task.taskId });
  assert.deepEqual(result, { content: [{ type: 'text', text: 'late' }], _meta: { [RELATED]: { taskId: task.taskId } } });
  assert.ok(lines(log, '<', 'tasks/get').length > 1);
  assert.deepEqual(Object.keys(await client.call('tasks/get', { taskId: task.taskId })).sort(), Object.keys(task).sort());
  const broken = await startedBy(client, 'a__broken');
  assert.equal((await endedFor(client, broken.taskId)).status, 'failed', 'isError is a failure in 2025-11-25');
  assert.equal((await client.call('tasks/result', { taskId: broken.taskId })).isError, true);
  const failing = await startedBy(client, 'a__fails', { text: 'no disk' });
  await refused(client.call('tasks/result', { taskId: failing.taskId }), -32603, /no disk/);
  const slow = await startedBy(client, 'a__job', { ms: 60_000 });
  const waiting = client.call('tasks/result', { taskId: slow.taskId });
  waiting.catch(() => {});
  const cancelled = await client.call('tasks/cancel', { taskId: slow.taskId });
  assert.deepEqual([cancelled.status, cancelled.taskId], ['cancelled', slow.taskId]);
  await refused(waiting, -32602, /was cancelled/);
  // The input of a task is requested from the client while it waits for the result.
  const asks = await startedBy(client, 'a__asks');
  assert.equal(textOf(await client.call('tasks/result', { taskId: asks.taskId })), 'hello Ada');
  assert.deepEqual(asked, ['Which name?']);
  assert.equal(lines(log, '<', 'tasks/update').length, 1);
  // Without `task`, the server is not told that the client supports tasks.
  assert.equal(textOf(await client.tool('a__job', { text: 'at once' })), 'at once');
  assert.equal(lines(log, '<', 'tools/call').at(-1).params._meta[`${PREFIX}clientCapabilities`].extensions, undefined);
});

test('a client of 2026-07-28 and a server of 2025-11-25', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: server(SESSIONS, log), b: server(SESSIONS, t.path('b'), '--plain') } });
  const client = await statelessOf(t, gateway);
  const task = await client.start('a__job', { ms: 50, text: 'late' });
  assert.deepEqual([task.ttlMs, task.pollIntervalMs, task.status, task.ttl], [60_000, 20, 'working', undefined]);
  assert.deepEqual(lines(log, '<', 'tools/call')[0].params.task, {});
  const done = await client.ended(task.taskId);
  assert.deepEqual([textOf(done.result), done.taskId, done.resultType], ['late', task.taskId, 'complete']);
  assert.equal(done.result._meta, undefined);
  const broken = await client.ended((await client.start('a__broken')).taskId);
  assert.deepEqual([broken.status, broken.result.isError], ['completed', true]);
  const failed = await client.ended((await client.start('a__fails', { text: 'no disk' })).taskId);
  assert.deepEqual([failed.status, failed.error], ['failed', { code: -32603, message: 'no disk' }]);
  const slow = await client.start('a__job', { ms: 60_000 });
  const { _meta, ...ack } = await client.result('tasks/cancel', { taskId: slow.taskId });
  assert.deepEqual(ack, { resultType: 'complete' });
  assert.equal((await client.get(slow.taskId)).status, 'cancelled');
  // The input of such a task can only be requested from a client with a session.
  const asks = await client.start('a__asks');
  const asking = await until('the task asks', async () => {
    const one = await client.get(asks.taskId);
    return one.status === 'input_required' && one;
  });
  assert.deepEqual(asking.inputRequests, {});
  await client.refused('tasks/update', { taskId: asks.taskId, inputResponses: {} }, -32602, /2025-11-25 does not have tasks\/update/);
  // Tools without tasks, and clients that do not declare the extension.
  assert.equal(textOf(await client.result('tools/call', { name: 'b__job', arguments: { text: 'at once' } })), 'at once');
  const { answer } = await client.send('tools/call', { name: 'a__job', arguments: { text: 'at once' } }, {});
  assert.equal(textOf(answer.result), 'at once');
  // A member of the other revision has no effect.
  const stray = await client.send('tools/call', { name: 'a__job', task: { ttl: 1 }, arguments: { text: 'at once' } }, {});
  assert.equal(textOf(stray.answer.result), 'at once');
  assert.equal(lines(log, '<', 'tools/call').at(-1).params.task, undefined);
});

for (const [client, upstream] of [[SESSIONS, STATELESS], [STATELESS, SESSIONS]]) {
  test(`rules about results apply to a task of a client of ${client} on a server of ${upstream}`, async (t) => {
    const gateway = await t.gateway({ mcpServers: { a: server(upstream, t.path('log')) }, security: { rules: { mcp: RULES } } });
    if (client === SESSIONS) {
      const session = await t.http(gateway);
      const { taskId } = await startedBy(session, 'a__job', { text: 'a secret' });
      const result = await session.call('tasks/result', { taskId });
      assert.equal(textOf(result), 'a ***');
      assert.deepEqual(result._meta, { [RELATED]: { taskId } });
    } else {
      const stateless = await statelessOf(t, gateway);
      const { taskId } = await stateless.start('a__job', { text: 'a secret' });
      const done = await stateless.ended(taskId);
      assert.deepEqual([textOf(done.result), done.taskId], ['a ***', taskId]);
    }
  });
}

await run();
