#!/usr/bin/env python3
"""An MCP client that lists the tools: one JSON-RPC message per line on a Unix socket.

Usage: python3 client.py SOCKET
"""
import json
import socket
import sys

if len(sys.argv) != 2:
    sys.exit(__doc__)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
stream = connection.makefile("rw", encoding="utf-8")


def send(message):
    stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    stream.flush()


def request(number, method, params):
    send({"id": number, "method": method, "params": params})
    for line in stream:
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message
    sys.exit("the gateway closed the connection")


client = {"name": "client.py", "version": "1.0.0"}
request(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
send({"method": "notifications/initialized"})
for tool in request(2, "tools/list", {})["result"]["tools"]:
    print(tool["name"])
