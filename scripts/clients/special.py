"""What only one client does, or does in its own way."""

import json
import os
import sys

import codex
from room import changed, check
from run import run, wrap
from stories import DELETION, GATE, story

# A steward who has thought of sub-agents.
MAY_DELEGATE = """\
policies:
  - policy_id: "sub-agents"
    type: allow
    actions: ["agent.delegate"]
    reason: "What they do is judged one by one"
"""

MCP_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_server.py")


def run_sub_agent(client, room, line):
    """A sub-agent is started and runs a line; returns what it was told."""
    asked = "Clean up, please."
    task = {"description": "a part of it", "prompt": asked, "subagent_type": "general-purpose"}
    # It runs beside its parent, which is spoken to again when it has ended.
    turns = [[{"tool": "Agent", "input": task}], [{"text": "I wait."}]]
    outcome = run(client, room, turns, {asked: [[client.shell(line)], [{"text": "That was it."}]]})
    told = outcome.branches[asked]
    check(told is not None and told.results, f"the sub-agent did nothing: {outcome.results}")
    return told


@story("sub-agent-works", only="claude")
def sub_agent_works(client, room):
    """Without an atlas a sub-agent may do what can be undone."""
    run_sub_agent(client, room, "sed -i s/old/new/ src/util.py")
    check("new" in room.read("src/util.py"), "sed did not run")
    check(changed(room.action_that_changed("src/util.py")) == {"src/util.py"}, "it has changed more")


@story("sub-agent", only="claude")
def sub_agent(client, room):
    """What a sub-agent does is judged like everything else."""
    room.use_atlas(GATE + MAY_DELEGATE)
    told = run_sub_agent(client, room, DELETION)
    check(room.exists("src/app.py"), "the deletion went ahead")
    check("QUESTIONS_PENDING" in told.results[0], f"the sub-agent was not told why: {told.results}")


def run_touch(client, room):
    """The model calls the tool of a server that the client was told of."""
    servers = {"mcpServers": {"mini": {"command": sys.executable, "args": [MCP_SERVER]}}}
    settings = os.path.join(room.root, "mcp.json")
    with open(settings, "w") as file:
        json.dump(servers, file)
    call = {"tool": "mcp__mini__touch", "input": {"path": room.path("made-by-mcp.txt")}}
    return run(client, room, [[call]], more=["--mcp-config", settings])


@story("mcp", only="claude")
def mcp(client, room):
    """A tool of an MCP server is put before a person, unless the rules know it."""
    outcome = run_touch(client, room)
    check("APPROVAL_REQUIRED" in outcome.results[0], f"the model was not told why: {outcome.results}")
    check(not room.exists("made-by-mcp.txt"), "the server's tool was called")


@story("mcp-allowed", only="claude")
def mcp_allowed(client, room):
    """The same call does pass where the rules let it: so the story before shows something."""
    room.use_atlas(GATE.replace('"safepoint.*"', '"safepoint.*", "mcp.mini.*"'))
    run_touch(client, room)
    check(room.exists("made-by-mcp.txt"), "the server's tool was not called")
    room.action_that_changed("made-by-mcp.txt")


@story("patch", only="codex")
def patch(client, room):
    """One patch adds, changes, deletes and moves: one action."""
    before = room.tree()
    change = codex.patch(
        "*** Add File: src/added.py", "+print('added')",
        "*** Update File: src/app.py", "@@", "-    return a - b", "+    return a + b",
        "*** Delete File: README.md",
        "*** Update File: src/util.py", "*** Move to: lib/util.py", "@@", "-NAME = 'old'", "+NAME = 'new'",
    )
    run(client, room, [[change]])
    check(room.read("lib/util.py") == "SCALE = 1\nNAME = 'new'\n", "the patch was not applied")
    action = room.action_that_changed("src/added.py")
    expected = {"src/added.py", "src/app.py", "README.md", "src/util.py", "lib/util.py"}
    check(changed(action) - {"lib"} == expected, f"it has changed {changed(action)}")
    room.safepoint("undo", action["action_id"])
    check(room.tree() == before, "it is not all back")


@story("patch-stopped", only="codex")
def patch_stopped(client, room):
    """A deletion in a patch is a deletion."""
    room.use_atlas(GATE)
    outcome = run(client, room, [[codex.patch("*** Delete File: src/app.py")]])
    check(room.exists("src/app.py"), "the deletion went ahead")
    check("QUESTIONS_PENDING" in outcome.results[0], f"the model was not told why: {outcome.results}")


@story("code-mode", only="codex")
def code_mode(client, room):
    """Newer models write a program that calls tools: each of its calls is judged."""
    room.use_atlas(GATE)
    program = f"""
        text(await tools.exec_command({{cmd: "ls src"}}));
        try {{
            text(await tools.exec_command({{cmd: "{DELETION}"}}));
        }} catch (error) {{
            text(String(error));
        }}
    """
    more = ["--dangerously-bypass-hook-trust", "--model", "gpt-5.6-sol"]
    outcome = run(client, room, [[{"tool": "exec", "raw": program}]], more=more)
    check("util.py" in outcome.results[0], f"the harmless call did not pass: {outcome.results}")
    check(room.exists("src/app.py"), "the deletion went ahead")
    check("QUESTIONS_PENDING" in outcome.results[0], f"the model was not told why: {outcome.results}")


@story("background", only="claude")
def background(client, room):
    """A command that nobody waits for is recorded too, with what it changed."""
    call = client.shell("sleep 1; sed -i s/old/new/ src/util.py")
    call["input"]["run_in_background"] = True
    outcome = run(client, room, [[call], [client.shell("sleep 3")]])
    check("new" in room.read("src/util.py"), f"sed did not run: {outcome.results}")
    room.action_that_changed("src/util.py")


@story("parallel", only="gemini")
def parallel(client, room):
    """Commands at the same time: each file is the work of its own action."""
    heard = os.path.join(room.root, "heard")
    wrap(room, f"before && echo before >>{heard} || echo other >>{heard}")
    lines = ["sed -i s/a-b/a+b/ src/app.py", "sed -i s/old/new/ src/util.py"]
    room.write("src/app.py", "print(a-b)\n")
    outcome = run(client, room, [[client.shell(line) for line in lines]])
    done = "a+b" in room.read("src/app.py") and "new" in room.read("src/util.py")
    check(done, f"not both were done: {outcome.results}")
    with open(heard) as file:
        check("before\nbefore\n" in file.read(), "the client did not make the calls at the same time")
    one, two = room.action_that_changed("src/app.py"), room.action_that_changed("src/util.py")
    check(one["action_id"] != two["action_id"], "two calls have one action id")
    check(changed(one) == {"src/app.py"} and changed(two) == {"src/util.py"}, f"{changed(one)} and {changed(two)}")
