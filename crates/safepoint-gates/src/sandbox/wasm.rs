//! WebAssembly modules: a fresh instance for each run, on fuel.
//!
//! The interface is written down in `docs/extensions.md`. A module may import
//! nothing but a logger. It has no clock, no randomness and no memory of
//! earlier runs; floating-point numbers have one NaN, so that a run gives the
//! same on any machine. What it says is read as JSON, and never trusted to be.

use safepoint_model::text;
use serde::Deserialize;
use wasmi::errors::{ErrorKind, MemoryError, TableError};
use wasmi::{
    Caller, CompilationMode, Config, EnforcedLimits, Engine, Error, Extern, ExternType, FuncType,
    Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode, ValType,
};

use super::{MAX_MESSAGE_CHARACTERS, Said, SandboxError, guarded, shown};

/// The most bytes of a module.
pub(super) const MAX_MODULE_BYTES: usize = 1024 * 1024;
/// The fuel of one run: about one unit for each instruction.
const FUEL: u64 = 10_000_000;
/// The most memory of an instance.
const MAX_MEMORY_BYTES: usize = 16 * 1024 * 1024;
/// The most elements of its table.
const MAX_TABLE_ELEMENTS: usize = 10_000;
/// How many calls may be open at the same time.
const MAX_CALLS: usize = 1_000;
/// The most bytes of what a module says.
const MAX_RESULT_BYTES: usize = 64 * 1024;
/// The most lines of a log that are kept.
pub(super) const MAX_LOG_LINES: usize = 64;
/// The most characters of such a line.
pub(super) const MAX_LOG_CHARACTERS: usize = 256;

const MEMORY: &str = "memory";
const ALLOC: &str = "alloc";
const CHECK: &str = "check";

/// A module, ready to run.
#[derive(Debug)]
pub(super) struct Code {
    engine: Engine,
    module: Module,
    linker: Linker<Host>,
}

/// What an instance has outside of it.
#[derive(Debug)]
struct Host {
    limits: StoreLimits,
    log: Vec<String>,
    /// Lines that were not kept.
    dropped: u64,
}

/// What a module says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    valid: Option<bool>,
    fire: Option<bool>,
    message: Option<String>,
}

impl Code {
    /// Validates and translates a module.
    pub(super) fn compile(bytes: &[u8]) -> Result<Self, SandboxError> {
        if bytes.len() > MAX_MODULE_BYTES {
            return Err(SandboxError::Invalid(format!(
                "the module has {} bytes, and {MAX_MODULE_BYTES} are the most",
                bytes.len()
            )));
        }
        guarded(
            || {
                let engine = Engine::new(&config());
                let module = Module::new(&engine, bytes).map_err(|error| invalid(&error))?;
                check_imports(&module)?;
                check_exports(&module)?;
                let mut linker = Linker::new(&engine);
                linker
                    .func_wrap("env", "log", log)
                    .map_err(|error| SandboxError::Invalid(error.to_string()))?;
                let code = Self {
                    engine,
                    module,
                    linker,
                };
                // What cannot even be set up is wrong here, not at the first run.
                let mut store = code.store()?;
                code.linker
                    .instantiate_and_start(&mut store, &code.module)
                    .map_err(|error| invalid(&error))?;
                Ok(code)
            },
            SandboxError::Invalid,
        )
    }

    /// Runs a new instance on `input`, as JSON.
    pub(super) fn run(&self, input: &[u8]) -> Result<Said, SandboxError> {
        guarded(|| self.check(input), SandboxError::Failed)
    }

    fn store(&self) -> Result<Store<Host>, SandboxError> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MAX_MEMORY_BYTES)
            .memories(1)
            .table_elements(MAX_TABLE_ELEMENTS)
            .tables(1)
            .instances(1)
            .trap_on_grow_failure(true)
            .build();
        let host = Host {
            limits,
            log: Vec::new(),
            dropped: 0,
        };
        let mut store = Store::new(&self.engine, host);
        store.limiter(|host| &mut host.limits);
        store.set_fuel(FUEL).map_err(|error| failure(&error))?;
        Ok(store)
    }

    fn check(&self, input: &[u8]) -> Result<Said, SandboxError> {
        let mut store = self.store()?;
        let instance = self
            .linker
            .instantiate_and_start(&mut store, &self.module)
            .map_err(|error| failure(&error))?;
        let memory = instance
            .get_memory(&store, MEMORY)
            .ok_or_else(|| SandboxError::Failed(format!("it has no `{MEMORY}`")))?;
        let alloc = instance
            .get_typed_func::<u32, u32>(&store, ALLOC)
            .map_err(|error| failure(&error))?;
        let check = instance
            .get_typed_func::<(u32, u32), u64>(&store, CHECK)
            .map_err(|error| failure(&error))?;

        let length = u32::try_from(input.len())
            .map_err(|_| SandboxError::Failed("its input is too long".to_owned()))?;
        let place = alloc
            .call(&mut store, length)
            .map_err(|error| failure(&error))?;
        usize::try_from(place)
            .ok()
            .and_then(|offset| memory.write(&mut store, offset, input).ok())
            .ok_or_else(|| {
                SandboxError::Failed(format!("`{ALLOC}` gave a place outside of its memory"))
            })?;
        let packed = check
            .call(&mut store, (place, length))
            .map_err(|error| failure(&error))?;
        let answer = answer(&store, memory, packed)?;

        let host = store.into_data();
        let mut log = host.log;
        if host.dropped > 0 {
            log.push(format!("… and {} lines more", host.dropped));
        }
        let yes = match (answer.valid, answer.fire) {
            (Some(yes), None) | (None, Some(yes)) => yes,
            _ => {
                return Err(SandboxError::Failed(
                    "its result must have either `valid` or `fire`".to_owned(),
                ));
            }
        };
        Ok(Said {
            yes,
            message: answer
                .message
                .map(|message| shown(&message, MAX_MESSAGE_CHARACTERS)),
            log,
        })
    }
}

