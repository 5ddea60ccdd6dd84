//! `millrace conform`: one program of a BPF conformance suite, by the plugin protocol of
//! Alan-Jowett/bpf_conformance.
//!
//! Standard input has the instructions as hexadecimal bytes, blanks between them ignored; the
//! argument the memory that `r1` points to. What `r0` holds at the end is printed as a hexadecimal
//! number. The program goes the way that every other goes: it is checked, emitted, compiled and run.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use millrace_check::Options;
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_dataplane::{Config, Instance, Module};
use millrace_emit::alone;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, ModuleOptions};
use millrace_object::program::Program;
use millrace_object::raw;
use millrace_reference::{End, Machine, Violation};

use crate::failure::{DONE, Failure};
use crate::{budget, screen};

/// More input than this is no test of instructions.
const MOST_INPUT: u64 = 16 << 20;
/// Instructions that the interpreter executes before it gives up.
const MOST_STEPS: u64 = 100_000_000;
const NAME: &str = "conform";

/// Run one program of a BPF conformance suite (instructions on standard input) and print r0.
#[derive(Args)]
#[command(after_help = "Exit status: 0 done, 1 the program is refused, 2 it cannot be read.")]
pub struct Conform {
    /// The memory that r1 points to, as hexadecimal bytes; r2 is its length
    #[arg(default_value = "")]
    memory: String,

    /// Standard input is an ELF file (as hexadecimal bytes) with the instructions in .text
    #[arg(long)]
    elf: bool,

    /// Use the reference interpreter instead of compiled code
    #[arg(long)]
    interpreter: bool,
}

impl Conform {
    /// Runs it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let memory = bytes("the memory", &self.memory)?;
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .take(MOST_INPUT)
            .read_to_string(&mut text)
            .map_err(|e| Failure::wrong(format!("standard input: {e}")))?;
        let code = bytes("standard input", &text)?;
        let functions = if self.elf {
            raw::functions_of_elf(&code, NAME)
        } else {
            raw::functions(&code, NAME)
        };
        let program = raw::program(NAME, functions?, &memory);
        let result = if self.interpreter {
            interpreted(&program)?
        } else {
            compiled(&program)?
        };
        screen::out(&format!("{result:x}"));
        Ok(DONE)
    }
}

/// What `r0` holds after the reference interpreter has executed the program.
fn interpreted(program: &Program) -> Result<u64, Failure> {
    let mut machine = Machine::new(program, &[], 0);
    for entry in &program.entries {
        match machine.run(entry.function, entry.role, MOST_STEPS) {
            Ok(End::Verdict(_)) => {}
            Ok(End::OutOfSteps) => {
                return Err(Failure::no(format!(
                    "not at its end after {MOST_STEPS} steps"
                )));
            }
            Err(Violation(what)) => return Err(Failure::no(what)),
        }
    }
    number(machine.value(raw::RESULT).unwrap_or_default())
}

/// What `r0` holds after the emitted code has run.
fn compiled(program: &Program) -> Result<u64, Failure> {
    let checked = millrace_check::check(program, &Options::within(budget::begin()))
        .map_err(|refusals| Failure::refused(NAME, Path::new(""), refusals))?;
    let source = format!("{NAME}.c");
    let text = alone::emit(program, &checked, &source)?;
    let cache = Cache::of_user()?;
    let toolchain = toolchain::find(&cache)?;
    let folder = tempfile::tempdir().map_err(Failure::wrong)?;
    let (c, so) = (folder.path().join(source), folder.path().join("module.so"));
    std::fs::write(&c, text).map_err(|e| Failure::wrong(format!("{}: {e}", c.display())))?;
    let fastpath = cache.headers()?.join("fastpath");
    toolchain::compile_module(&toolchain, &c, &fastpath, &so, ModuleOptions::default())?;

    let module = Module::load(&so).map_err(Failure::wrong)?;
    let config = Config {
        initial: program.objects.iter().map(|o| o.initial.clone()).collect(),
        ..Config::default()
    };
    let mut instance = Instance::create(Arc::new(module), &config).map_err(Failure::wrong)?;
    let mut burst = Burst::new(1, 1, Layout::Pooled);
    burst.push(&[], Arrival::default());
    instance.burst(0, false, &mut burst);
    let value = instance.get(raw::RESULT.0, &[], 0);
    number(&value.map_err(Failure::wrong)?.unwrap_or_default())
}

fn number(bytes: &[u8]) -> Result<u64, Failure> {
    let bytes = bytes.try_into().map(u64::from_le_bytes);
    bytes.map_err(|_| Failure::wrong("the result is not 8 bytes long"))
}

fn bytes(what: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| match *pair {
        [high, low] => Some((high.to_digit(16)? * 16 + low.to_digit(16)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.ok_or_else(|| {
        Failure::wrong(format!("{what} is not bytes in hexadecimal"))
            .help("write two digits a byte: 95 00 00 00 00 00 00 00")
    })
}
