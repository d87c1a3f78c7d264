// Defines the cells of the matrix and the expected outcome of each:
//
//   passes    the feature works from end to end
//   cannot    the feature cannot exist between these revisions; `check` asserts the exact response
//   not yet   the feature is not supported; the cell is counted, and run with --try
import { features, refusals } from './features.mjs';
import { since } from './content.mjs';

export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
export const CLIENT_TRANSPORTS = ['stdio', 'http', 'frames'];
export const SERVER_TRANSPORTS = ['stdio', 'http'];

const OF_THE_GATEWAY = ['approval', 'rewrite', 'batch'];
export const FEATURES = Object.keys(features);

// Returns the outcome of a cell whose feature one of the revisions does not have.
function impossible(feature, client, server, direct) {
  const cannot = (reason, check) => ({ outcome: 'cannot', reason, check });
  switch (feature) {
    case 'elicitation_form':
      if (!since(server, '2025-06-18')) return cannot('the server\'s revision has no elicitation', (x) => refusals.unknownTool(x, 'elicit'));
      if (!since(client, '2025-06-18')) return cannot('the client\'s revision has no elicitation', (x) => refusals.undeclared(x, 'elicit', 'elicitation'));
      return undefined;
    case 'elicitation_url':
      if (!since(server, '2025-11-25')) return cannot('the server\'s revision has no URL elicitation', (x) => refusals.unknownTool(x, 'elicit_url'));
      if (!since(client, '2025-11-25')) return cannot('the client\'s revision has no URL elicitation', (x) => refusals.undeclared(x, 'elicit_url', 'elicitation.url'));
      return undefined;
    case 'tasks':
      if (!since(server, '2025-11-25')) return cannot('the server\'s revision has no tasks', (x) => refusals.unknownTool(x, 'job'));
      if (!since(client, '2025-11-25')) return cannot('the client\'s revision has no tasks', (x) => refusals.withoutTask(x));
      return undefined;
    case 'batch':
      if (client !== '2025-03-26') return cannot('the client\'s revision has no batches', (x) => refusals.batch(x));
      return undefined;
    case 'approval':
      if (!since(client, '2025-06-18')) return cannot('the client\'s revision has no elicitation', (x) => refusals.unapproved(x));
      return undefined;
    case 'structured':
      if (!since(server, '2025-06-18')) return cannot('the server\'s revision has no structured output', (x) => refusals.unknownTool(x, 'structured'));
      return undefined;
    case 'audio':
      if (!since(server, '2025-03-26')) return cannot('the server\'s revision has no audio', (x) => refusals.unknownTool(x, 'audio'));
      // A server's content is forwarded unchanged; a client ignores content that it does not know.
      if (!since(client, '2025-03-26')) return cannot('the client\'s revision has no audio', (x) => (direct ? refusals.asText(x, 'audio') : refusals.foreignAudio(x)));
      return undefined;
    default:
      return undefined;
  }
}

// Returns {outcome, reason, check}. check(x) is the test to run, if there is one. With `direct`,
// there is no gateway between the client and the server.
export function expected({ feature, client, server }, direct) {
  if (direct && OF_THE_GATEWAY.includes(feature)) return { outcome: 'not yet', reason: 'needs a gateway' };
  const check = features[feature];
  return impossible(feature, client, server, direct) ?? { outcome: 'passes', check };
}

// Returns all pairings. If `cover` is true, returns each pair of revisions once, with transports
// chosen so that each revision uses each transport on both sides.
export function pairings(cover) {
  const all = [];
  REVISIONS.forEach((client, c) => REVISIONS.forEach((server, s) => {
    CLIENT_TRANSPORTS.forEach((clientTransport, ct) => SERVER_TRANSPORTS.forEach((serverTransport, st) => {
      if (cover && ((c + s) % 3 !== ct || (c + s + (s >> 1)) % 2 !== st)) return;
      all.push({ client, server, clientTransport, serverTransport });
    }));
  }));
  return all;
}
