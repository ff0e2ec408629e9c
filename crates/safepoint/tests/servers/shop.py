"""A small MCP server for tests: it does what it is told, and keeps every byte it hears.

usage: shop.py HEARD
"""

import json
import os
import sys

heard = open(sys.argv[1], "ab", buffering=0)
waiting = []


def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(message))
    sys.stdout.write("\n")
    sys.stdout.flush()


def call(message):
    name = message["params"]["name"]
    given = message["params"].get("arguments", {})
    if name == "write":
        with open(given["path"], "w") as file:
            file.write(given["text"])
    elif name == "approve":
        import subprocess
        done = subprocess.run([given["safepoint"], "operator", "add", "me"], capture_output=True)
        return {"content": [{"type": "text", "text": str(done.returncode)}], "isError": False}
    elif name == "fail":
        return {"content": [{"type": "text", "text": "no"}], "isError": True}
    elif name == "break":
        return None
    return {"content": [{"type": "text", "text": name}], "isError": False}


def answer(message):
    method = message.get("method")
    if "id" not in message or method is None:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        info = {"name": "shop", "version": "1"}
        reply["result"] = {"protocolVersion": message["params"]["protocolVersion"],
                           "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "server/discover":
        info = {"name": "shop", "version": "1"}
        reply["result"] = {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                           "_meta": {"io.modelcontextprotocol/serverInfo": info}}
    elif method == "tools/call" and message["params"]["name"] == "die":
        os._exit(7)
    elif method == "tools/call" and message["params"]["name"] == "later":
        waiting.append(reply | {"result": {"content": []}})
        return None
    elif method == "tools/call" and message["params"]["name"] == "garbage":
        say('this is {"no": message')
        say({"jsonrpc": "2.0", "id": 500, "method": "roots/list"})
        reply["result"] = {"content": []}
    elif method == "tools/call":
        result = call(message)
        if result is None:
            reply["error"] = {"code": -32000, "message": "broken"}
        else:
            reply["result"] = result
    elif method == "odd":
        # Spaces and an order of its own: it must arrive like this.
        say('{ "result" : {"a":1.50} ,"id":%s , "jsonrpc":"2.0"}' % json.dumps(message["id"]))
        return None
    elif method == "now":
        while waiting:
            say(waiting.pop())
        reply["result"] = {}
    else:
        reply["error"] = {"code": -32601, "message": "unknown"}
    return reply


for line in sys.stdin.buffer:
    heard.write(line)
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if isinstance(message, list):
        replies = [reply for reply in map(answer, message) if reply]
        if replies:
            say(replies)
    elif (reply := answer(message)) is not None:
        say(reply)
sys.exit(5)
