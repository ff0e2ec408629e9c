// Safepoint for opencode, written by `safepoint install opencode`.
// Every tool passes here. Whatever goes wrong stops the tool.
import { spawn } from "node:child_process"

const program = PROGRAM
const milliseconds = TIMEOUT

// Asks Safepoint. An answer other than "go on" is an error, and so is none.
function ask(document) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["hook", "opencode"], { cwd: document.cwd })
    let stdout = ""
    let stderr = ""
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error("Safepoint did not answer in time, so this was not done."))
    }, milliseconds)
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(new Error(`Safepoint could not be started, so this was not done: ${error.message}`))
    })
    child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text))
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) {
        const reason = stderr.trim() || `Safepoint ended with ${code}, so this was not done.`
        return reject(new Error(reason))
      }
      try {
        resolve(stdout.trim() ? JSON.parse(stdout) : {})
      } catch {
        reject(new Error("Safepoint's answer was not understood, so this was not done."))
      }
    })
    // It may have ended before it read everything; then its exit code tells.
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(document))
  })
}

export const Safepoint = async ({ directory, worktree }) => {
  const base = { cwd: directory, worktree }
  // By call: what it was given, and what the model is told with its result.
  const calls = new Map()
  // By session: what the model is told with every request.
  const guidance = new Map()
  const guide = (session, place, text) => {
    if (session && text) guidance.set(session, { ...guidance.get(session), [place]: text })
  }

  return {
    "tool.execute.before": async (input, output) => {
      const given = output.args ?? {}
      const answer = await ask({
        hook_event_name: "tool.execute.before",
        ...base,
        tool_name: input.tool,
        input,
        output: { args: given },
        tool_input: given,
      })
      if (answer.args) {
        for (const key of Object.keys(given)) if (!(key in answer.args)) delete given[key]
        Object.assign(given, answer.args)
        output.args = given
      }
      calls.set(input.callID, { args: given, context: answer.context })
    },

    // The tool has run: whatever is said now, the model sees it beside the result.
    "tool.execute.after": async (input, output) => {
      const call = calls.get(input.callID) ?? {}
      calls.delete(input.callID)
      const said = call.context ? [call.context] : []
      try {
        const answer = await ask({
          hook_event_name: "tool.execute.after",
          ...base,
          tool_name: input.tool,
          input,
          output,
          tool_input: call.args ?? input.args ?? {},
        })
        if (answer.context) said.push(answer.context)
      } catch (error) {
        said.push(error.message)
      }
      if (!output || !said.length) return
      const text = said.join("\n")
      if (Array.isArray(output.content)) output.content.push({ type: "text", text })
      else output.output = output.output ? `${output.output}\n${text}` : text
    },

    "chat.message": async (input, output) => {
      const parts = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      const answer = await ask({
        hook_event_name: "chat.message",
        ...base,
        sessionID: input.sessionID,
        prompt: parts.map((part) => part.text).join("\n"),
      })
      guide(input.sessionID, "prompt", answer.context)
    },

    "experimental.chat.system.transform": async (input, output) => {
      const { start, prompt } = guidance.get(input?.sessionID) ?? {}
      if (start) output.system.push(start)
      if (prompt) output.system.push(prompt)
    },

    // These are only told; nothing waits for them.
    event: async ({ event }) => {
      if (!["session.created", "session.idle", "session.deleted"].includes(event.type)) return
      const sessionID = event.properties?.sessionID ?? event.properties?.info?.id
      try {
        const answer = await ask({ hook_event_name: event.type, ...base, sessionID })
        if (event.type === "session.created") guide(sessionID, "start", answer.context)
      } catch {}
      if (event.type === "session.deleted") guidance.delete(sessionID)
    },
  }
}
