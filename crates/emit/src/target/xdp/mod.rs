//! `--target xdp`: a sequencer and replicas that the kernel runs.
//!
//! `sequencer.bpf.c` is the sequencer in the prefix form, with the row printed from the circuit
//! (`millrace_history::circuit`). `replica.bpf.c` is the program itself, made aware of rows (Xu et al., appendix C): its own
//! instructions, unchanged, for the packet that came, and what they do to state, over rows, for all others. The instructions
//! are printed as assembly (`asm.rs`), so that the kernel's verifier sees what it would see of the user's object.

mod asm;
mod code;
mod gates;
mod replay;
pub mod shard;

use std::fmt::Write;

use millrace_check::facts::{Checked, Op};
use millrace_history::circuit::{Circuit, Gate};
use millrace_history::{History, Part};
use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Role, StateObject};

use super::{File, Input, Target, circuit, unsupported};
use crate::codegen::comment_text;
use crate::error::Error;

/// The target.
pub struct Xdp;

const SPIN_LOCK: u32 = helper::SPIN_LOCK.number;
/// Bytes of a `struct bpf_spin_lock`.
const LOCK_BYTES: u32 = 4;

/// What each of the kernel's programs begins with.
const TYPES: &str = include_str!("types.h");
const COMMON: &str = include_str!("common.h");
const SEQUENCER: &str = include_str!("sequencer.c");
const REPLICA: &str = include_str!("replica.c");
/// What loaders begin with, behind what they say of themselves; and that of replicas.
const LOADER: &str = include_str!("loader.c");
const LOAD: &str = include_str!("load.c");
/// Bytes in front of a packet that XDP lets a program take: 256, less `struct xdp_frame`.
pub const HEADROOM: usize = 216;

impl Target for Xdp {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn about(&self) -> &'static str {
        "a sequencer and replicas for the kernel's XDP"
    }

    fn files(&self, input: &Input) -> Result<Vec<File>, Error> {
        let circuit = circuit(input)?;
        let history = History::of(input.program, input.checked);
        admitted(input, &circuit)?;
        let found = (input.program.entries.iter().zip(&history.flows)).enumerate();
        let mut found = found.filter(|(_, (e, _))| e.role == Role::Xdp);
        let Some((entry, (_, Some(part)))) = found.next() else {
            return Err(unsupported(
                input.program,
                None,
                "a program that takes no packets",
            ));
        };
        let head = head(input, &circuit);
        let extract = gates::extract(&circuit);
        Ok(vec![
            File {
                name: "sequencer.bpf.c".into(),
                text: format!("{head}{TYPES}{COMMON}\n{extract}{SEQUENCER}"),
            },
            File {
                name: "replica.bpf.c".into(),
                text: format!(
                    "{head}{TYPES}{COMMON}\n{extract}{}",
                    replica(input, entry, part)?
                ),
            },
            File {
                name: "load.c".into(),
                text: loader(LOAD).replacen(
                    "#define MOST",
                    &format!(
                        "#define CORES {}\n#define PERIOD {}ull /* of heartbeats, ns */\n#define PREFIX {} /* bytes */\n#define MOST",
                        input.cores,
                        input.period,
                        prefix(input, &circuit)
                    ),
                    1,
                ),
            },
        ])
    }
}

/// A loader: what it says of itself, what all begin with, and its own.
fn loader(own: &str) -> String {
    let (about, rest) = own.split_once("*/\n").unwrap_or(("", own));
    format!("{about}*/\n{LOADER}{}", rest.trim_start_matches('\n'))
}

/// Bytes of a prefix.
fn prefix(input: &Input, circuit: &Circuit) -> usize {
    let slots = usize::from(input.slots);
    34 + slots.div_ceil(8) + slots * circuit.row_bytes()
}

