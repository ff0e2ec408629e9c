//! WebAssembly: what is said, what is refused, and what runs out.

use super::*;
use crate::sandbox::wasm::{MAX_LOG_CHARACTERS, MAX_LOG_LINES, MAX_MODULE_BYTES};

fn compile(text: &str) -> Result<Program, SandboxError> {
    Program::wasm(&wat::parse_str(text).unwrap())
}

/// A module with the given body of `check`, and what else it needs.
fn module(check: &str, more: &str) -> String {
    format!(
        r#"(module
            (import "env" "log" (func $log (param i32 i32)))
            (memory (export "memory") 2)
            (data (i32.const 0) "{{\22valid\22:true}}")
            (data (i32.const 32) "{{\22valid\22:false,\22message\22:\22no\22}}")
            (data (i32.const 96) "hello \1b[2J")
            {more}
            (func (export "alloc") (param i32) (result i32) (i32.const 1024))
            (func $check (export "check") (param i32 i32) (result i64) {check}))"#
    )
}

fn run(check: &str, more: &str) -> Result<Said, SandboxError> {
    compile(&module(check, more)).unwrap().run(&input())
}

/// `ptr << 32 | len` as a constant.
fn packed(place: u64, length: u64) -> String {
    format!("(i64.const {})", (place << 32 | length) as i64)
}

fn yes() -> String {
    packed(0, 14)
}

#[test]
fn ga_15_wasm_says_yes_or_no() {
    assert_eq!(
        run(&yes(), "").unwrap(),
        Said {
            yes: true,
            message: None,
            log: Vec::new(),
        }
    );
    let said = run(&packed(32, 30), "").unwrap();
    assert!(!said.yes);
    assert_eq!(said.message.as_deref(), Some("no"));
    let fires = r#"(data (i32.const 200) "{\22fire\22:true}")"#;
    assert!(run(&packed(200, 13), fires).unwrap().yes);
}

#[test]
fn ga_15_wasm_reads_the_input() {
    // Says back what it was given, which has neither `valid` nor `fire`.
    let echo = "(i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1)))";
    let program = compile(&module(echo, "")).unwrap();
    assert!(program.run(&json!({"valid": true})).unwrap().yes);
    assert!(
        !program
            .run(&json!({"fire": false, "message": "x"}))
            .unwrap()
            .yes
    );
    assert!(failed(program.run(&json!({}))).contains("either"));
    assert!(failed(program.run(&json!({"valid": true, "fire": true}))).contains("either"));
    assert!(failed(program.run(&json!({"valid": 1}))).contains("JSON"));
    assert!(failed(program.run(&json!({"valid": true, "other": 1}))).contains("JSON"));
}

#[test]
fn ga_15_wasm_keeps_nothing_between_runs() {
    let counts = "(global.set $runs (i32.add (global.get $runs) (i32.const 1)))
        (i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (i32.const 1)))
        (if (i32.or (i32.gt_u (global.get $runs) (i32.const 1)) (i32.gt_u (i32.load (i32.const 4096)) (i32.const 1)))
            (then unreachable))";
    let text = module(
        &format!("{counts} {}", yes()),
        "(global $runs (mut i32) (i32.const 0))",
    );
    let program = compile(&text).unwrap();
    for _ in 0..3 {
        assert!(program.run(&input()).unwrap().yes);
    }
}

#[test]
fn ga_15_wasm_runs_out() {
    assert_eq!(
        run(&format!("(loop $again (br $again)) {}", yes()), ""),
        Err(SandboxError::Exhausted("fuel"))
    );
    assert_eq!(
        run(
            &format!(
                "(loop $again (drop (memory.grow (i32.const 1))) (br $again)) {}",
                yes()
            ),
            ""
        ),
        Err(SandboxError::Exhausted("memory"))
    );
    assert_eq!(
        run("(call $check (local.get 0) (local.get 1))", ""),
        Err(SandboxError::Exhausted("stack"))
    );
    assert_eq!(
        run(&packed(0, 100_000), ""),
        Err(SandboxError::Exhausted("room for a result"))
    );
    // Filling memory costs fuel by the byte, not by the instruction.
    assert_eq!(
        run(
            &format!(
                "(loop $again (memory.fill (i32.const 0) (i32.const 0) (i32.const 131072)) (br $again)) {}",
                yes()
            ),
            ""
        ),
        Err(SandboxError::Exhausted("fuel"))
    );
}

#[test]
fn ga_15_wasm_that_traps_fails() {
    for check in [
        "unreachable",
        "(drop (i32.div_u (i32.const 1) (i32.const 0))) (i64.const 0)",
        "(drop (i32.load (i32.const 2000000))) (i64.const 0)",
        "(drop (i32.trunc_f32_s (f32.const nan))) (i64.const 0)",
        "(call $log (i32.const -1) (i32.const 8)) (i64.const 0)",
        "(call $log (i32.const 131071) (i32.const 2)) (i64.const 0)",
    ] {
        assert!(!failed(run(check, "")).is_empty(), "{check}");
    }
    for check in [
        packed(131_072, 2),
        packed(131_071, 2),
        packed(u64::from(u32::MAX), 4),
    ] {
        assert!(failed(run(&check, "")).contains("outside"), "{check}");
    }
    for check in [packed(0, 13), packed(0, 0), packed(512, 4)] {
        assert!(failed(run(&check, "")).contains("JSON"), "{check}");
    }
    let text = module(&yes(), "").replace("(i32.const 1024)", "(i32.const -1)");
    assert!(failed(compile(&text).unwrap().run(&input())).contains("`alloc`"));
    let text =
        module(&yes(), "").replace("(result i32) (i32.const 1024)", "(result i32) unreachable");
    assert!(!failed(compile(&text).unwrap().run(&input())).is_empty());
}

