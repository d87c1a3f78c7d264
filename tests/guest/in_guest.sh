#!/bin/sh
# Runs in the guest as root, with the shell and commands of busybox.
export PATH=/bin:/app/bin HOME=/root XDG_STATE_HOME=/tmp/state
failed=0
log=/tmp/gateway.log

ok() { echo "$1: ok"; }
not_ok() { echo "$1: FAILED: $2"; failed=1; }
check() {  # NAME EXPECTED SEEN
  if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "expected $2, saw $3"; fi
}
# Waits up to 60 s until COMMAND succeeds.
until_true() {
  for _ in $(seq 600); do
    if eval "$1" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  return 1
}

cat >/tmp/profile.json <<'P'
{
  "transports": { "guests": { "plugin": "transport-vsock", "listen": "vsock:5002", "allow_cids": [1] } },
  "mcpServers": { "fake": { "command": "/app/fake_mcp", "args": ["--tool", "say", "--tool", "slow", "--delay", "slow=60000"] } }
}
P

start_gateway() {
  bulkhead serve --config /tmp/profile.json >>$log 2>&1 3>&- &
  gateway=$!
}
relay() { bulkhead-relay --cid 1 --port 5002; }
request() {  # ID METHOD PARAMS
  printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$1" "$2" "$3"
}
calls() {  # FIRST COUNT TEXT
  awk -v first="$1" -v count="$2" -v text="$3" 'BEGIN {
    for (i = first; i < first + count; i++)
      printf "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"fake__say\",\"arguments\":{\"text\":\"%s %d\"}}}\n", i, text, i
  }'
}

start_gateway
answers() { request 1 ping '{}' | timeout 5 bulkhead-relay --cid 1 --port 5002 2>/dev/null | grep -q result; }
if ! until_true answers; then
  not_ok 'the gateway answers over AF_VSOCK' 'it does not'
  cat $log
  exit 1
fi
ok 'the gateway answers over AF_VSOCK'

# The relay closes its side when its input is closed, and then prints the remaining output. The
# number of calls exceeds limits.in_flight_per_session; further calls wait.
calls 1 1000 'call' | relay >/tmp/answers 2>/tmp/relay.log
check '1,000 calls: an answer for each' 1000 "$(grep -c '"result"' /tmp/answers)"
for i in $(seq 1000); do echo "$i"; done | sort >/tmp/wanted
sed -n 's/.*"id":\([0-9]*\)[,}].*/\1/p' /tmp/answers | sort >/tmp/seen
if cmp -s /tmp/wanted /tmp/seen; then ok '1,000 calls: each id once'; else not_ok '1,000 calls: each id once' "$(diff /tmp/wanted /tmp/seen | head -5)"; fi
check '1,000 calls: the text of each came back' 1000 "$(grep -o 'call [0-9]*' /tmp/answers | sort -u | wc -l)"

# 64 concurrent connections.
for i in $(seq 64); do
  calls 1 10 "client $i" | relay >"/tmp/answers.$i" 2>>/tmp/relay.log &
  eval "relay_$i=$!"
done
for i in $(seq 64); do eval "wait \$relay_$i" || true; done
good=0
for i in $(seq 64); do
  [ "$(grep -o "client $i [0-9]*" "/tmp/answers.$i" | sort -u | wc -l)" = 10 ] && good=$((good + 1))
done
check '64 connections at a time: all have their own answers' 64 "$good"

# The gateway is killed while calls are in flight, and then restarted.
mkfifo /tmp/input
relay </tmp/input >/tmp/lost 2>/tmp/lost.log &
lost=$!
exec 3>/tmp/input
calls 1 1 'before' >&3
until_true 'grep -q before /tmp/lost'
for id in 11 12 13; do request $id tools/call '{"name":"fake__slow","arguments":{}}' >&3; done
sleep 3
kill -9 $gateway
until_true '[ "$(grep -c -- "-32001" /tmp/lost)" = 3 ]'
check 'the endpoint is killed: each pending call gets -32001' 3 "$(grep -c '"code":-32001.*tools/call' /tmp/lost)"
start_gateway
until_true answers
calls 20 1 'after' >&3
until_true 'grep -q after /tmp/lost'
check 'the endpoint is back: the same relay serves again' 1 "$(grep -c after /tmp/lost)"
exec 3>&-
wait $lost
check 'the relay ends with its input' 0 $?

# Runs the checks that every transport must pass, with frames over AF_VSOCK.
if [ -x /app/bin/node ]; then
  if BULKHEAD_BUILD=/app FAKE_MCP=/app/fake_mcp BULKHEAD_GUEST_PORT=5003 \
    node --no-warnings /app/tests/e2e/every_transport.mjs AF_VSOCK >/tmp/checks 2>&1; then
    ok 'the checks of every transport over AF_VSOCK'
    cat /tmp/checks
  else
    not_ok 'the checks of every transport over AF_VSOCK' "$(cat /tmp/checks)"
  fi
else
  echo 'the checks of every transport over AF_VSOCK: SKIP: no Node'
fi

# Machines without cgroups v2 skip this test, so it must run here.
if /app/spawn_test 'control groups count*' >/tmp/groups 2>&1 && ! grep -q SKIP /tmp/groups; then
  ok 'control groups of version 2 count a server'
else
  not_ok 'control groups of version 2 count a server' "$(cat /tmp/groups)"
fi

bulkhead-relay doctor --cid 1 --port 5002 >/tmp/doctor 2>&1
check 'the doctor finds nothing' 0 $?
[ $failed = 0 ] || grep -h error /tmp/answers | cut -c1-200 | head -3
[ $failed = 0 ] || tail -n 20 /tmp/relay.log $log /tmp/lost.log /tmp/doctor
kill $gateway
exit $failed
