//! The command line as people and scripts meet it.

#[path = "support/witness.rs"]
mod witness;

use insta::assert_snapshot;
use serde_json::json;
use testkit::TestEnv;

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

#[test]
fn su_01_one_binary_needs_nothing_but_the_c_library() {
    #[expect(clippy::disallowed_methods, reason = "the test asks the loader")]
    let output = std::process::Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_safepoint"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let known = [
        "linux-vdso",
        "libc.so",
        "libm.so",
        "libgcc_s.so",
        "ld-linux",
        "statically linked",
    ];
    for line in text.lines() {
        assert!(known.iter().any(|name| line.contains(name)), "{line}");
    }
    assert!(!text.is_empty());
}

#[test]
fn su_01_a_command_needs_no_daemon_and_leaves_none() {
    let env = env();
    assert_eq!(env.run(&["trail", "note", "x"]).code, 0);
    let home = env.home().display().to_string();
    // Nobody still has a file of the store open.
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(files) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for file in files.flatten() {
            let target = std::fs::read_link(file.path()).unwrap_or_default();
            assert!(
                !target.starts_with(&home),
                "{target:?} in {:?}",
                process.path()
            );
        }
    }
    assert!(
        !env.home().join("runtime").exists(),
        "no socket, no pid file"
    );
}

