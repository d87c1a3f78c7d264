// What a tools plugin learns about its calls, and how it asks clients for input.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, show, test, until } from './lib.mjs';
import { modes } from './parked_client.mjs';
import { PREFIX, httpOf } from './stateless_client.mjs';
import { statusOf } from './status.mjs';

const asks = join(build, 'core/plugin/testing_plugins/plugins/asks.so');
const profile = { tools: { p: { plugin: asks } } };
const textOf = (result) => result.content[0].text;
const FORM_CLIENT = { [`${PREFIX}clientCapabilities`]: { elicitation: { form: {} } } };

for (const [mode, args] of modes) {
  test(`a tools plugin asks a client with a session for input, ${mode}`, async (t) => {
    const gateway = await t.gateway(profile, { args });
    const requests = [];
    const client = await t.http(gateway, {
      capabilities: { elicitation: {} },
      onAsk: (request) => (requests.push(request), { action: 'accept', content: { n: 4 } }),
    });
    const result = await client.tool('p__ask');
    assert.equal(textOf(result), 'asked "once" {"form":{"action":"accept","content":{"n":4}}}');
    assert.equal(result.resultType, undefined);
    assert.deepEqual(requests.map(({ method, params }) => [method, params.message]), [['elicitation/create', 'Which one?']]);
    // Without the capability, the plugin knows that it cannot ask.
    assert.equal(textOf(await (await t.http(gateway)).tool('p__ask')), 'the client cannot be asked');
  });

  test(`a tools plugin asks a client of 2026-07-28 for input, which repeats its request, ${mode}`, async (t) => {
    const http = await httpOf(t, await t.gateway(profile, { args }));
    const params = { name: 'p__ask', arguments: {} };
    const asked = await http.result('tools/call', params, { more: FORM_CLIENT });
    assert.equal(asked.resultType, 'input_required', show(asked));
    assert.equal(asked.inputRequests.form.params.message, 'Which one?');
    assert.ok(!asked.requestState.includes('asked'), 'the state is sealed');
    const more = { requestState: asked.requestState, inputResponses: { form: { action: 'decline' } } };
    const result = await http.result('tools/call', { ...params, ...more }, { more: FORM_CLIENT });
    assert.equal(textOf(result), 'asked "once" {"form":{"action":"decline"}}');
    const forged = await http.send('tools/call', { ...params, ...more, requestState: `${asked.requestState.slice(0, -4)}AAAA` }, { more: FORM_CLIENT });
    assert.equal(forged.answer.error?.code, -32602, show(forged.answer));
  });

  test(`answers count only for the request about which the plugin has asked, ${mode}`, async (t) => {
    const http = await httpOf(t, await t.gateway(profile, { args }));
    const call = (more) => http.send('tools/call', { name: 'p__sure', arguments: { n: 1 }, ...more }, { more: FORM_CLIENT });
    const inputResponses = { sure: { action: 'accept' } };
    const asked = (await call({ inputResponses })).answer.result; // answers to a question that was never asked
    assert.equal(asked.resultType, 'input_required', show(asked));
    assert.equal(typeof asked.requestState, 'string', 'the gateway has added a state');
    const { requestState } = asked;
    for (const other of [{ arguments: { n: 1000 } }, { name: 'p__ask' }]) {
      const refused = await call({ requestState, inputResponses, ...other });
      assert.equal(refused.answer.error?.code, -32602, show(refused.answer));
    }
    assert.equal(textOf((await call({ requestState, inputResponses })).answer.result), ' {"sure":{"action":"accept"}}');
    const client = await t.http(await t.gateway(profile, { args }), { capabilities: { elicitation: {} }, onAsk: () => ({ action: 'accept', content: {} }) });
    assert.equal(textOf(await client.tool('p__sure')), ' {"sure":{"action":"accept","content":{}}}');
  });

  test(`a tools plugin learns the client's identity and trace, and why a call is cancelled, ${mode}`, async (t) => {
    const gateway = await t.gateway(profile, { args });
    const client = await t.http(gateway);
    const traceparent = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
    const who = async (meta) => textOf(await client.call('tools/call', { name: 'p__who', arguments: {}, _meta: meta }));
    const [, principal] = /^(\S+) in a session $/.exec(await who({})) ?? [];
    assert.ok(principal, 'the transport states who the client is');
    assert.equal(await who({ traceparent }), `${principal} in a session ${traceparent}`);
    assert.equal(await who({ traceparent: 'invalid' }), `${principal} in a session `);
    const log = () => readFileSync(join(gateway.dir, 'state/bulkhead/log/bulkhead.log'), 'utf8');
    const waiting = client.call('tools/call', { name: 'p__wait', arguments: {} }, { id: 'w' }).catch(() => {});
    await until('the call is in flight', async () => (await statusOf(gateway)).in_flight === 1);
    await client.notify('notifications/cancelled', { requestId: 'w', reason: 'no "longer" needed' });
    await waiting;
    await until('the plugin has logged the reason', () => log().includes('cancelled for reason 1 "no "longer" needed"'));
  });
}
