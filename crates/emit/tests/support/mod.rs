//! Programs made by hand, and a process that runs what is emitted of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_check::{Checked, check};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, Toolchain, compile_module, find};
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Entry, Function, FunctionId, Program, Role};

pub mod asm;
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
        let toolchain = find(&cache).unwrap();
        Bench {
            cache,
            toolchain,
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
            unoptimised: false,
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
        let driver = self.driver(way.sanitize);
        let mut input = Vec::new();
        for word in [u32::from(way.plain), way.burst, packets.len() as u32] {
            input.extend(word.to_le_bytes());
        }
        for object in &program.objects {
            let initial = object.initial.as_deref().unwrap_or_default();
            input.extend((initial.len() as u32).to_le_bytes());
            input.extend(initial);
        }
        for p in packets {
            input.extend(p.program.to_le_bytes());
            input.extend(p.port.to_le_bytes());
            input.extend(p.time.to_le_bytes());
            input.extend((p.bytes.len() as u32).to_le_bytes());
            input.extend(&p.bytes);
        }
        let mut child = Command::new(driver)
            .arg(module)
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        writer.join().unwrap().unwrap();
        parse(&output.stdout, packets.len())
    }

    fn driver(&self, sanitize: bool) -> PathBuf {
        let driver = self.path(if sanitize {
            "driver-sanitized"
        } else {
            "driver"
        });
        if driver.exists() {
            return driver;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/driver.c");
        let fastpath = self.cache.headers().unwrap().join("fastpath");
        let mut command = Command::new(&self.toolchain.clang);
        command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic"]);
        if sanitize {
            command.arg("-fsanitize=address,undefined");
        }
        let status = command
            .arg("-I")
            .arg(fastpath)
            .arg("-o")
            .arg(&driver)
            .arg(source)
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(status.success());
        driver
    }
}

fn parse(mut bytes: &[u8], packets: usize) -> (Vec<Outcome>, Vec<u64>) {
    let mut take = |n: usize| {
        let (head, rest) = bytes.split_at(n);
        bytes = rest;
        head.to_vec()
    };
    let mut outcomes = Vec::new();
    for _ in 0..packets {
        let mut word = || u32::from_le_bytes(take(4).try_into().unwrap());
        let (fate, out, length) = (word(), word(), word());
        outcomes.push(Outcome {
            fate,
            out,
            bytes: take(length as usize),
        });
    }
    let counts = bytes
        .chunks_exact(8)
        .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
        .collect();
    (outcomes, counts)
}