#[test]
fn ga_15_a_log_is_bounded_and_harmless() {
    let log = "(call $log (i32.const 96) (i32.const 10))";
    let said = run(&format!("{log} {}", yes()), "").unwrap();
    assert_eq!(said.log.len(), 1);
    assert!(said.log[0].starts_with("hello"));
    assert!(!said.log[0].contains('\u{1b}'));

    let much = "(local $i i32) (loop $again
        (call $log (i32.const 0) (i32.const 65536))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $i) (i32.const 10000))))";
    let said = run(&format!("{much} {}", yes()), "").unwrap();
    assert_eq!(said.log.len(), MAX_LOG_LINES + 1);
    assert!(
        said.log
            .iter()
            .all(|line| line.chars().count() <= MAX_LOG_CHARACTERS)
    );
    assert!(said.log.last().unwrap().contains("9936 lines more"));

    // Not even for ever.
    let check = format!("(loop $again {log} (br $again)) {}", yes());
    assert_eq!(run(&check, ""), Err(SandboxError::Exhausted("fuel")));
}

#[test]
fn ga_15_wasm_that_wants_more_is_refused() {
    let import = |import: &str| {
        invalid(compile(&module(&yes(), "").replace(
            r#"(import "env" "log" (func $log (param i32 i32)))"#,
            import,
        )))
    };
    assert!(import(r#"(import "env" "now" (func (result i64)))"#).contains("`env.now`"));
    assert!(
        import(
            r#"(import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))"#
        )
        .contains("only `env.log`")
    );
    assert!(import(r#"(import "env" "log" (func (param i64)))"#).contains("two `i32`"));
    assert!(import(r#"(import "env" "log" (global i32))"#).contains("two `i32`"));
    // None at all will do.
    let text =
        module(&yes(), "").replace(r#"(import "env" "log" (func $log (param i32 i32)))"#, "");
    assert!(compile(&text).unwrap().run(&input()).unwrap().yes);
}

#[test]
fn ga_15_wasm_without_the_exports_is_refused() {
    assert!(invalid(compile("(module)")).contains("`memory`"));
    let whole = module(&yes(), "");
    for name in ["memory", "alloc", "check"] {
        let text = whole.replace(&format!("(export \"{name}\")"), "");
        let message = invalid(compile(&text));
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
    let text = whole.replace(
        r#"(export "alloc") (param i32) (result i32) (i32.const 1024)"#,
        r#"(export "alloc") (param i64) (result i32) (i32.const 1024)"#,
    );
    assert!(invalid(compile(&text)).contains("`alloc`"));
}

#[test]
fn ga_15_wasm_that_is_no_module_is_refused() {
    for bytes in [&b""[..], b"\0asm", b"(module)", b"\0asm\x01\0\0\0\xff\xff"] {
        assert!(!invalid(Program::wasm(bytes)).is_empty());
    }
    assert!(invalid(Program::wasm(&vec![0; MAX_MODULE_BYTES + 1])).contains("bytes"));
    for more in [
        "(func $start unreachable) (start $start)",
        "(func $start) (start $start)",
        "(table 20000 funcref)",
    ] {
        assert!(
            !invalid(compile(&module(&yes(), more))).is_empty(),
            "{more}"
        );
    }
    let large = module(&yes(), "").replace("(export \"memory\") 2", "(export \"memory\") 300");
    assert!(!invalid(compile(&large)).is_empty());
    // Well formed, and of the wrong type: validated, not just read.
    let wrong = module("(i32.const 0)", "");
    assert!(!invalid(compile(&wrong)).is_empty());
}

#[test]
fn ga_15_there_is_one_nan() {
    // The sign of a NaN that an operation makes differs between processors.
    let check = format!(
        "(if (i64.ne
            (i64.reinterpret_f64 (f64.add (f64.const -nan:0x4000000000001) (f64.const 1)))
            (i64.const 0x7ff8000000000000)) (then unreachable)) {}",
        yes()
    );
    assert!(run(&check, "").unwrap().yes);
}

#[test]
fn ga_15_the_module_of_the_documentation_works() {
    let page = include_str!("../../../../../docs/extensions.md");
    let text = page
        .split("```wat")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let program = compile(text).unwrap();
    let said = program.run(&json!({"answer": "see TICKET-7"})).unwrap();
    assert!(said.yes);
    assert!(said.log.is_empty());
    let said = program.run(&json!({"answer": "no reason"})).unwrap();
    assert!(!said.yes);
    assert_eq!(said.message.as_deref(), Some("name a ticket"));
    assert_eq!(said.log, ["no ticket"]);
    // As much as there can be.
    let most = json!({"answer": "x".repeat(crate::sandbox::MAX_INPUT_BYTES - 32)});
    assert!(!program.run(&most).unwrap().yes);
}
