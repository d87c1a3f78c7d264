// Exports everything that end-to-end tests use.
export { test, run, until, sleep, show, Skip } from './harness.mjs';
export {
  Gateway, alive, build, descendants, ended, fake, fakeMcp, filesBelow, importFromNpm, node, npmBin, npmDir, npmServer,
  patience, processesWith, program, root, runProgram, sanitized,
} from './gateway.mjs';
export { HttpClient, RpcError, StdioClient, events } from './clients.mjs';
export { lastingPort } from '../fixtures/lasting_port.mjs';
export { member, path } from '../fixtures/raw_json.mjs';
export { strict as assert } from 'node:assert';
