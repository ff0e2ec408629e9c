//! Anything at all: no panic, no hang, and the same answer twice.

use proptest::prelude::*;

use super::*;

/// What a fuzzer would call.
fn fuzz_cel(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(program) = Program::cel(&text) {
        let first = program.run(&input());
        assert_eq!(program.run(&input()), first);
    }
}

/// What a fuzzer would call.
fn fuzz_wasm(data: &[u8]) {
    if let Ok(program) = Program::wasm(data) {
        let first = program.run(&input());
        assert_eq!(program.run(&input()), first);
    }
}

const PIECES: [&str; 32] = [
    "answer",
    "params",
    "params.tags",
    "true",
    "1",
    "-1",
    "0",
    "0.5",
    "'x'",
    "\"\\u0000\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    ":",
    "?",
    "+",
    "/",
    "%",
    "==",
    "&&",
    "||",
    "!",
    " in ",
    ".all(x, ",
    ".map(x, ",
    "size(",
    ".matches('a*')",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn ga_15_any_bytes_as_cel(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_cel(&data);
    }

    #[test]
    fn ga_15_any_pieces_as_cel(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        fuzz_cel(pieces.concat().as_bytes());
    }

    #[test]
    fn ga_15_any_bytes_as_wasm(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_wasm(&data);
        fuzz_wasm(&[b"\0asm\x01\0\0\0".as_slice(), &data].concat());
    }

    #[test]
    fn ga_15_any_change_of_a_module(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut module = wat::parse_str(
            r#"(module (memory (export "memory") 1)
                (data (i32.const 0) "{\22valid\22:true}")
                (func (export "alloc") (param i32) (result i32) (i32.const 1024))
                (func (export "check") (param i32 i32) (result i64)
                    (local $i i32)
                    (loop $again
                        (local.set $i (i32.add (local.get $i) (i32.const 1)))
                        (br_if $again (i32.lt_u (local.get $i) (local.get 1))))
                    (i64.const 14)))"#,
        ).unwrap();
        let place = at.index(module.len());
        module[place] = byte;
        fuzz_wasm(&module);
    }
}