/// What of a program the kernel could run otherwise than one core here.
fn admitted(input: &Input, circuit: &Circuit) -> Result<(), Error> {
    let program = input.program;
    if program.dialect != Dialect::Xdp {
        return Err(unsupported(
            input.program,
            None,
            "a function in the handlers' dialect, which the kernel does not know,",
        ));
    }
    let whole = prefix(input, circuit);
    if whole > HEADROOM {
        let fits = |slots: &usize| 34 + slots.div_ceil(8) + slots * circuit.row_bytes() <= HEADROOM;
        let most = (1..=64).rev().find(fits).unwrap_or(0);
        return Err(unsupported(
            input.program,
            None,
            format!(
                "a prefix of {whole} bytes ({} rows) in the {HEADROOM} bytes of headroom that XDP has, in which {most} rows fit,",
                input.slots
            ),
        ));
    }
    for object in &program.objects {
        let name = &object.name;
        let why = match object.kind.bpf_type {
            _ if object.kind.is_global() => continue,
            None => "is no map of the kernel's",
            Some(_) if object.timer.is_some() => {
                "has timers, which replicas would fire at other times"
            }
            Some(_) if object.nesting.is_some() => "is a map in a map",
            Some(_) if object.leads_on() => {
                "says where packets go on, which whoever loads a replica would set"
            }
            Some(_) if object.kind.evicts => "evicts entries, and the kernel does not say which",
            Some(_) if object.kind.per_cpu => {
                "has a value for each CPU, and a replica may run on several"
            }
            Some(_) => continue,
        };
        return Err(unsupported(
            input.program,
            None,
            format!("replicas in the kernel whose map {name} {why},"),
        ));
    }
    let time = circuit.live().into_iter();
    let mut time = time.filter(|w| *circuit.gates.gate(*w) == Gate::Time);
    if time.next().is_some() {
        return Err(unsupported(
            input.program,
            None,
            "a row that depends on the time beside having it",
        ));
    }
    for step in input.checked.flows.iter().flat_map(|f| &f.steps) {
        let field = matches!(
            step.access,
            Some(millrace_check::facts::Access::Context { offset }) if offset >= 12
        );
        if step.reached && field {
            let line = step.line.as_ref();
            let what = "reading the interface or the queue, which of a replica is another one than the packet came by,";
            return Err(unsupported(program, line, what));
        }
    }
    Ok(())
}

/// The numbers of this program.
fn head(input: &Input, circuit: &Circuit) -> String {
    let window = circuit.window();
    let mut out = format!(
        "/* {}: emitted by millrace, target xdp (docs/targets.md). Compile it with: clang -O2 -g -target bpf -mcpu=v4 */\n",
        comment_text(&circuit.name)
    );
    let time = circuit.time.map_or("-1".into(), |at| at.to_string());
    for (name, value, what) in [
        (
            "CORES",
            input.cores.to_string(),
            "to which packets go in turn",
        ),
        ("SLOTS", input.slots.to_string(), "rows of a prefix"),
        ("ROW", circuit.row_bytes().to_string(), "bytes of a row"),
        ("TIME", time, "offset of the time in it; -1: it has none"),
        (
            "WINDOW",
            window.to_string(),
            "bytes of a packet that it depends on",
        ),
        (
            "HEAD",
            window.next_power_of_two().to_string(),
            "the same, as a power of two",
        ),
        (
            "PERIOD",
            format!("{}ull", input.period),
            "of heartbeats, ns",
        ),
    ] {
        let _ = writeln!(out, "#define {name} {value} /* {what} */");
    }
    out.push('\n');
    out
}

/// Maps, globals, functions and the replay of one program.
fn replica(input: &Input, entry: usize, part: &Part) -> Result<String, Error> {
    let program = input.program;
    let mut out = String::from(CLOCK);
    for (number, object) in program.objects.iter().enumerate() {
        out.push_str(&declared(number, object, lock(input.checked, number)));
    }
    let history = History::of(program, input.checked);
    out.push_str(&asm::functions(input, asm::Clock::Row)?);
    out.push_str(&replay::functions(input, entry, part, &history)?);
    out.push_str(&named(program, entry));
    out.push_str(REPLICA);
    Ok(out)
}