/// What modules may have, and what they pay.
fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // A start function would run before anything is known about the input.
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        // All at once: a module that is wrong is found when it is loaded.
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .set_max_recursion_depth(MAX_CALLS)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    config
}

fn check_imports(module: &Module) -> Result<(), SandboxError> {
    let log = FuncType::new([ValType::I32, ValType::I32], []);
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        if (from, name) != ("env", "log") {
            return Err(SandboxError::Invalid(format!(
                "it imports `{}`, and only `env.log` is given",
                shown(&format!("{from}.{name}"), 100)
            )));
        }
        if !matches!(import.ty(), ExternType::Func(found) if *found == log) {
            return Err(SandboxError::Invalid(
                "it imports `env.log`, which takes two `i32` and gives nothing".to_owned(),
            ));
        }
    }
    Ok(())
}

fn check_exports(module: &Module) -> Result<(), SandboxError> {
    if !matches!(module.get_export(MEMORY), Some(ExternType::Memory(_))) {
        return Err(SandboxError::Invalid(format!(
            "it does not export its memory as `{MEMORY}`"
        )));
    }
    let functions = [
        (
            ALLOC,
            FuncType::new([ValType::I32], [ValType::I32]),
            "takes an `i32` and gives an `i32`",
        ),
        (
            CHECK,
            FuncType::new([ValType::I32, ValType::I32], [ValType::I64]),
            "takes two `i32` and gives an `i64`",
        ),
    ];
    for (name, expected, described) in functions {
        match module.get_export(name) {
            Some(ExternType::Func(found)) if found == expected => {}
            _ => {
                return Err(SandboxError::Invalid(format!(
                    "it does not export a function `{name}` that {described}"
                )));
            }
        }
    }
    Ok(())
}

/// `env.log(place, length)`: keeps a line, or counts it.
fn log(mut caller: Caller<'_, Host>, place: u32, length: u32) -> Result<(), Error> {
    let Some(Extern::Memory(memory)) = caller.get_export(MEMORY) else {
        return Err(Error::new("`env.log` was called without a memory"));
    };
    let (bytes, host) = memory.data_and_store_mut(&mut caller);
    let Some(bytes) = part(bytes, place, length) else {
        return Err(Error::new(
            "`env.log` was given a place outside of its memory",
        ));
    };
    if host.log.len() >= MAX_LOG_LINES {
        host.dropped = host.dropped.saturating_add(1);
        return Ok(());
    }
    // A character has at most four bytes; one more, so that the cut shows.
    let kept = bytes.get(..(MAX_LOG_CHARACTERS + 1) * 4).unwrap_or(bytes);
    let line = text::bytes_line(kept).text;
    host.log.push(text::shorten(&line, MAX_LOG_CHARACTERS));
    Ok(())
}

/// The bytes at `place`, if they are all there.
fn part(bytes: &[u8], place: u32, length: u32) -> Option<&[u8]> {
    let start = usize::try_from(place).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

/// Reads what `check` points to: the place above, the length below.
fn answer(store: &Store<Host>, memory: Memory, packed: u64) -> Result<Answer, SandboxError> {
    let place = u32::try_from(packed >> 32).unwrap_or(u32::MAX);
    let length = u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    if usize::try_from(length).unwrap_or(usize::MAX) > MAX_RESULT_BYTES {
        return Err(SandboxError::Exhausted("room for a result"));
    }
    let bytes = part(memory.data(store), place, length).ok_or_else(|| {
        SandboxError::Failed("its result is at a place outside of its memory".to_owned())
    })?;
    serde_json::from_slice(bytes).map_err(|error| {
        SandboxError::Failed(format!(
            "its result is not the JSON that is asked for: {}",
            shown(&error.to_string(), 200)
        ))
    })
}

fn invalid(error: &Error) -> SandboxError {
    SandboxError::Invalid(shown(&error.to_string(), 300))
}

/// What an error of a run is: something used up, or a failure.
fn failure(error: &Error) -> SandboxError {
    match error.kind() {
        ErrorKind::TrapCode(TrapCode::OutOfFuel)
        | ErrorKind::Fuel(_)
        | ErrorKind::Memory(MemoryError::OutOfFuel { .. })
        | ErrorKind::Table(TableError::OutOfFuel { .. }) => SandboxError::Exhausted("fuel"),
        ErrorKind::TrapCode(TrapCode::GrowthOperationLimited | TrapCode::OutOfSystemMemory)
        | ErrorKind::Memory(
            MemoryError::ResourceLimiterDeniedAllocation | MemoryError::OutOfSystemMemory,
        )
        | ErrorKind::Table(
            TableError::ResourceLimiterDeniedAllocation | TableError::OutOfSystemMemory,
        ) => SandboxError::Exhausted("memory"),
        ErrorKind::TrapCode(TrapCode::StackOverflow) => SandboxError::Exhausted("stack"),
        _ => SandboxError::Failed(shown(&error.to_string(), 300)),
    }
}
