//! Programs made by hand, and a process that runs what is emitted of them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use drive::{Input, Output, flags};
use millrace_check::{Checked, check};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, Toolchain, compile_module, find};
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Entry, Function, FunctionId, Program, Role};

pub mod asm;
pub mod drive;
pub mod nf;
pub mod random;
pub mod traffic;
pub mod workers;

/// A function made of these instructions; each is one slot.
pub fn function(name: &str, insns: Vec<Insn>) -> Function {
    Function {
        name: name.into(),
        section: "xdp".into(),
        slots: (0..insns.len() as u32).collect(),
        lines: vec![None; insns.len()],
        insns,
    }
}

/// A program without objects: the first `entries` functions take packets.
pub fn program(functions: Vec<Function>, entries: usize) -> Program {
    Program {
        name: "test".into(),
        dialect: Dialect::Xdp,
        functions,
        entries: (0..entries)
            .map(|f| Entry {
                role: Role::Xdp,
                function: FunctionId(f),
            })
            .collect(),
        objects: Vec::new(),
        ports: Vec::new(),
        params: Vec::new(),
        reasons: vec!["dropped".into()],
        license: String::new(),
    }
}

/// The facts; a refusal is a mistake of the test.
pub fn facts(program: &Program) -> Checked {
    match check(program, &millrace_check::Options::default()) {
        Ok(checked) => checked,
        Err(refusals) => panic!("{refusals:#?}"),
    }
}

/// A packet to feed.
#[derive(Clone, Debug)]
pub struct Packet {
    pub program: u32,
    pub port: u32,
    pub time: u64,
    pub bytes: Vec<u8>,
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub fate: u32,
    pub out: u32,
    pub bytes: Vec<u8>,
}

/// How packets are fed.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub sanitize: bool,
    /// without the prefetching passes
    pub plain: bool,
    pub burst: u32,
}

/// Where the tests build: a cache of their own below the target folder.
pub struct Bench {
    pub cache: Cache,
    pub toolchain: Toolchain,
    work: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let work = tempfile::tempdir().unwrap();
        let cache = Cache::at(&work.path().join("cache")).unwrap();
        static TOOLCHAIN: OnceLock<Toolchain> = OnceLock::new();
        let toolchain = TOOLCHAIN.get_or_init(|| find(&cache).unwrap());
        Bench {
            toolchain: toolchain.clone(),
            cache,
            work,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Emits and compiles a program with every warning an error.
    pub fn module(&self, program: &Program, sanitize: bool) -> PathBuf {
        let text = millrace_emit::alone::emit(program, &facts(program), "module.c").unwrap();
        self.compile(&text, sanitize)
    }

    pub fn compile(&self, text: &str, sanitize: bool) -> PathBuf {
        let source = self.path("module.c");
        let module = self.path(if sanitize {
            "module-sanitized.so"
        } else {
            "module.so"
        });
        std::fs::write(&source, text).unwrap();
        let fastpath = self.cache.headers().unwrap().join("fastpath");
        let options = ModuleOptions {
            sanitize,
            strict: true,
            ..ModuleOptions::of_command()
        };
        if let Err(error) = compile_module(&self.toolchain, &source, &fastpath, &module, options) {
            panic!("{error}\n{text}");
        }
        module
    }

    /// Feeds packets to a module in a process of its own; also says how many entries each object has.
    pub fn run(
        &self,
        program: &Program,
        module: &Path,
        way: Way,
        packets: &[Packet],
    ) -> (Vec<Outcome>, Vec<u64>) {
        let driver = self.driver("support/driver.c", flags(way.sanitize));
        let mut input = Input::of(&[u32::from(way.plain), way.burst, packets.len() as u32]);
        input.objects(program, None);
        for packet in packets {
            input.word(packet.program);
            input.packet(packet, None);
        }
        let output = input.feed(Command::new(driver).arg(module));
        let output = output.unwrap_or_else(|said| panic!("{said}"));
        let mut output = Output(&output);
        let outcomes = packets.iter().map(|_| output.outcome()).collect();
        let counts = program.objects.iter().map(|_| output.long()).collect();
        (outcomes, counts)
    }
}
