//! Programs for the kernel's filter of system calls: a list of calls, and what is done about each.
//!
//! The kernel runs such a program before each call, except for calls that go on whatever their
//! arguments are: it finds these when the program is installed (Linux 5.11), and does not run it for
//! them. For all others the rules are tried from first to last.

use libc::{c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

/// Numbers from here on belong to the x32 variant of x86-64.
pub(super) const X32: u32 = 0x4000_0000;

// Where the kernel puts the parts of a call.
const CALL_NUMBER: u32 = 0;
const CALL_ARCHITECTURE: u32 = 4;
pub(super) const FIRST_ARGUMENT: u32 = 16;

pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_IF_ANY_BIT: u16 = 0x45;
pub(super) const AND: u16 = 0x54;
pub(super) const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const HAND_OVER: u32 = 0x7fc0_0000;
const FAIL: u32 = 0x0005_0000;

pub(super) fn fail(error: i32) -> u32 {
    FAIL | error.cast_unsigned()
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// What is done about one call. It always ends in a return.
pub(super) struct Body {
    code: Vec<sock_filter>,
    last: u32,
}

impl Body {
    pub(super) fn new() -> Self {
        Self {
            code: Vec::new(),
            last: ALLOW,
        }
    }

    pub(super) fn always(action: u32) -> Self {
        Self::new().finally(action)
    }

    pub(super) fn finally(mut self, action: u32) -> Self {
        self.last = action;
        self
    }

    fn low(&mut self, argument: u32) {
        self.code
            .push(statement(LOAD, FIRST_ARGUMENT + 8 * argument));
    }

    fn high(&mut self, argument: u32) {
        self.code
            .push(statement(LOAD, FIRST_ARGUMENT + 8 * argument + 4));
    }

    /// If the argument, an `int`, has any of these bits.
    pub(super) fn any_bit(mut self, argument: u32, bits: i32, action: u32) -> Self {
        self.low(argument);
        self.code
            .push(jump(JUMP_IF_ANY_BIT, bits.cast_unsigned(), 0, 1));
        self.code.push(statement(RETURN, action));
        self
    }

    /// If the argument, an `int`, is this.
    pub(super) fn equals(mut self, argument: u32, value: u32, action: u32) -> Self {
        self.low(argument);
        self.code.push(jump(JUMP_IF_EQUAL, value, 0, 1));
        self.code.push(statement(RETURN, action));
        self
    }

    pub(super) fn both_equal(mut self, one: (u32, u32), other: (u32, u32), action: u32) -> Self {
        self.low(one.0);
        self.code.push(jump(JUMP_IF_EQUAL, one.1, 0, 3));
        self.low(other.0);
        self.code.push(jump(JUMP_IF_EQUAL, other.1, 0, 1));
        self.code.push(statement(RETURN, action));
        self
    }

    /// If the argument, a pointer, is not null.
    pub(super) fn not_zero(mut self, argument: u32, action: u32) -> Self {
        self.low(argument);
        self.code.push(jump(JUMP_IF_EQUAL, 0, 0, 2));
        self.high(argument);
        self.code.push(jump(JUMP_IF_EQUAL, 0, 1, 0));
        self.code.push(statement(RETURN, action));
        self
    }

    /// If the first argument, an `int`, is not zero, and the second, a pointer, is not null.
    pub(super) fn neither_zero(mut self, int: u32, pointer: u32, action: u32) -> Self {
        self.low(int);
        self.code.push(jump(JUMP_IF_EQUAL, 0, 5, 0));
        self.not_zero_of(pointer, action);
        self
    }

    fn not_zero_of(&mut self, pointer: u32, action: u32) {
        self.low(pointer);
        self.code.push(jump(JUMP_IF_EQUAL, 0, 0, 2));
        self.high(pointer);
        self.code.push(jump(JUMP_IF_EQUAL, 0, 1, 0));
        self.code.push(statement(RETURN, action));
    }

    /// If the argument, an `int`, has one of these values in its masked part.
    pub(super) fn masked(mut self, argument: u32, mask: u32, values: &[u32], action: u32) -> Self {
        for value in values {
            self.low(argument);
            self.code.push(statement(AND, mask));
            self.code.push(jump(JUMP_IF_EQUAL, *value, 0, 1));
            self.code.push(statement(RETURN, action));
        }
        self
    }

    /// If the first argument has this bit, and not its companion.
    pub(super) fn without_companion(mut self, bit: i32, companion: i32, action: u32) -> Self {
        let both = (bit | companion).cast_unsigned();
        self.low(0);
        self.code.push(statement(AND, both));
        self.code
            .push(jump(JUMP_IF_EQUAL, bit.cast_unsigned(), 0, 1));
        self.code.push(statement(RETURN, action));
        self
    }

    fn into_code(mut self) -> Vec<sock_filter> {
        self.code.push(statement(RETURN, self.last));
        self.code
    }
}

pub(super) fn assemble(rules: Vec<(c_long, Body)>) -> Vec<sock_filter> {
    let mut code = vec![
        statement(LOAD, CALL_ARCHITECTURE),
        jump(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
        statement(RETURN, fail(libc::ENOSYS)),
        statement(LOAD, CALL_NUMBER),
        jump(JUMP_IF_AT_LEAST, X32, 0, 1),
        statement(RETURN, fail(libc::ENOSYS)),
    ];
    for (call, body) in rules {
        // The accumulator has the number here: each body returns.
        let body = body.into_code();
        let length = u8::try_from(body.len()).unwrap_or(u8::MAX);
        let call = u32::try_from(call).unwrap_or(u32::MAX);
        code.push(jump(JUMP_IF_EQUAL, call, 0, length));
        code.extend(body);
    }
    code.push(statement(RETURN, ALLOW));
    code
}
