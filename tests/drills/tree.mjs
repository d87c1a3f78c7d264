// Observes the processes below a gateway: their roles and their lifetime.
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
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
// Returns what the descriptors of a process are, sorted: files by path, TCP sockets by state, and
// other kinds by name.
export function descriptorKinds(pid) {
  const states = ['', 'established', 'SYN sent', 'SYN received', 'FIN wait 1', 'FIN wait 2', 'time wait', 'closed', 'close wait', 'last ACK', 'listening'];
  const sockets = new Map();
  for (const table of ['tcp', 'tcp6', 'unix']) {
    for (const line of readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1)) {
      const words = line.trim().split(/\s+/);
      if (table === 'unix') sockets.set(words[6], 'Unix socket');
      else if (words.length > 9) sockets.set(words[9], `TCP ${words[1].split(':')[1]} to ${words[2].split(':')[1]} (${states[parseInt(words[3], 16)]})`);
    }
  }
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      const socket = /^socket:\[(\d+)\]$/.exec(target);
      return socket ? sockets.get(socket[1]) ?? 'socket of another kind' : target;
    } catch {
      return 'closed in the meantime';
    }
  }).sort();
}
export const threads = (pid) => readdirSync(`/proc/${pid}/task`).length;
// Returns the private memory of a process, including swapped pages. File pages are not counted,
// because the kernel may drop and reread them at any time.
export const ownMemory = (pid) => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return ['RssAnon', 'VmSwap'].reduce((sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0), 0) * 1024;
};

// Returns the role of a process: NAME for "bulkhead compartment NAME", "server" for a server, and
// otherwise the name of the program (such as the first process of a server's sandbox).
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

  // server: an argument that only servers of this gateway have. prefix: is added to the role names.
  constructor(pid, server, prefix = '') {
    this.pid = pid;
    this.server = server;
    this.prefix = prefix;
  }
  // Returns all running processes below the supervisor as [{pid, role}].
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
  // Returns running processes that used to be below the supervisor.
  orphans() {
    const below = new Set(descendants(this.pid));
    return [...this.#seen].filter(([pid, since]) => !below.has(pid) && started(pid) === since && !isZombie(pid)).map(([pid]) => pid);
  }
}
