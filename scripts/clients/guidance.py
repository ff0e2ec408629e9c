"""What stewards want an agent to know reaches its model, in every client."""

from room import check
from run import run
from stories import story

ATLAS = """\
atlas_version: "1.0"
atlas_id: "com.example.guidance"
version: "1.0.0"
name: "Guidance"
capabilities:
  - capability_id: "work"
    name: "Work"
    actions: ["file.*", "process.*", "shell.*", "git.*", "agent.*", "safepoint.*"]
checkpoints:
  - checkpoint_id: "welcome"
    name: "Welcome"
    trigger: { type: session_start }
    mode: advisory
    inject_contexts: ["house-rules"]
  - checkpoint_id: "about-tasks"
    name: "About tasks"
    trigger: { type: keyword, patterns: ["task"] }
    mode: advisory
    inject_contexts: ["task-rules"]
  - checkpoint_id: "after-writing"
    name: "After writing"
    trigger: { type: action_post, patterns: ["file.write"] }
    mode: blocking
    questions:
      - question_id: "tested"
        question: "Has what was written been tested?"
        response_type: boolean
context_blocks:
  - { context_id: "house-rules", name: "House rules", content: "Tabs are for tables.", inject_mode: on_demand }
  - { context_id: "task-rules", name: "Task rules", content: "A task ends with a test.", inject_mode: on_demand }
"""


@story("guidance")
def guidance(client, room):
    """At the start, with the prompt, and after an action."""
    room.use_atlas(ATLAS)
    outcome = run(client, room, [[client.shell("sed -i s/old/new/ src/util.py")]])
    check("new" in room.read("src/util.py"), f"sed did not run: {outcome.results}")
    for words in ("Tabs are for tables", "A task ends with a test", "Has what was written been tested"):
        check(words in outcome.told.everything, f"the model was not told “{words}”")
