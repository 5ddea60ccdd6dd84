//! Treatment `replicate`: state after packets with their rows is state after the rows alone, byte for byte.

pub mod frames;
mod functions;
mod losses;
mod random;

use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_emit::Sharing;
use millrace_history::effects::replicated;
use millrace_object::Program;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Placement};

use crate::support::drive::{Input, Output, flags};
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
        profile: false,
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
    let driver = bench.driver("replicate/driver.c", flags(sanitize));
    let mut input = Input::of(&[packets.len() as u32, fault.cleared.0, fault.cleared.1]);
    input.objects(program, Some(&|at| replicated(program, ObjectId(at))));
    for (at, packet) in packets.iter().enumerate() {
        let changed = if fault.changed.contains(&at) { 27 } else { 0 };
        input.word(packet.program);
        input.packet(packet, Some(changed));
    }
    let output = input.feed(Command::new(driver).arg(module));
    let output = output.unwrap_or_else(|said| panic!("{said}"));
    let mut output = Output(&output);
    let rows = output.word();
    let differs: Vec<u32> = (0..3).map(|_| output.word()).collect();
    let all = packets.iter().map(|_| output.outcome()).collect();
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
