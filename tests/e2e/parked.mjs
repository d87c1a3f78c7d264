// What servers ask clients of MCP 2026-07-28 (elicitation, sampling, roots) and the gateway's approval
// forms: the client gets an input_required result and repeats its request. Also attacks on it.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { assert, events, fake, importFromNpm, node, root, run, show, test, until } from './lib.mjs';
import { Guest } from './frames.mjs';
import { Records } from './records.mjs';
import { ANSWERS, ASKS, CAPABLE, FORM, answering, answersIn, asked, asker, asking, call, calls, check, modes, refused } from './parked_client.mjs';
import { PREFIX, REVISION, httpOf, lines, meta } from './stateless_client.mjs';
import { startStateless } from '../fixtures/stateless_server.mjs';
import { statusOf } from './status.mjs';

const { Client, StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/client');
const { StdioClientTransport } = await importFromNpm('@modelcontextprotocol/client/stdio');

function service(socketPath, method, path, body) {
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const req = request({ socketPath, method, path, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done(JSON.parse(data)));
    });
    req.on('error', failed);
    req.end(text);
  });
}

for (const [mode, args] of modes) {
  test(`a server's requests are answered by repeating the call, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { a: asking(log) }, telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } } }, { args });
    const http = await httpOf(t, gateway);
    for (const [tool, ask] of Object.entries(ASKS)) {
      const before = calls(log).length;
      const interim = await asked(http, `a__${tool}`);
      const [[key, input], ...others] = Object.entries(interim.inputRequests);
      assert.deepEqual(others, []);
      const { elicitationId, ...params } = ask.params ?? {};
      assert.deepEqual(input, ask.params ? { method: ask.method, params } : { method: ask.method });
      assert.equal(interim._meta[`${PREFIX}serverInfo`].name, 'bulkhead');
      const again = { requestState: interim.requestState, inputResponses: { [key]: ANSWERS[tool] } };
      const { answer } = await call(http, `a__${tool}`, {}, again);
      assert.equal(answer.result?.resultType, 'complete', show(answer));
      assert.deepEqual(answer.result.asked, { result: ANSWERS[tool] });
      assert.deepEqual(check.errors(answer, 'tools/call'), []);
      // The same answers get the stored end, in any spelling of the arguments; nothing runs twice.
      const repeated = await call(http, `a__${tool}`, { id: `again-${tool}` }, again);
      assert.deepEqual(repeated.answer, { ...answer, id: `again-${tool}` });
      await refused(http, `a__${tool}`, { ...again, inputResponses: { [key]: { action: 'cancel' } } }, /answered before, with other inputResponses/);
      assert.equal(calls(log).length, before + 1);
    }
    assert.equal((await call(http, 'a__x')).answer.result.content[0].text, 'fake/x');
    // Once each, with their outcome.
    const records = new Records(gateway);
    const rows = () => records.rows("SELECT tool_name, decision FROM mcp_calls WHERE method = 'tools/call' AND error_message IS NULL ORDER BY id");
    await until('all calls are recorded', async () => (await rows()).length >= 5);
    assert.deepEqual(await rows(), ['elicit', 'visit', 'sample', 'roots', 'x'].map((tool) => [tool, 'allowed']));
    // Without the capabilities, the server gets an error at once.
    const { answer } = await http.send('tools/call', { name: 'a__sample' });
    assert.equal(answer.result.asked.error.code, -32601);
  });

  test(`forged, foreign, changed and expired states are rejected, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { a: asking(log), b: asking(t.path('b')) }, limits: { ask_timeout_ms: 15_000 } }, { args });
    const http = await httpOf(t, gateway);
    const interim = await asked(http, 'a__elicit');
    const good = answering(interim, ANSWERS.elicit);
    const { requestState } = good;
    assert.ok(!Buffer.from(requestState, 'base64url').includes('a__elicit'), 'the state is encrypted');
    const forged = /not one that this gateway has issued/;
    for (const bad of ['', 'x', requestState.slice(0, -1), requestState.slice(1), `${requestState}A`, requestState.slice(0, 40),
      (requestState[0] === 'A' ? 'B' : 'A') + requestState.slice(1), requestState.toLowerCase(), '1.1', `${requestState} `]) {
      await refused(http, 'a__elicit', { ...good, requestState: bad }, forged);
    }
    for (const bad of [5, null, {}, [requestState]]) await refused(http, 'a__elicit', { ...good, requestState: bad }, /must be a string/);
    for (const bad of [5, null, 'x', []]) await refused(http, 'a__elicit', { ...good, inputResponses: bad }, /inputResponses must be an object/);
    await refused(http, 'b__elicit', good, /another method, name or URI/);
    await refused(http, 'a__sample', good, /another method, name or URI/);
    await refused(http, 'a__elicit', good, /another method, name or URI/, { method: 'prompts/get' });
    for (const other of [{}, { n: 2 }, { n: '1' }, { n: 1, m: null }]) await refused(http, 'a__elicit', good, /other arguments/, { args: other });
    // Another gateway has another key.
    const other = await httpOf(t, await t.gateway({ mcpServers: { a: asking(t.path('other')) } }, { args }));
    await refused(other, 'a__elicit', good, forged);
    // None of this has changed the parked call; without an answer the client is asked again.
    const repeated = await call(http, 'a__elicit', {}, { requestState, inputResponses: { nothing: {} } });
    assert.deepEqual(repeated.answer.result.inputRequests, interim.inputRequests);
    // The client never answers: the server gets an answer, and the call ends.
    await until('the server gets an answer', () => lines(log, '<', 'notifications/cancelled').length === 1, 40_000);
    assert.deepEqual(calls(log), ['elicit']);
    await refused(http, 'a__elicit', good, /has ended|has expired/);
    assert.equal((await call(http, 'a__x')).answer.result.content[0].text, 'fake/x');
  });

  test(`a call is cancelled by its client while it runs, and not while the client is asked, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { a: { ...asking(log), max_in_flight: 1 } } }, { args });
    const http = await httpOf(t, gateway);
    const interim = await asked(http, 'a__elicit');
    // A parked call leaves room for others at its server.
    assert.equal((await call(http, 'a__x')).answer.result.content[0].text, 'fake/x');
    assert.equal((await statusOf(gateway)).sessions, 0);
    assert.equal(lines(log, '<', 'notifications/cancelled').length, 0);
    const { answer } = await call(http, 'a__elicit', {}, answering(interim, { action: 'decline' }));
    assert.deepEqual(answer.result.asked, { result: { action: 'decline' } });

    // After its answers, the client gives up: over HTTP by closing the stream, on a pipe by a notification.
    const askerLog = t.path('asker');
    const once = await t.gateway({ mcpServers: { e: asker(t, askerLog) } }, { args });
    const late = await httpOf(t, once);
    const open = answering(await asked(late, 'e__once', { more: { ...CAPABLE, progressToken: 'q' } }), ANSWERS.elicit);
    const ended = new AbortController();
    const progressing = { more: { ...CAPABLE, progressToken: 'p' }, signal: ended.signal };
    const stream = await late.open('tools/call', { name: 'e__once', arguments: { n: 1 }, ...open }, progressing);
    const incoming = events(stream)[Symbol.asyncIterator](); // not for await, which would close the stream
    let event;
    do ({ value: event } = await incoming.next()); while (!event.data);
    assert.deepEqual(JSON.parse(event.data).params, { progressToken: 'p', progress: 1 });
    await until('the server has the answer', () => answersIn(askerLog) === 1);
    assert.equal(lines(askerLog, '<', 'notifications/cancelled').length, 0);
    ended.abort();
    stream.destroy();
    await until('the server is notified', () => lines(askerLog, '<', 'notifications/cancelled').length === 1);
    await refused(late, 'e__once', open, /the call of this requestState has ended/);

    const pipeLog = t.path('pipe');
    const pipe = await t.stdio({ mcpServers: { e: asker(t, pipeLog) } }, { initialize: false, args: [...args, '--own'] });
    const send = (more, options) => pipe.call('tools/call', { name: 'e__once', arguments: {}, _meta: meta({ ...CAPABLE, progressToken: 'p' }), ...more }, options);
    const first = await send({}, { id: 'first' });
    assert.equal(first.resultType, 'input_required', show(first));
    await pipe.notify('notifications/cancelled', { requestId: 'first', _meta: meta() });
    send(answering(first, ANSWERS.elicit), { id: 'second' }).catch(() => {});
    const { params } = await pipe.note('notifications/progress');
    assert.deepEqual(params, { progressToken: 'p', progress: 1 });
    assert.equal(lines(pipeLog, '<', 'notifications/cancelled').length, 0, 'an answered request cannot be cancelled');
    await pipe.notify('notifications/cancelled', { requestId: 'second', reason: 'enough', _meta: meta() });
    const [told] = await until('the server is notified', () => {
      const found = lines(pipeLog, '<', 'notifications/cancelled');
      return found.length > 0 && found;
    });
    assert.equal(told.params.reason, 'enough');
    await assert.rejects(send(answering(first, ANSWERS.elicit)), { code: -32602 });
    // After the end of the input, no request can be repeated, so a parked call does not keep the gateway running.
    assert.equal((await send({})).resultType, 'input_required');
    pipe.child.stdin.end();
    await until('the gateway ends', () => pipe.child.exitCode !== null);
    assert.equal(pipe.child.exitCode, 0);
  });

  test(`the gateway's approvals are forms in results, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({
      mcpServers: { a: fake('--tool', 'x', '--tool', 'y', '--log', log) },
      approval: { elicitation: true, api: true },
      security: { rules: { mcp: { guard: { on: 'mcp.request', if: 'mcp.request.tool_name == "x"', decision: 'ask', reason: 'look at it' } } } },
      telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    }, { args });
    const http = await httpOf(t, gateway);
    const form = async (n) => {
      const interim = await asked(http, 'a__x', { args: { n } });
      const [input] = Object.values(interim.inputRequests);
      assert.equal(input.method, 'elicitation/create');
      assert.match(input.params.message, /Tool: x/);
      assert.match(input.params.message, /look at it/);
      return interim;
    };
    const allow = { action: 'accept', content: { decision: 'allow' } };
    const first = await form(1);
    assert.deepEqual(calls(log), [], 'nothing is sent before the approval');
    await refused(http, 'a__x', answering(first, allow), /other arguments/, { args: { n: 2 } });
    const { answer } = await call(http, 'a__x', { args: { n: 1 } }, answering(first, allow));
    assert.equal(answer.result.content[0].text, 'fake/x');
    assert.deepEqual(calls(log), ['x']);
    for (const no of [{ action: 'decline' }, { action: 'accept', content: { decision: 'deny' } }]) {
      const denied = await call(http, 'a__x', { args: { n: 3 } }, answering(await form(3), no));
      assert.match(denied.answer.error.message, /needs approval, which was denied/);
    }
    assert.deepEqual(calls(log), ['x']);
    // In the meantime, the console allows it: the call runs, and the client gets its end.
    const pending = await form(4);
    const { socket } = await statusOf(gateway);
    const [question] = await until('the question is listed', async () => {
      const { pending: all } = await service(socket, 'GET', '/confirm/pending');
      return all.length > 0 && all;
    });
    assert.deepEqual(await service(socket, 'POST', `/confirm/${question.id}`, { decision: 'allow' }), { answered: true });
    await until('the call runs', () => calls(log).length === 2);
    const late = await call(http, 'a__x', { args: { n: 4 } }, answering(pending, { action: 'decline' }));
    assert.equal(late.answer.result.content[0].text, 'fake/x');
    assert.deepEqual(calls(log), ['x', 'x']);
    const records = new Records(gateway);
    const rows = () => records.rows("SELECT decision FROM mcp_calls WHERE method = 'tools/call' AND tool_name = 'x' ORDER BY id");
    await until('each call is recorded once', async () => (await rows()).length === 4);
    assert.deepEqual((await rows()).map(([decision]) => decision).sort(), ['allowed', 'allowed', 'denied', 'denied']);
  });

  test(`rules read what clients are asked and what they answer, ${mode}`, async (t) => {
    const log = t.path('log');
    // The SDK is outside of the sandbox's view.
    const stateless = { command: node, args: [`${root}/tests/fixtures/stateless_server.mjs`, 'stdio'], protocol: REVISION, sandbox: 'off' };
    const gateway = await t.gateway({
      mcpServers: { a: asking(log), p: stateless },
      security: {
        rules: {
          mcp: {
            sampling: { on: 'mcp.input_request', if: 'mcp.request.method == "sampling/createMessage"', decision: 'block' },
            secrets: { on: 'mcp.input_response', if: 'mcp.input.text.contains("secret")', decision: 'block' },
          },
        },
      },
    }, { args });
    const http = await httpOf(t, gateway);
    // The client is not asked, and the server gets an error.
    const { answer } = await call(http, 'a__sample');
    assert.equal(answer.result.asked.error.code, -1, show(answer));
    // The client's answer does not reach the server.
    for (const [word, expected] of [['secret', { action: 'decline' }], ['public', { action: 'accept', content: { word: 'public' } }]]) {
      const interim = await asked(http, 'a__elicit', { args: { word } });
      const got = await call(http, 'a__elicit', { args: { word } }, answering(interim, { action: 'accept', content: { word } }));
      assert.deepEqual(got.answer.result?.asked, { result: expected }, show(got.answer));
    }
    // The requests in a result of a server of 2026-07-28 are evaluated in the same way, each by itself.
    const form = (message) => ({ method: 'elicitation/create', params: { mode: 'form', ...FORM, message } });
    const args2 = { requests: { one: form('first'), two: form('second') }, state: 'own' };
    for (const [word, expected] of [['secret', { action: 'decline' }], ['public', { action: 'accept', content: { word: 'public' } }]]) {
      const interim = await asked(http, 'p__ask', { args: args2 });
      assert.deepEqual(Object.values(interim.inputRequests), Object.values(args2.requests));
      const [first, second] = Object.keys(interim.inputRequests);
      const inputResponses = { [first]: { action: 'accept', content: { word } }, [second]: { action: 'cancel' } };
      const got = await call(http, 'p__ask', { args: args2 }, { requestState: interim.requestState, inputResponses });
      assert.equal(got.answer.result?.resultType, 'complete', show(got.answer));
      assert.deepEqual(check.errors(got.answer, 'tools/call'), []);
      assert.deepEqual(JSON.parse(got.answer.result.content[0].text), { responses: { one: expected, two: { action: 'cancel' } }, state: 'own' });
    }
    const sampling = await call(http, 'p__ask', { args: { requests: { one: ASKS.sample } } });
    assert.equal(sampling.answer.result?.isError, true, show(sampling.answer));
    assert.match(sampling.answer.result.content[0].text, /sampling\/createMessage was refused: The request was blocked by policy/);
    const requests = { one: form('again') };
    // Responses that no request preceded do not reach a server of 2026-07-28 either.
    await refused(http, 'p__ask', { inputResponses: { one: ANSWERS.elicit } }, /inputResponses cannot be forwarded/, { args: { requests } });
  });

  test(`a server cannot hide a request for input from the rules, ${mode}`, async (t) => {
    const asks = `"inputRequests":{"one":${JSON.stringify({ method: 'elicitation/create', params: { mode: 'form', ...FORM } })}}`;
    const results = {
      name: `{"result\\u0054ype":"input_required",${asks}}`,
      value: `{"resultType":"input_requ\\u0069red",${asks}}`,
      twice: `{"resultType":"input_required","resultType":"complete",${asks}}`,
      requests: `{"resultType":"complete","content":[],"input\\u0052equests":{}}`,
      fine: '{"resultType":"complete","content":[]}',
    };
    const tools = Object.keys(results).map((name) => ({ name, inputSchema: { type: 'object' } }));
    const lists = { 'server/discover': { supportedVersions: [REVISION], capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } }, 'tools/list': { tools } };
    const web = createServer((request, response) => {
      let text = '';
      request.on('data', (data) => (text += data));
      request.on('end', () => {
        const { id, method, params } = JSON.parse(text);
        const result = results[params?.name] ?? JSON.stringify({ resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...lists[method] });
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
      });
    });
    await new Promise((done) => web.listen(0, '127.0.0.1', done));
    t.defer(() => web.close());
    const rule = { on: 'mcp.input_request', if: 'mcp.request.method == "elicitation/create"', decision: 'block' };
    const gateway = await t.gateway({
      mcpServers: { raw: { url: `http://127.0.0.1:${web.address().port}/mcp` } },
      security: { rules: { mcp: { none: rule } } },
    }, { args });
    const http = await httpOf(t, gateway);
    for (const name of Object.keys(results)) {
      const { answer } = await call(http, `raw__${name}`);
      if (name === 'fine') assert.deepEqual(answer.result?.content, [], show(answer));
      else assert.ok(answer.error, `${name}: ${show(answer)}`);
    }
  });

  test(`the end of a parked call reaches its client after the server or the profile has gone, ${mode}`, async (t) => {
    const log = t.path('log');
    const profile = { mcpServers: { a: asking(log), b: fake('--tool', 'elicit', '--tool', 'crash', '--ask', `elicit=${JSON.stringify(ASKS.elicit)}`, '--die', 'crash') }, limits: { drain_ms: 100 } };
    const gateway = await t.gateway(profile, { args });
    const http = await httpOf(t, gateway);
    const removed = await asked(http, 'a__elicit');
    // From its first request to a client on, the server has a process for this principal.
    await call(http, 'b__elicit', {}, answering(await asked(http, 'b__elicit'), ANSWERS.elicit));
    const crashed = await asked(http, 'b__elicit');
    await call(http, 'b__crash');
    const lost = await call(http, 'b__elicit', {}, answering(crashed, ANSWERS.elicit));
    assert.equal(lost.answer.error?.code, -32603, show(lost.answer));
    assert.match(lost.answer.error.message, /server "b"/);
    writeFileSync(gateway.config, JSON.stringify({ ...profile, mcpServers: { b: profile.mcpServers.b } }));
    process.kill(gateway.pid, 'SIGHUP');
    await until('the server has gone', async () => (await http.result('tools/list', {}, { more: CAPABLE })).tools.every(({ name }) => !name.startsWith('a__')));
    await until('the call has ended', () => lines(log, '<', 'notifications/cancelled').length === 1);
    const drained = await call(http, 'a__elicit', {}, answering(removed, ANSWERS.elicit));
    assert.equal(drained.answer.error?.code, -32603, show(drained.answer));
    assert.match(drained.answer.error.message, /server "a" was removed or changed by a reload/);
  });

  test(`an error that requires URL elicitation asks the client, and the call is sent again, ${mode}`, async (t) => {
    const gateway = await t.gateway({ mcpServers: { e: asker(t) } }, { args });
    const http = await httpOf(t, gateway);
    const interim = await asked(http, 'e__visit');
    assert.deepEqual(interim.inputRequests, { 'url-1': { method: 'elicitation/create', params: { mode: 'url', message: 'Sign in', url: 'https://a.example/' } } });
    const { answer } = await call(http, 'e__visit', {}, answering(interim, { action: 'accept' }));
    assert.deepEqual(JSON.parse(answer.result.content[0].text), { name: 'visit', arguments: { n: 1 }, _meta: {} });
    await refused(http, 'e__visit', answering(interim, { action: 'accept' }), /other arguments/, { args: {} });
  });

  test(`the SDK's client answers servers of both generations over HTTP and stdio, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({
      mcpServers: {
        a: asking(log),
        p: { command: node, args: [`${root}/tests/fixtures/stateless_server.mjs`, 'stdio'], protocol: REVISION, sandbox: 'off' },
      },
    }, { args });
    const [command, words, { env, cwd }] = gateway.stdioCommand();
    const pipe = (...more) => new StdioClientTransport({ command, args: [...words, ...more], env, cwd, stderr: 'pipe' });
    for (const transport of [new StreamableHTTPClientTransport(new URL(gateway.url)), pipe(), pipe('--own')]) {
      const client = new Client({ name: 'asked', version: '1' }, {
        versionNegotiation: { mode: { pin: REVISION } }, capabilities: { elicitation: { form: {} }, sampling: {} },
      });
      t.defer(() => client.close());
      client.setRequestHandler('elicitation/create', () => ANSWERS.elicit);
      client.setRequestHandler('sampling/createMessage', () => ANSWERS.sample);
      await client.connect(transport);
      for (const tool of ['elicit', 'sample']) {
        const result = await client.callTool({ name: `a__${tool}`, arguments: { n: 1 } });
        assert.deepEqual(JSON.parse(result.content[0].text), ANSWERS[tool], tool);
      }
      const requests = { one: { method: 'elicitation/create', params: { mode: 'form', ...FORM } }, two: ASKS.sample };
      const both = await client.callTool({ name: 'p__ask', arguments: { requests, state: 'st' } });
      assert.deepEqual(JSON.parse(both.content[0].text), { responses: { one: ANSWERS.elicit, two: ANSWERS.sample }, state: 'st' });
    }
  });
}

test('a server of 2026-07-28 gets its own state back', async (t) => {
  const server = await startStateless();
  t.defer(() => server.stop());
  const gateway = await t.gateway({
    mcpServers: { s: { url: server.url }, other: fake('--tool', 'ask') },
    approval: { elicitation: true },
    security: { rules: { mcp: { guard: { on: 'mcp.request', if: 'mcp.request.tool_name == "ask" && has(mcp.request.arguments.state) && mcp.request.arguments.state == "guarded"', decision: 'ask' } } } },
  }, { args: ['--single-process'] });
  const http = await httpOf(t, gateway);
  const requests = { who: { method: 'elicitation/create', params: { mode: 'form', ...FORM } } };
  const given = { requests, state: 'the "server\'s" own' };
  const interim = await asked(http, 's__ask', { args: given });
  assert.deepEqual(interim.inputRequests, requests);
  assert.notEqual(interim.requestState, given.state);
  const good = answering(interim, ANSWERS.elicit);
  const { answer } = await call(http, 's__ask', { args: given }, good);
  assert.deepEqual(JSON.parse(answer.result.content[0].text), { responses: good.inputResponses, state: given.state });
  const [, sent] = server.messages('tools/call');
  assert.equal(sent.params.requestState, given.state);
  assert.deepEqual(sent.params.inputResponses, good.inputResponses);
  await refused(http, 's__ask', { ...good, requestState: given.state }, /not one that this gateway has issued/, { args: given });
  await refused(http, 's__ask', good, /other arguments/, { args: { requests } });
  await refused(http, 'other__ask', good, /another method, name or URI/, { args: given });
  assert.equal(server.messages('tools/call').length, 2);
  // An approval is valid for one request: each repetition requires another one, also if the state
  // and the answers of an earlier repetition are sent again.
  const guarded = { requests, state: 'guarded' };
  const form = await asked(http, 's__ask', { args: guarded });
  assert.match(Object.values(form.inputRequests)[0].params.message, /Tool: ask/);
  assert.equal(server.messages('tools/call').length, 2);
  const { answer: round } = await call(http, 's__ask', { args: guarded }, answering(form, { action: 'accept', content: { decision: 'allow' } }));
  assert.deepEqual(round.result.inputRequests, requests, show(round));
  assert.equal(server.messages('tools/call').length, 3);
  const repeated = answering(round.result, ANSWERS.elicit);
  for (let sent = 3; sent < 5; ++sent) {
    const again = await asked(http, 's__ask', { args: guarded, members: repeated });
    assert.match(Object.values(again.inputRequests)[0].params.message, /Tool: ask/);
    assert.equal(server.messages('tools/call').length, sent, 'the server is not called before the approval');
    const { answer: last } = await call(http, 's__ask', { args: guarded }, answering(again, { action: 'accept', content: { decision: 'allow' } }));
    assert.deepEqual(JSON.parse(last.result.content[0].text), { responses: good.inputResponses, state: 'guarded' });
    assert.equal(server.messages('tools/call').length, sent + 1);
  }
  // A server without a state gets none.
  const plain = await asked(http, 's__ask', { args: { requests } });
  assert.equal(plain.requestState, undefined);
  const { answer: end } = await call(http, 's__ask', { args: { requests } }, { inputResponses: good.inputResponses });
  assert.deepEqual(JSON.parse(end.result.content[0].text), { responses: good.inputResponses });
});

test('a client cannot use the state of another principal', async (t) => {
  const log = t.path('log');
  const socket = t.path('guest.sock');
  const gateway = await t.gateway({
    transports: {
      http: { plugin: 'transport-http', listen: '127.0.0.1:0' },
      guests: { plugin: 'transport-vsock', listen: `unix:${socket}` },
    },
    mcpServers: { a: fake('--tool', 'elicit', '--ask', `elicit=${JSON.stringify(ASKS.elicit)}`, '--log', log) },
  }, { listen: null });
  const http = await httpOf(t, gateway);
  const guest = new Guest(t, socket);
  const params = (more) => ({ name: 'a__elicit', arguments: { n: 1 }, _meta: meta(CAPABLE), ...more });
  const mine = await asked(http, 'a__elicit');
  const theirs = (await guest.request('tools/call', params({}))).result;
  assert.equal(theirs.resultType, 'input_required', show(theirs));
  const stolen = await guest.request('tools/call', params(answering(mine, ANSWERS.elicit)));
  assert.equal(stolen.error.code, -32602);
  assert.match(stolen.error.message, /issued to another client/);
  await refused(http, 'a__elicit', answering(theirs, ANSWERS.elicit), /issued to another client/);
  // The owners are not affected.
  assert.deepEqual((await guest.request('tools/call', params(answering(theirs, ANSWERS.elicit)))).result.asked, { result: ANSWERS.elicit });
  assert.deepEqual((await call(http, 'a__elicit', {}, answering(mine, ANSWERS.elicit))).answer.result.asked, { result: ANSWERS.elicit });
  // The server has asked: each principal has a process of its own from now on, and is asked at the same time.
  const [one, two] = await Promise.all([asked(http, 'a__elicit', { args: { n: 2 } }), guest.request('tools/call', params({ arguments: { n: 3 } }))]);
  assert.equal(two.result.resultType, 'input_required', show(two));
  assert.equal(Object.keys(one.inputRequests).length, 1);
  assert.equal(Object.keys(two.result.inputRequests).length, 1);
  const opened = () => lines(log, '<', 'initialize').filter((line) => line.params.capabilities.elicitation).length;
  assert.equal(opened(), 3, 'the shared one, and one for each');
  await asked(http, 'a__elicit', { args: { n: 4 } });
  assert.equal(opened(), 3);
});

test('after a restart of the endpoint, a repeated request is rejected, and nothing runs twice', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: asking(log) } });
  const http = await httpOf(t, gateway);
  const interim = await asked(http, 'a__elicit');
  const endpoint = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint').pid;
  const pid = await endpoint();
  process.kill(pid, 'SIGKILL');
  await until('another process serves', async () => {
    const now = await endpoint().catch(() => pid);
    return now !== pid && now > 0;
  });
  await refused(http, 'a__elicit', answering(interim, ANSWERS.elicit), /from before a restart of the gateway/);
  // The process that has the call ends, which cancels the call.
  await until('the server\'s processes end', () => readFileSync(log, 'utf8').split('\n').filter((line) => line === '! eof').length === 2);
  assert.equal(calls(log).filter((name) => name === 'elicit').length, 1);
});

test('a server that asks for ever, and a client that parks any number of calls', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { e: asker(t), a: asking(log) }, limits: { asks_per_session: 1000 } });
  const http = await httpOf(t, gateway);
  let rounds = 0;
  let { answer } = await call(http, 'e__ever');
  for (; answer.result?.resultType === 'input_required' && rounds < 200; ++rounds) {
    ({ answer } = await call(http, 'e__ever', {}, answering(answer.result, ANSWERS.elicit)));
  }
  assert.equal(rounds, 100);
  assert.match(answer.result.content[0].text, /the client cannot be asked: .*100 rounds/);

  // At the limit, the server gets an error; the client's calls and those of others continue.
  const outcomes = { input_required: 0, complete: 0 };
  const texts = new Set();
  for (let n = 0; n < 140; ++n) {
    const { answer: one } = await call(http, 'a__elicit', { args: { n } });
    ++outcomes[one.result.resultType];
    if (one.result.asked) texts.add(one.result.asked.error?.message);
  }
  assert.deepEqual(outcomes, { input_required: 128, complete: 12 });
  assert.deepEqual([...texts], ['the client cannot be asked: too many parked calls of this client (limit: 128)']);
  assert.equal((await call(http, 'a__x')).answer.result.content[0].text, 'fake/x');
  // Another client is asked, at the cost of the first one.
  const other = await httpOf(t, gateway);
  const interim = await asked(other, 'a__elicit', { args: { n: 200 } });
  await until('a call is cancelled', () => lines(log, '<', 'notifications/cancelled').length === 1);
  const { answer: end } = await call(other, 'a__elicit', { args: { n: 200 } }, answering(interim, ANSWERS.elicit));
  assert.deepEqual(end.result.asked, { result: ANSWERS.elicit }, show(end));
});

await run();
