"""How three kinds of models speak over HTTP, as far as clients need it to believe them.

A wire reads a request (which answer of the model is wanted, what tools returned) and writes
an answer as server-sent events. It knows nothing of stories.

An answer is a list of blocks: `{"text": …}`, `{"tool": NAME, "input": {…}}`, or for the
Responses wire `{"tool": NAME, "raw": TEXT}`, which takes free text instead of JSON.
"""

import json

USAGE = 10  # Tokens that every answer pretends to have cost.


def event(data, name=None):
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def plain(content):
    """The text of content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") for part in parts if isinstance(part, dict))


class Anthropic:
    """The Messages interface, as Claude Code uses it."""

    @staticmethod
    def fits(path):
        return path.endswith("/messages")

    @staticmethod
    def offers_tools(body):
        return bool(body.get("tools"))

    @staticmethod
    def answers_so_far(body):
        return sum(message.get("role") == "assistant" for message in body.get("messages", []))

    @staticmethod
    def first_words(body):
        """What was said before the model's first answer."""
        said = []
        for message in body.get("messages", []):
            if message.get("role") == "assistant":
                break
            said.append(plain(message.get("content")))
        return "\n".join(said)

    @staticmethod
    def results(body):
        """What tools returned, the oldest first."""
        returned = []
        for message in body.get("messages", []):
            content = message.get("content")
            for part in content if isinstance(content, list) else []:
                if part.get("type") == "tool_result":
                    returned.append(plain(part.get("content")))
        return returned

    @staticmethod
    def answer(body, turn, blocks):
        content = [Anthropic.part(turn, place, block) for place, block in enumerate(blocks)]
        stop = "tool_use" if any(part["type"] == "tool_use" for part in content) else "end_turn"
        message = {
            "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": USAGE, "output_tokens": USAGE},
        }
        yield event({"type": "message_start", "message": message}, "message_start")
        for place, part in enumerate(content):
            yield from Anthropic.stream_part(place, part)
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": USAGE}}, "message_delta")
        yield event({"type": "message_stop"}, "message_stop")

    @staticmethod
    def part(turn, place, block):
        if "tool" not in block:
            return {"type": "text", "text": block["text"]}
        return {"type": "tool_use", "id": f"toolu_{turn}_{place}", "name": block["tool"], "input": block["input"]}

    @staticmethod
    def stream_part(place, part):
        if part["type"] == "text":
            start, delta = {**part, "text": ""}, {"type": "text_delta", "text": part["text"]}
        else:
            start = {**part, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        yield event({"type": "content_block_start", "index": place, "content_block": start}, "content_block_start")
        yield event({"type": "content_block_delta", "index": place, "delta": delta}, "content_block_delta")
        yield event({"type": "content_block_stop", "index": place}, "content_block_stop")


class Responses:
    """The Responses interface, as Codex uses it."""

    CALLS = ("function_call", "custom_tool_call")
    RESULTS = ("function_call_output", "custom_tool_call_output")

    @staticmethod
    def fits(path):
        return path.endswith("/responses")

    @staticmethod
    def offers_tools(body):
        # Newer models are told of their tools among the messages.
        among = any(item.get("type") == "additional_tools" for item in Responses.items(body))
        return bool(body.get("tools")) or among

    @staticmethod
    def items(body):
        items = body.get("input")
        return items if isinstance(items, list) else []

    @staticmethod
    def answers_so_far(body):
        # One answer may hold several calls; their ids tell which answer they were in.
        answers = set()
        for place, item in enumerate(Responses.items(body)):
            if item.get("type") in Responses.CALLS:
                answers.add(item["call_id"].split("_")[1])
            elif item.get("role") == "assistant":
                answers.add(f"text {place}")
        return len(answers)

    @staticmethod
    def first_words(body):
        said = []
        for item in Responses.items(body):
            if item.get("type") in Responses.CALLS:
                break
            said.append(plain(item.get("content")))
        return "\n".join(said)

    @staticmethod
    def results(body):
        items = Responses.items(body)
        return [plain(item.get("output")) for item in items if item.get("type") in Responses.RESULTS]

    @staticmethod
    def answer(body, turn, blocks):
        items = [Responses.item(turn, place, block) for place, block in enumerate(blocks)]
        response = {"id": f"resp_{turn}", "object": "response", "model": body.get("model"), "output": []}
        usage = {"input_tokens": USAGE, "output_tokens": USAGE, "total_tokens": 2 * USAGE}
        steps = [("response.created", {"response": {**response, "status": "in_progress"}})]
        for place, item in enumerate(items):
            steps.append(("response.output_item.added", {"output_index": place, "item": item}))
            steps.append(("response.output_item.done", {"output_index": place, "item": item}))
        done = {**response, "status": "completed", "output": items, "usage": usage}
        steps.append(("response.completed", {"response": done}))
        for number, (name, data) in enumerate(steps):
            yield event({"type": name, "sequence_number": number, **data}, name)

    @staticmethod
    def item(turn, place, block):
        call = f"call_{turn}_{place}"
        if "text" in block:
            content = [{"type": "output_text", "text": block["text"], "annotations": []}]
            return {"type": "message", "id": call, "role": "assistant", "status": "completed", "content": content}
        known = {"id": f"id_{call}", "call_id": call, "status": "completed", "name": block["tool"]}
        if "raw" in block:
            return {"type": "custom_tool_call", **known, "input": block["raw"]}
        return {"type": "function_call", **known, "arguments": json.dumps(block["input"])}


class Gemini:
    """`streamGenerateContent`, as Gemini CLI uses it."""

    @staticmethod
    def fits(path):
        return path.endswith(":streamGenerateContent")

    @staticmethod
    def offers_tools(body):
        return any(tool.get("functionDeclarations") for tool in body.get("tools") or [])

    @staticmethod
    def answers_so_far(body):
        return sum(content.get("role") == "model" for content in body.get("contents", []))

    @staticmethod
    def first_words(body):
        said = []
        for content in body.get("contents", []):
            if content.get("role") == "model":
                break
            said.append(plain(content.get("parts")))
        return "\n".join(said)

    @staticmethod
    def results(body):
        returned = []
        for content in body.get("contents", []):
            for part in content.get("parts", []):
                if "functionResponse" in part:
                    response = part["functionResponse"].get("response", {})
                    returned.append(str(response.get("error") or response.get("output") or response))
        return returned

    @staticmethod
    def answer(body, turn, blocks):
        parts = [Gemini.part(block) for block in blocks]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": USAGE, "candidatesTokenCount": USAGE, "totalTokenCount": 2 * USAGE}
        yield event({"candidates": [candidate], "usageMetadata": usage})

    @staticmethod
    def part(block):
        if "tool" in block:
            return {"functionCall": {"name": block["tool"], "args": block["input"]}}
        return {"text": block["text"]}


ALL = (Anthropic, Responses, Gemini)
