#!/usr/bin/env python3
"""An MCP server with one tool, echo: one JSON-RPC message per line over TCP.

Usage: python3 echo_server.py PORT
"""
import json
import socketserver
import sys

TOOL = {
    "name": "echo",
    "description": "Returns its text.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def respond(request):
    method = request["method"]
    params = request.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == "echo":
        text = str((params.get("arguments") or {}).get("text", ""))
        return {"content": [{"type": "text", "text": text}]}
    return None


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            request = json.loads(line)
            if "id" not in request or "method" not in request:
                continue  # a notification or a response
            response = {"jsonrpc": "2.0", "id": request["id"]}
            result = respond(request)
            if result is None:
                response["error"] = {"code": -32601, "message": "unknown method or tool"}
            else:
                response["result"] = result
            self.wfile.write(json.dumps(response).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if len(sys.argv) != 2:
    sys.exit(__doc__)
with Server(("127.0.0.1", int(sys.argv[1])), Connection) as server:
    print("listening on port", server.server_address[1], flush=True)
    server.serve_forever()
