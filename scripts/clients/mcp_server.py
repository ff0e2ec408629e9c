"""A small MCP server on standard input and output, with one tool: `touch` makes a file."""

import json
import sys

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = {"name": "touch", "description": "Make an empty file", "inputSchema": SCHEMA}


def result(method, given):
    """What a method returns, or nothing for one that is not known."""
    if method == "initialize":
        about = {"name": "mini", "version": "1"}
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        with open(given["arguments"]["path"], "w"):
            return {"content": [{"type": "text", "text": "made"}], "isError": False}
    return None


def answer(message):
    """The answer to a request; notifications get none."""
    if "id" not in message or "method" not in message:
        return None
    returned = result(message["method"], message.get("params") or {})
    unknown = {"error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": message["id"], **(unknown if returned is None else {"result": returned})}


def serve():
    for line in sys.stdin:
        said = answer(json.loads(line))
        if said:
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    serve()
