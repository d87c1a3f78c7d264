// The processes below a gateway: their roles and their lifetime.
import { readFileSync, readdirSync } from 'node:fs';
import { descendants } from '../e2e/lib.mjs';

const stat = (pid) => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
};
const started = (pid) => stat(pid)?.[19];
export const isZombie = (pid) => stat(pid)?.[0] === 'Z';
export const descriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length;
export const threads = (pid) => readdirSync(`/proc/${pid}/task`).length;
// Returns the private memory of a process, including swapped pages. Pages of files are not counted:
// the kernel drops and rereads them at any time, which would look like growth after an idle minute.
export const ownMemory = (pid) => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return ['RssAnon', 'VmSwap'].reduce((sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0), 0) * 1024;
};

// Returns the role of a process: NAME for "bulkhead compartment NAME", "server" for a server,
// otherwise the program's name (the first process of a server's sandbox, and unknown processes).
function roleOf(pid, server) {
  let words;
  try {
    words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return undefined;
  }
  if (words[1] === 'compartment') return words[2];
  return words.includes(server) ? 'server' : words[0];
}

export class Tree {
  #seen = new Map(); // pid -> start time

  // server: an argument that only this gateway's servers have; prefix: a prefix for the role names.
  constructor(pid, server, prefix = '') {
    this.pid = pid;
    this.server = server;
    this.prefix = prefix;
  }
  // All running processes below the supervisor: [{pid, role}].
  look() {
    const found = [];
    for (const pid of descendants(this.pid)) {
      const since = started(pid);
      const role = roleOf(pid, this.server);
      if (since === undefined || !role || isZombie(pid)) continue;
      this.#seen.set(pid, since);
      found.push({ pid, role: this.prefix + role });
    }
    return found;
  }
  zombies() {
    return descendants(this.pid).filter(isZombie);
  }
  // Running processes that were below the supervisor earlier.
  orphans() {
    const below = new Set(descendants(this.pid));
    return [...this.#seen].filter(([pid, since]) => !below.has(pid) && started(pid) === since && !isZombie(pid)).map(([pid]) => pid);
  }
}