/// What the program of an entry is called, and its licence.
fn named(program: &Program, entry: usize) -> String {
    let function = program.entries.get(entry).map_or(0, |e| e.function.0);
    let license = match program.license.as_str() {
        "" => "GPL",
        given => given,
    };
    let name = asm::name(program, function);
    format!("\n#define PROGRAM \"{name}\"\n#define LICENSE {license:?}\n")
}

const CLOCK: &str = "
struct row {
	u8 bytes[ROW];
};

/* What the program reads as time is that of the row, or of the packet, at hand. */
struct replica_head {
	u64 applied; /* the last row that state has seen, or that all replicas lost */
	u64 logged; /* the last row of which the log says what came of it */
	u64 stamp; /* of the last carrier */
	u64 clock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct replica_head);
} replica_state SEC(\".maps\");

static __attribute__((noinline, used)) u64 replica_time(void)
{
	u32 zero = 0;
	struct replica_head *r = bpf_map_lookup_elem(&replica_state, &zero);

	return r ? r->clock : 0;
}
";

/// The C name of an object: its own, behind what keeps it apart from names here.
fn object_name(number: usize, object: &StateObject) -> String {
    format!("o{number}_{}", crate::identifier(&object.name))
}

/// Offset of the lock in an object's values, if the program takes one there.
fn lock(checked: &Checked, number: usize) -> Option<u32> {
    let steps = checked.flows.iter().flat_map(|f| &f.steps);
    let takes = |op: &Op| matches!(op, Op::Plain(Insn::Call { helper }) if *helper == SPIN_LOCK);
    let mut extents = steps.filter(|s| takes(&s.op)).flat_map(|s| &s.extents);
    extents.find(|e| e.object.0 == number).map(|e| e.from)
}

fn declared(number: usize, object: &StateObject, lock: Option<u32>) -> String {
    let name = object_name(number, object);
    let comment = comment_text(&object.name);
    if object.kind.is_global() {
        let bytes = object.initial.as_deref().unwrap_or_default();
        let section = match object.read_only {
            true => format!(".rodata.{name}"),
            false => format!(".data.{name}"),
        };
        let constant = if object.read_only { "const " } else { "" };
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        return format!(
            "\n/* {comment} */\nstatic {constant}volatile u8 {name}[{}] __attribute__((section(\"{section}\"), aligned(8), used)) = {{ {} }};\n",
            object.value_bytes.max(1),
            bytes.join(", ")
        );
    }
    let mut out = format!("\n/* {comment} */\n");
    // The kernel knows by the value's type where its lock is.
    if let Some(at) = lock {
        let _ = writeln!(out, "struct {name}_value {{");
        let _ = writeln!(out, "\tu8 before[{at}];\n\tstruct bpf_spin_lock lock;");
        let _ = writeln!(
            out,
            "\tu8 behind[{}];\n}};",
            object.value_bytes.saturating_sub(at + LOCK_BYTES)
        );
    }
    let _ = writeln!(out, "struct {{");
    let kind = object.kind.bpf_type.unwrap_or(0);
    let _ = writeln!(out, "\t__uint(type, {kind}); /* {} */", object.kind.name);
    let _ = writeln!(out, "\t__uint(max_entries, {});", object.capacity);
    if object.flags != 0 {
        let _ = writeln!(out, "\t__uint(map_flags, {});", object.flags);
    }
    if lock.is_some() {
        let _ = writeln!(out, "\t__type(key, u8[{}]);", object.key_bytes);
        let _ = writeln!(out, "\t__type(value, struct {name}_value);");
    } else if object.key_bytes > 0 {
        let _ = writeln!(out, "\t__uint(key_size, {});", object.key_bytes);
    }
    if lock.is_none() && object.value_bytes > 0 && !object.kind.holds_records() {
        let _ = writeln!(out, "\t__uint(value_size, {});", object.value_bytes);
    }
    let _ = writeln!(out, "}} {name} SEC(\".maps\");");
    out
}
