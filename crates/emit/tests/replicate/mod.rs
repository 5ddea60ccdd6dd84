//! Treatment `replicate`: state after packets with their rows is state after the rows alone, byte for byte.

pub mod frames;
mod functions;
mod losses;
mod random;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_emit::Sharing;
use millrace_history::effects::replicated;
use millrace_object::Program;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Placement};

use crate::support::{Bench, Outcome, Packet, facts};

/// What came of it.
pub struct Replicas {
    /// how many packets had a row
    pub rows: u32,
    /// the first object that differs between the replicas, and how the other one took the rows
    pub differs: Option<String>,
    /// by packet
    pub outcomes: Vec<Outcome>,
}

/// All state of a program is replicated.
pub fn sharing(program: &Program) -> Sharing {
    let held = |at: usize| match replicated(program, ObjectId(at)) {
        true => Held::Replicated,
        false => Held::Copied,
    };
    let held = (0..program.objects.len()).map(held).collect();
    Sharing {
        placement: Placement::even(&program.objects, 1, held),
        test: None,
    }
}

/// The module of a program whose state is replicated.
pub fn text(program: &Program) -> Result<String, millrace_emit::Error> {
    millrace_emit::emit(program, &facts(program), &sharing(program), "module.c")
}

/// What is done to packets and rows between the two replicas.
#[derive(Clone, Copy, Default)]
pub struct Fault<'a> {
    /// bits of every row that the second replica does not see
    pub cleared: (u32, u32),
    /// packets that change once their row is made
    pub changed: &'a [usize],
}

/// Runs packets on one replica, and their rows on another.
pub fn run(
    bench: &Bench,
    program: &Program,
    module: &Path,
    (sanitize, fault): (bool, Fault),
    packets: &[Packet],
) -> Replicas {
    let driver = driver(bench, sanitize);
    let mut input = Vec::new();
    for word in [packets.len() as u32, fault.cleared.0, fault.cleared.1] {
        input.extend(word.to_le_bytes());
    }
    for (at, object) in program.objects.iter().enumerate() {
        let initial = object.initial.as_deref().unwrap_or_default();
        input.extend(u32::from(replicated(program, ObjectId(at))).to_le_bytes());
        input.extend((initial.len() as u32).to_le_bytes());
        input.extend(initial);
    }
    for (at, p) in packets.iter().enumerate() {
        let changed = if fault.changed.contains(&at) {
            27
        } else {
            0u32
        };
        input.extend(p.program.to_le_bytes());
        input.extend(p.port.to_le_bytes());
        input.extend(p.time.to_le_bytes());
        input.extend((p.bytes.len() as u32).to_le_bytes());
        input.extend(changed.to_le_bytes());
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
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    writer.join().unwrap().unwrap();
    let mut bytes = &output.stdout[..];
    let mut take = |n: usize| {
        let (head, rest) = bytes.split_at(n);
        bytes = rest;
        head.to_vec()
    };
    let mut word = || u32::from_le_bytes(take(4).try_into().unwrap());
    let rows = word();
    let differs: Vec<u32> = (0..3).map(|_| word()).collect();
    let mut all = Vec::new();
    for _ in packets {
        let mut word = || u32::from_le_bytes(take(4).try_into().unwrap());
        let (fate, out, length) = (word(), word(), word());
        all.push(Outcome {
            fate,
            out,
            bytes: take(length as usize),
        });
    }
    let how = [
        "in bursts",
        "row by row",
        "with packets in groups among rows",
    ];
    let name = |object: u32| match object {
        0xffff => "what became of a packet",
        object => program.objects[object as usize - 1].name.as_str(),
    };
    let differs = differs.iter().zip(how).find(|(d, _)| **d > 0);
    let differs = differs.map(|(object, how)| format!("{}, {how}", name(*object)));
    Replicas {
        rows,
        differs,
        outcomes: all,
    }
}

/// Every burst of rows takes the passes, but for the first, which find no entry.
const ALWAYS_COLD: &str = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";

/// Compiles a module: quickly, or with sanitizers. What optimised code does, the tests of `state` see.
pub fn compiled(bench: &Bench, text: &str, sanitize: bool) -> PathBuf {
    let text = &format!("{ALWAYS_COLD}{text}");
    if sanitize {
        return bench.compile(text, true);
    }
    let (source, module) = (bench.path("quick.c"), bench.path("quick.so"));
    std::fs::write(&source, text).unwrap();
    let fastpath = bench.cache.headers().unwrap().join("fastpath");
    let mut command = Command::new(&bench.toolchain.clang);
    command.args([
        "-std=gnu11",
        "-O0",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-march=native",
    ]);
    command.args([
        "-fno-strict-aliasing",
        "-fno-strict-overflow",
        "-shared",
        "-fPIC",
    ]);
    command
        .arg("-I")
        .arg(fastpath)
        .arg("-o")
        .arg(&module)
        .arg(&source);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{text}");
    module
}

fn driver(bench: &Bench, sanitize: bool) -> PathBuf {
    let driver = bench.path(if sanitize {
        "replica-sanitized"
    } else {
        "replica"
    });
    if driver.exists() {
        return driver;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replicate/driver.c");
    let fastpath = bench.cache.headers().unwrap().join("fastpath");
    let mut command = Command::new(&bench.toolchain.clang);
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic"]);
    if sanitize {
        command.arg("-fsanitize=address,undefined");
    }
    command.arg("-I").arg(fastpath).arg("-o").arg(&driver);
    assert!(command.arg(source).arg("-ldl").status().unwrap().success());
    driver
}