#[test]
fn su_02_help_names_every_command() {
    assert_snapshot!(env().snapshot(&["--help"]), @r"
    exit 0
    ----- stdout
    Every agent action judged, undoable and provable

    Usage: safepoint [OPTIONS] <COMMAND>

    Commands:
      try          Show a sample agent under control, in a project that is thrown away
      init         Make the store and its trail now, rather than with the first command that needs them
      status       Show where everything is and how it stands
      checkpoint   Capture files, git state, databases and states exactly, so that they can be restored
      list         List checkpoints, the newest first
      show         Show one checkpoint
      diff         Show what changed since a checkpoint, or between two
      mutate       Change something under a checkpoint; check it, and keep it or roll it back
      verify       Tell whether a checkpoint can be restored, or a change still holds
      rollback     Make the workspace, or a part of it, identical to a checkpoint
      undo         Take back what one action did, and keep what came later
      redo         Take back the last roll back or undo
      log          List what happened, the newest first, with what each action changed
      pin          Keep a checkpoint even when it has expired
      du           Show how much the store holds
      gc           Delete expired checkpoints and what nothing needs any more
      state        Show the states of this workspace, as they are now
      watch        Listen to what changes, so that a checkpoint reads only that
      trail        Read, verify and prove the record of everything
      audit        Print what was done here, by whom, why and with what outcome, as an audit
      atlas        Check, try out and sign what a steward wrote about agents' actions
      session      Judge what an agent does under an atlas, step by step
      workspace    Give agents places to work in, and keep what they produce as chains
      task         Write down what is to be done, and give it to workspaces
      exec         Run one command: judged, made undoable, approved where it must be, recorded
      run          Run a workflow, or any agent program, under control
      hold         Look at what waits for a person, and decide
      tui          Open the operator's terminal: look at what waits, and decide
      permit       Look at leave that was given, and take it back
      trust        Look at what is trusted, and change it
      operator     Say who decides
      token        Say who may ask over a connection, and for what; see `safepoint serve`
      notify       Say who is told what waits, and tell them
      hook         Answer an agent client before and after it uses a tool; see `safepoint install`
      install      Put Safepoint's hooks and skills into an agent client
      uninstall    Take Safepoint's hooks and skills out of an agent client
      doctor       Prove that each installed hook denies, and say what is not covered
      mcp          Offer checkpoint, undo and the rest to an agent as tools of an MCP server
      mcp-proxy    Stand in front of an MCP server, and have each use of a tool pass
      serve        Serve the API over HTTP, for people and agents elsewhere
      completions  Print the script that completes commands in a shell
      man          Print the manual page, or write one for each command
      schema       Print the JSON Schema of what a command prints
      help         Print this message or the help of the given subcommand(s)

    Options:
          --output <FORM>
              The form of what is printed

              Possible values:
              - text:   For people
              - json:   One JSON value
              - ndjson: One JSON value a line
              - yaml:   The same value as with `json`, as YAML
              
              [default: text]

          --json
              Short for --output json

      -C <DIR>
              Work in this directory instead of the current one

          --store <STORE>
              Use this store: sqlite:PATH, postgres://… or https://SERVER
              
              Without it: `SAFEPOINT_STORE`, then your settings, then a SQLite file in your data
              directory.

      -q, --quiet
              Print data and errors, nothing else

      -y, --yes
              Answer yes to what would be asked

          --color <WHEN>
              When to use colour

              Possible values:
              - auto:   On a terminal, unless `NO_COLOR` is set
              - always: Always
              - never:  Never
              
              [default: auto]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version
    ");
}

#[test]
fn su_02_errors_say_what_where_and_what_next() {
    let env = env();
    assert_snapshot!(env.snapshot(&["no-such-command"]), @r"
    exit 7
    ----- stderr
    error: unrecognized subcommand 'no-such-command'

    Usage: safepoint [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(env.snapshot(&["no-such-command", "--json"]), @r#"
    exit 7
    ----- stdout
    {"error":{"code":"U701","name":"USAGE","message":"unrecognized subcommand 'no-such-command'","location":null,"suggestion":"`safepoint help` lists the commands"}}
    "#);
    assert_snapshot!(env.snapshot(&["trail", "show", "ent_zzz"]), @r"
    exit 8
    ----- stderr
    error: the trail has no entry `ent_zzz`
    hint: `safepoint trail list` shows what there is
    ");
    assert_snapshot!(env.snapshot(&["trail", "show", "12", "--json"]), @r#"
    exit 8
    ----- stdout
    {"error":{"code":"N801","name":"NOT_FOUND","message":"the trail has no entry at place 12","location":"entry at place 12","suggestion":"`safepoint trail list` shows what there is"}}
    "#);
    assert_snapshot!(env.snapshot(&["--store", "mysql:secret", "status"]), @r"
    exit 7
    ----- stderr
    error: a store is `sqlite:PATH` or `postgres://USER@HOST/DATABASE`, not `mysql:…`
    hint: for example `--store sqlite:/path/to/store.db`
    ");
    assert_snapshot!(env.snapshot(&["-C", "nowhere", "status"]), @r"
    exit 8
    ----- stderr
    error: there is no directory `[root]/project/nowhere`
    hint: check the spelling
    ");
    assert_snapshot!(env.snapshot(&["trail", "list", "--since", "yesterday"]), @r"
    exit 7
    ----- stderr
    error: `yesterday` is neither a time nor a length of time
    hint: write `[time]`, or how long ago: `90s`, `24h`, `7d`
    ");
    assert_snapshot!(env.snapshot(&["trail", "list", "--where", "x"]), @r"
    exit 7
    ----- stderr
    error: `--where x` is not of the form FIELD=VALUE
    hint: for example `--where decision=deny` or `--where result.code=0`
    ");
    assert_snapshot!(env.snapshot(&["trail", "check-proof", "nowhere", "--key", "x"]), @r"
    exit 7
    ----- stderr
    error: `--key`: not a verifier key of the form `NAME+HASH+KEY`
    hint: `safepoint trail head --json` prints the key of a trail
    ");
    assert_snapshot!(env.snapshot(&["--store", "postgres://nobody@localhost/none?host=/nowhere", "status"]), @r"
    exit 5
    ----- stderr
    error: the store `postgres://nobody@localhost:5432/none` cannot be reached
    cause: error connecting to server
    cause: No such file or directory (os error 2)
    hint: check the address, and that the server runs
    ");
}

#[test]
fn su_02_a_usage_error_is_never_exit_2() {
    let env = env();
    for arguments in [
        &["no-such-command"][..],
        &[],
        &["trail"],
        &["trail", "prove"],
        &["trail", "list", "--no-such-flag"],
        &["trail", "list", "--limit", "many"],
        &["trail", "export"],
        &["trail", "export", "--format", "xml"],
        &["status", "--output", "xml"],
        &["status", "--json", "--output", "text"],
        &["completions", "tcsh"],
    ] {
        assert_eq!(env.run(arguments).code, 7, "{arguments:?}");
    }
    assert!(!env.home().exists(), "nothing was made");
}

#[test]
fn su_02_data_goes_to_stdout_and_talk_to_stderr() {
    let env = env();
    let out = env.root().join("out.jsonl").display().to_string();
    let run = env.run(&["trail", "export", "--format", "jsonl", "--out", &out]);
    assert_eq!((run.stdout.as_str(), run.code), ("", 0));
    assert!(run.stderr.contains("1 entry written to"), "{}", run.stderr);
    let quiet = env.run(&["-q", "trail", "export", "--format", "jsonl", "--out", &out]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let error = env.run(&["trail", "show", "99", "--json"]);
    assert!(
        error.stderr.is_empty() && error.stdout.starts_with("{\"error\":"),
        "{error:?}"
    );
}

#[test]
fn su_02_colour_only_where_it_is_wanted() {
    let mut env = env();
    let coloured = |run: testkit::Run| run.stdout.contains('\u{1b}');
    assert!(!coloured(env.run(&["status"])), "not in a pipe");
    assert!(coloured(env.run(&["--color", "always", "status"])));
    assert!(!coloured(
        env.run(&["--color", "always", "--json", "status"])
    ));
    env.set("NO_COLOR", "1");
    assert!(!coloured(env.run(&["status"])));
}

#[test]
fn su_02_hostile_text_cannot_draw_on_the_screen() {
    let env = env();
    let attack = "fine\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnp.exe\r\nsecond";
    assert_eq!(env.run(&["trail", "note", attack]).code, 0);
    for arguments in [
        &["trail", "list"][..],
        &["trail", "show", "1"],
        &["trail", "note", attack],
    ] {
        let shown = env.run(arguments).stdout;
        let plain = |c: char| c == '\n' || (!c.is_control() && c != '\u{202e}');
        assert!(shown.chars().all(plain), "{shown:?}");
    }
    let stored = env.json(&["trail", "show", "1"]);
    assert_eq!(
        stored["body"]["text"], attack,
        "as data it is kept to the letter"
    );
}

#[test]
fn su_02_completions_and_man_pages() {
    let env = env();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = env.run(&["completions", shell]);
        assert!(
            run.code == 0 && run.stdout.contains("check-proof"),
            "{shell}"
        );
    }
    let page = env.run(&["man"]);
    assert!(
        page.stdout.starts_with(".ie") && page.stdout.contains("safepoint"),
        "{page:?}"
    );
    let out = env.root().join("man").display().to_string();
    assert_eq!(env.run(&["man", "--out", &out]).code, 0);
    assert!(
        env.root()
            .join("man/safepoint-trail-check-proof.1")
            .is_file()
    );
    assert!(!env.home().exists(), "no store was made for this");
}

#[test]
fn su_02_a_closed_pipe_is_not_an_error() {
    let env = env();
    for number in 0..3 {
        env.run(&["trail", "note", &format!("{number} {}", "x".repeat(50_000))]);
    }
    let mut child = env
        .command(&["trail", "list", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn su_02_how_a_command_ends_does_not_depend_on_who_listens() {
    let env = env();
    env.write("bad.yaml", "atlas_version: nonsense\n");
    let unheard = |arguments: &[&str]| {
        let mut child = env
            .command(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    for arguments in [
        &["atlas", "check", "bad.yaml"][..],
        &["exec", "--json", "--", "git", "push", "origin"],
        &["exec", "--dry-run", "--", "git", "push", "origin"],
        &["trail", "show", "999", "--json"],
    ] {
        let heard = env.run(arguments).code;
        assert_ne!(heard, 0, "{arguments:?}");
        assert_eq!(unheard(arguments), Some(heard), "{arguments:?}");
    }
    // Whoever follows something ends when nobody does.
    env.run(&["trail", "note", "something to print"]);
    assert_eq!(unheard(&["trail", "list", "--follow"]), Some(0));
}

#[test]
fn su_02_what_is_printed_fits_its_schema() {
    let env = env();
    env.run(&["trail", "note", "for the schema"]);
    let proof = env.root().join("p").display().to_string();
    env.run(&["trail", "prove", "1", "--out", &proof]);
    let key = env.json(&["trail", "head"])["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let schemas = env.run(&["schema"]).stdout;
    let schemas: serde_json::Value = serde_json::from_str(&schemas).unwrap();
    let mut checked = Vec::new();
    let acme = include_str!("../../../examples/acme-support.yaml");
    env.write("project/acme.yaml", acme);
    let start = ["session", "start", "--atlas", "acme.yaml"];
    let session = env.json(&start)["session_id"].clone();
    let session = session.as_str().unwrap();
    let agree = r#"{"agree-terms": "perhaps"}"#;
    env.write("project/file", "one\n");
    env.write(
        "project/flow.yaml",
        "name: flow\nsteps:\n  - {id: look, argv: [ls]}\n",
    );
    env.json(&["operator", "add", "ada"]);
    let kill = ["exec", "--no-tui", "--json", "--", "kill", "-0", "999999"];
    let denied: serde_json::Value = serde_json::from_str(&env.run(&kill).stdout).unwrap();
    let hold = denied["denial"]["hold_id"].as_str().unwrap();
    let shown = env.json(&["hold", "show", hold]);
    let (print, word) = (
        shown["fingerprint"].as_str().unwrap(),
        shown["confirm"].as_str().unwrap(),
    );
    let first = env.json(&["checkpoint"])["checkpoint_id"].clone();
    let first = first.as_str().unwrap();
    env.write("project/file", "two\n");
    let write = r#"{"type": "write", "content": "three\n"}"#;
    let made = env.json(&["workspace", "create", "--role", "coordinator"]);
    let root = made["workspace_id"].as_str().unwrap();
    let worker = ["workspace", "create", "--parent", root, "--role", "worker"];
    let apart = env.json(&[&worker[..], &["--isolated", "--directive", "work"]].concat());
    let apart = apart["workspace_id"].as_str().unwrap();
    env.json(&["workspace", "state", apart, "failed"]);
    let made = env.json(&[&worker[..], &["--directive", "work"]].concat());
    let (agent, token) = (
        made["workspace_id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    let record = r#"{"type": "artifact", "payload": {"files_changed": ["a"], "content": "", "artifacts": [1]}, "intent": "see", "parent": null, "status": "final", "confidence": "low", "resource_usage": {"wall_time": 1.5}}"#;
    let mut played = witness::Witness::new(1);
    let witness_key = played.printed();
    let url = witness::serve(move |asked| played.answer(asked));
    let witness = [
        "trail",
        "witness",
        &format!("{url}/w"),
        "--key",
        &witness_key,
    ];
    let [tiles, bundle, out] = ["tiles", "bundle", "spans"].map(|name| {
        let path = env.root().join(name);
        path.display().to_string()
    });
    for (name, arguments) in [
        ("init", &["init"][..]),
        ("checkpoint", &["checkpoint", "--reason", "second"]),
        ("list", &["list", "--automatic"]),
        ("show", &["show", first]),
        ("diff", &["diff", first]),
        ("verify", &["verify", first]),
        ("rollback-plan", &["rollback", first, "--dry-run"]),
        ("rollback", &["rollback", first]),
        ("rollback", &["redo"]),
        ("log", &["log"]),
        ("pin", &["pin", first]),
        ("du", &["du"]),
        ("gc", &["gc", "--dry-run"]),
        ("watch", &["watch", "--status"]),
        (
            "mutate",
            &["mutate", "file", "--auto-checkpoint", "--operation", write],
        ),
        ("error", &["mutate", "file", "--operation", write]),
        ("state", &["state"]),
        ("audit", &["audit"]),
        ("status", &["status"]),
        ("trail-list", &["trail", "list"]),
        ("trail-list", &["trail", "list", "--limit", "1"]),
        ("trail-entry", &["trail", "show", "1"]),
        ("trail-head", &["trail", "head"]),
        ("trail-verify", &["trail", "verify"]),
        ("trail-prove", &["trail", "prove", "1"]),
        ("trail-prove", &["trail", "prove", "--consistency", "1"]),
        (
            "trail-check-proof",
            &["trail", "check-proof", &proof, "--key", &key],
        ),
        (
            "trail-check-proof",
            &["trail", "check-proof", "/dev/null", "--key", &key],
        ),
        (
            "trail-export",
            &["trail", "export", "--format", "otlp", "--out", &out],
        ),
        ("trail-tiles", &["trail", "tiles", &tiles]),
        ("trail-witness", &witness),
        ("trail-head", &["trail", "head"]),
        (
            "trail-bundle",
            &["trail", "bundle", session, "--out", &bundle],
        ),
        (
            "trail-check-bundle",
            &["trail", "check-bundle", &bundle, "--key", &key],
        ),
        (
            "trail-check-bundle",
            &["trail", "check-bundle", "/dev/null", "--key", &key],
        ),
        ("error", &["trail", "show", "77"]),
        ("error", &["bogus"]),
        ("atlas-init", &["atlas", "init", "starter.yaml"]),
        ("atlas-check", &["atlas", "check", "acme.yaml"]),
        ("atlas-show", &["atlas", "show"]),
        ("atlas-suggest", &["atlas", "suggest"]),
        ("atlas-test", &["atlas", "test", "acme.yaml"]),
        ("session-start", &start),
        (
            "session-step",
            &[
                "session",
                "answer",
                session,
                "onboarding",
                "--answers",
                agree,
            ],
        ),
        (
            "session-step",
            &["session", "request", session, "ticket.get"],
        ),
        ("workspace-create", &worker),
        (
            "workspace-checkpoint",
            &[
                "workspace",
                "checkpoint",
                agent,
                "--token",
                token,
                "--body",
                record,
            ],
        ),
        (
            "workspace-checkpoint",
            &[
                "workspace",
                "checkpoint",
                agent,
                "--token",
                token,
                "--body",
                "{}",
            ],
        ),
        ("workspace-list", &["workspace", "list"]),
        ("workspace-show", &["workspace", "show", agent]),
        ("workspace-chain", &["workspace", "head", agent]),
        ("workspace-chain", &["workspace", "final", root]),
        ("workspace-log", &["workspace", "log", agent]),
        ("workspace-log", &["workspace", "log", root]),
        ("workspace-verify", &["workspace", "verify", agent]),
        ("workspace-recover", &["workspace", "recover"]),
        ("workspace-remove", &["workspace", "remove", apart]),
        ("workspace-meter", &["workspace", "meter", agent]),
        ("task", &["task", "create", "see"]),
        ("task-list", &["task", "list"]),
        ("workspace-watch-once", &["workspace", "watch", "--once"]),
        (
            "workspace-signal",
            &["workspace", "signal", agent, "ready", "--token", token],
        ),
        ("workspace-signals", &["workspace", "signals", root]),
        (
            "workspace-state",
            &["workspace", "state", agent, "suspended"],
        ),
        ("workspace-state", &["workspace", "state", agent, "active"]),
        (
            "workspace-signal",
            &["workspace", "signal", agent, "complete", "--token", token],
        ),
        (
            "workspace-integration",
            &["workspace", "integrate", agent, "--no-tui"],
        ),
        ("workspace-show", &["workspace", "show", agent]),
        ("operator-list", &["operator", "list"]),
        ("operator", &["operator", "add", "eva"]),
        (
            "denial",
            &["exec", "--no-tui", "--", "kill", "-0", "999999"],
        ),
        ("exec", &["exec", "--no-tui", "--", "ls"]),
        ("install", &["install", "gemini", "--project", "--dry-run"]),
        ("doctor", &["doctor"]),
        ("exec-dry-run", &["exec", "--dry-run", "--", "ls"]),
        ("hold-list", &["hold", "list"]),
        ("hold", &["hold", "show", hold]),
        ("notify-event", &["notify", "watch", "--once"]),
        (
            "notify-target",
            &["notify", "add", "me", "--desktop", "--operator", "ada"],
        ),
        ("notify-list", &["notify", "list"]),
        ("notify-test", &["notify", "test", "me"]),
        ("notify-deliver", &["notify", "deliver"]),
        (
            "hold-decision",
            &[
                "hold",
                "approve",
                hold,
                "--fingerprint",
                print,
                "--confirm",
                word,
                "--operator",
                "ada",
            ],
        ),
        ("permit-list", &["permit", "list"]),
        ("permit", &["permit", "show", "prm_"]),
        (
            "run",
            &["run", "flow.yaml", "--objective", "see", "--no-tui"],
        ),
        ("run-agent", &["run", "--", "true"]),
        ("trust", &["trust", "grant", "tool:/usr/bin/ls"]),
        ("trust-list", &["trust", "list"]),
        ("token", &["token", "create", "ci", "--role", "agent"]),
        ("token", &["token", "revoke", "ci"]),
        ("token-list", &["token", "list"]),
        (
            "signature",
            &["operator", "sign", "trust x y", "--operator", "ada"],
        ),
        ("session-show", &["session", "show", session]),
        ("session-list", &["session", "list"]),
        ("atlas-replay", &["atlas", "replay", "starter.yaml"]),
        (
            "atlas-sign",
            &["atlas", "sign", "starter.yaml", "--key", "key", "--new-key"],
        ),
    ] {
        let run = env.run(&[&["--json"], arguments].concat());
        let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let validator = jsonschema::validator_for(&schemas[name]).unwrap();
        if let Err(error) = validator.validate(&printed) {
            assert_eq!(error.to_string(), "", "{arguments:?}: {printed}");
        }
        checked.push(name);
    }
    // Where it goes on, each signal is a document.
    let signals = env.run(&["workspace", "watch", "--once", "--output", "ndjson"]);
    let validator = jsonschema::validator_for(&schemas["workspace-watch"]).unwrap();
    assert!(!signals.stdout.is_empty());
    for line in signals.stdout.lines() {
        let signal = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&signal), "{line}");
    }
    checked.push("workspace-watch");
    let mut publish = env.command(&["--json", "trail", "publish"]);
    let depot = format!("file://{}", env.root().join("depot").display());
    let published = publish.env("SAFEPOINT_OBJECTS", depot).output().unwrap();
    let published = serde_json::from_slice(&published.stdout).unwrap();
    let validator = jsonschema::validator_for(&schemas["trail-publish"]).unwrap();
    assert!(validator.is_valid(&published), "{published}");
    checked.push("trail-publish");
    // What a server says to machines elsewhere is checked where there is one: `remote.rs`.
    let here = |name: &&String| !name.starts_with("judge-");
    for name in schemas.as_object().unwrap().keys().filter(here) {
        assert!(checked.contains(&name.as_str()), "{name} is not checked");
    }
}

#[test]
fn su_03_everything_moves_with_safepoint_home() {
    let env = env();
    let status = env.json(&["status"]);
    let home = env.home().display().to_string();
    for place in ["config", "data", "state", "runtime"] {
        assert_eq!(status["paths"][place], format!("{home}/{place}"));
    }
    assert!(!env.root().join("user").exists(), "nothing in HOME");
}

#[test]
fn su_03_without_it_the_xdg_directories_are_used() {
    let mut env = env();
    let root = env.root().display().to_string();
    env.set("SAFEPOINT_HOME", "");
    let paths = env.json(&["status"])["paths"].clone();
    assert_eq!(paths["config"], format!("{root}/user/.config/safepoint"));
    assert_eq!(paths["data"], format!("{root}/user/.local/share/safepoint"));
    assert_eq!(
        paths["state"],
        format!("{root}/user/.local/state/safepoint")
    );
    for (variable, place) in [("CONFIG", "config"), ("DATA", "data"), ("STATE", "state")] {
        env.set(
            &format!("XDG_{variable}_HOME"),
            &format!("{root}/xdg/{place}"),
        );
    }
    env.set("XDG_RUNTIME_DIR", &format!("{root}/xdg/runtime"));
    let paths = env.json(&["status"])["paths"].clone();
    for place in ["config", "data", "state", "runtime"] {
        assert_eq!(paths[place], format!("{root}/xdg/{place}/safepoint"));
    }
}

#[test]
fn su_03_the_store_is_chosen_by_flag_or_variable() {
    let mut env = env();
    let chosen = |env: &TestEnv, arguments: &[&str]| {
        let store = env.json(arguments)["settings"]["store"].clone();
        (
            store["value"].as_str().unwrap().to_owned(),
            store["origin"].as_str().unwrap().to_owned(),
        )
    };
    let root = env.root().display().to_string();
    assert_eq!(chosen(&env, &["status"]).1, "default");
    env.set("SAFEPOINT_STORE", &format!("sqlite:{root}/variable.db"));
    assert_eq!(
        chosen(&env, &["status"]),
        (format!("sqlite:{root}/variable.db"), "environment".into())
    );
    let flag = format!("sqlite:{root}/flag.db");
    assert_eq!(
        chosen(&env, &["status", "--store", &flag]),
        (flag, "flag".into())
    );
    // A relative path is taken from where the command runs.
    assert_eq!(
        chosen(&env, &["--store", "sqlite:here.db", "status"]).0,
        format!("sqlite:{root}/project/here.db")
    );
    assert!(env.project().join("here.db").is_file());
}

#[test]
fn su_03_a_projects_settings_are_found_upwards() {
    let env = env();
    env.write(
        "project/safepoint.yaml",
        "checkpoint: always\nhold_timeout: 5m\natlases: [team.yaml]\n",
    );
    env.write("project/deep/down/file", "");
    let settings = env.json(&["-C", "deep/down", "status"])["settings"].clone();
    assert_eq!(settings["checkpoint"]["value"], "always");
    assert_eq!(settings["checkpoint"]["origin"], "project");
    assert_eq!(settings["hold_timeout"]["value"], "5m");
    assert_eq!(settings["atlases"][0], "team.yaml");
    let team = env.project().join("team.yaml").display().to_string();
    let in_force = json!([{"value": team, "origin": "project"}]);
    assert_eq!(settings["atlases_in_force"], in_force);
    env.write("project/safepoint.yaml", "checkpoint: sometimes\n");
    assert_snapshot!(env.snapshot(&["status"]), @r"
    exit 7
    ----- stderr
    error: the settings in `[root]/project/safepoint.yaml` cannot be read: unknown variant `sometimes`, expected one of always, policy, never at line 1 column 13
    hint: the keys are described in docs/settings.md
    ");
}

#[test]
fn su_03_status_shows_every_setting_in_force() {
    let mut env = env();
    let key = "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";
    let own = format!(
        "atlases: [own.yaml]\nobject_cap: 20GiB\nseal_to: [{key}]\n\
         public_url: https://safepoint.example\nserver_token_file: other-token\n"
    );
    env.write("home/config/config.yaml", &own);
    env.set("SAFEPOINT_STORE", "https://safepoint.example");
    env.set("SAFEPOINT_SERVER_CA", "ca.pem");
    let settings = env.json(&["status"])["settings"].clone();
    let (home, project) = (env.home(), env.project());
    let shown = [
        ("object_cap", "object cap", "20 GiB".to_owned(), "user"),
        (
            "public_url",
            "public url",
            "https://safepoint.example".to_owned(),
            "user",
        ),
        (
            "server_token_file",
            "server token",
            home.join("config/other-token").display().to_string(),
            "user",
        ),
        (
            "server_ca",
            "server ca",
            project.join("ca.pem").display().to_string(),
            "environment",
        ),
    ];
    let text = env.run(&["status"]).stdout;
    let has = |name: &str, value: &str, origin: &str| {
        let line = format!("{name:<14}{value}  ({origin})");
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    };
    for (field, name, value, origin) in shown {
        let wanted = json!({"value": value, "origin": origin});
        assert_eq!(settings[field], wanted, "{field}");
        has(name, &value, origin);
    }
    assert_eq!(settings["seal_to"], json!([key]));
    let atlas = home.join("config/own.yaml").display().to_string();
    let in_force = json!([{"value": atlas, "origin": "user"}]);
    assert_eq!(settings["atlases_in_force"], in_force);
    assert_eq!(settings["atlases"], json!([]));
    has("atlas", &atlas, "user");
}

#[test]
fn the_sample_runs_from_start_to_end() {
    let env = env();
    assert_snapshot!(env.snapshot(&["try"]), @r#"
    exit 0
    ----- stdout

    1. A sample agent edits a file: it can be undone, so nobody is asked
       good  sed -i 's/hello/hello, world/' src/main.rs  (file.write, allow)
       modified  src/main.rs

    2. It wants to delete: the steward's question comes first
       held  rm notes.txt .gitignore  QUESTIONS_PENDING
       checkpoint `deleting` must be answered first
       Why does nobody need it any more?
       the agent answers: they are generated anew by the build, and nobody reads them
       good  rm notes.txt .gitignore  (file.delete, allow)
       deleted   .gitignore
       deleted   notes.txt

    3. It wants to write outside the project: a person decides about exactly this
       held  cp src/main.rs ELSEWHERE/main.rs  APPROVAL_REQUIRED
       No checkpoint covers all of what it would change
       cannot be undone: `ELSEWHERE/main.rs` is outside the workspace
       good  ada approves, twice since it is final, and signs for this fingerprint
       [hash]
       good  cp src/main.rs ELSEWHERE/main.rs  (file.read file.write, approved)
       asked for once more, it waits again: a yes is good once

    4. It wants to remove the keys that sign for all of this
       held  rm -r KEYS  CONTROL_FORBIDDEN
       it touches Safepoint itself, which no agent may

    5. Only the deletion is undone; the good edit stays
       created   .gitignore
       created   notes.txt
       good  the notes are back, and the improved file is as the agent left it

    6. The approved action has one id, from proposal to outcome
         36  ActionRequested      agent:sample
         37  ActionAllowed        agent:sample
         38  ActionRequested      agent:sample
         40  ApprovalRequired     agent:sample
         43  checkpoint_pending   agent:sample
         44  action_denied        agent:sample
         48  approval_decision    operator:ada
         51  permit_issued        safepoint
         52  ActionRequested      agent:sample
         53  ActionAllowed        agent:sample
         54  ActionRequested      agent:sample
         56  ApprovalRequired     agent:sample
         60  action_intended      agent:sample
         62  action_done          agent:sample
         65  action_ended         safepoint
         66  ActionReported       agent:sample

    7. Every entry is chained, hashed into one tree, and signed for
       good  86 entries verify
       safepoint/log_[id]
       86
       [hash]
       
       — safepoint/log_[id] [signature]

    8. The decision is proved to a stranger, who needs only the proof and the public key
       good  entry 48 `approval_decision` is in the trail of 86

    9. Somebody edits the database behind our back: the denial becomes a permission
       caught  entry 82: its content does not match its hash

    next  in a project of your own: safepoint operator add NAME, then safepoint run -- AGENT
    "#);
    assert!(!env.home().exists(), "nothing of the user's is touched");
}
