//! `--target xdp --strategy shard`: a plan that shards, for the kernel. `steer.bpf.c` sends each packet to the processor of the worker
//! that has its part (a cpumap), by the plan's hash; `worker.bpf.c` is the program itself, unchanged, one load of it a worker: the
//! maps of each load are that worker's part. `load.c` loads and attaches them.

use std::fmt::Write;

use millrace_check::Checked;
use millrace_check::facts::Access;
use millrace_object::Program;
use millrace_object::program::{Dialect, Role};
use millrace_steer::fields::Kind;
use millrace_steer::{Field, Parsed, Rss, Steering};

use super::{File, Input, TYPES, asm, declared, lock, named};
use crate::codegen::comment_text;
use crate::error::Error;
use crate::target::unsupported;

const STEER: &str = include_str!("shard/steer.c");
const WORKER: &str = include_str!("shard/worker.c");
const LOAD: &str = include_str!("shard/load.c");

/// Bits of all fields: two addresses of IPv6 and two ports.
const INPUT: usize = 36 * 8;
/// `BPF_MAP_TYPE_RINGBUF`, which the loader reads.
const RINGBUF: u32 = 27;
/// Kinds that the kernel's program tells apart, in its order.
const KINDS: usize = 11;
/// The kernel reads a field of `struct xdp_md` that lies from here on for the queue, which is none behind a cpumap.
const QUEUE: u32 = 16;

/// A plan that shards.
#[derive(Clone, Copy)]
pub struct Shards<'a> {
    /// what is written
    pub program: &'a Program,
    /// what is proved
    pub checked: &'a Checked,
    /// workers, 1 to 64
    pub workers: u32,
    /// who gets the packets of each port, the last one of ports behind it; it has at least one
    pub steering: &'a [Steering],
}

/// The files.
///
/// # Errors
/// What the kernel cannot do, with the line.
pub fn files(shards: &Shards) -> Result<Vec<File>, Error> {
    let entry = admitted(shards)?;
    let head = format!(
        "/* {}: emitted by millrace, target xdp, sharded over {} workers (docs/targets.md). Compile it with: clang -O2 -g -target bpf \
         -mcpu=v4. The key of the hash is a secret: who has it can send all packets to one worker. */\n{TYPES}",
        comment_text(&shards.program.name),
        shards.workers
    );
    Ok(vec![
        File {
            name: "steer.bpf.c".into(),
            text: format!("{head}{}{STEER}", numbers(shards)?),
        },
        File {
            name: "worker.bpf.c".into(),
            text: format!("{head}{}", worker(shards, entry)?),
        },
        File {
            name: "load.c".into(),
            text: super::loader(LOAD),
        },
    ])
}

/// The entry that takes packets.
fn admitted(shards: &Shards) -> Result<usize, Error> {
    let (program, checked) = (shards.program, shards.checked);
    let no = |what: &str| unsupported(program, None, what);
    if program.dialect != Dialect::Xdp {
        return Err(no(
            "a function in the handlers' dialect, which the kernel does not know,",
        ));
    }
    let mut packets = (program.entries.iter().enumerate()).filter(|(_, e)| e.role == Role::Xdp);
    let (Some((entry, _)), None) = (packets.next(), packets.next()) else {
        return Err(no(
            "workers in the kernel of an object with several programs",
        ));
    };
    for object in &program.objects {
        let why = match object.kind.bpf_type {
            _ if object.kind.is_global() => continue,
            None => "is no map of the kernel's",
            Some(_) if object.timer.is_some() => "has timers",
            Some(_) if object.nesting.is_some() => "is a map in a map",
            Some(_) if object.leads_on() => {
                "says where packets go on, which whoever loads it would set"
            }
            Some(kind) if object.kind.holds_records() && kind != RINGBUF => {
                "has records that the loader does not read"
            }
            Some(_) => continue,
        };
        return Err(no(&format!(
            "workers in the kernel whose map {} {why},",
            object.name
        )));
    }
    for step in checked.flows.iter().flat_map(|f| &f.steps) {
        let field = matches!(step.access, Some(Access::Context { offset }) if offset >= QUEUE);
        if step.reached && field {
            let line = step.line.as_ref();
            let what = "reading the queue, which is none behind a cpumap,";
            return Err(unsupported(program, line, what));
        }
    }
    Ok(entry)
}

/// What each bit of a kind's fields adds to the hash, and the table.
type Set = (Vec<u32>, Vec<u32>);

/// What the hash is made of, by port and kind.
fn numbers(shards: &Shards) -> Result<String, Error> {
    let mut sets: Vec<Set> = Vec::new();
    let mut of = String::new();
    for steering in shards.steering {
        let closer = steering.echoes || steering.odd.is_some();
        if closer {
            return Err(unsupported(
                shards.program,
                None,
                "steering in the kernel by identifiers of echoes, or by headers that the program reads otherwise than a NIC",
            ));
        }
        let mut places = Vec::new();
        for kind in Kind::ALL.into_iter().take(KINDS) {
            let rss = steering.software.get(&kind).unwrap_or(&steering.nic);
            let set = (added(shards.program, rss, kind)?, rss.table().to_vec());
            let place = sets.iter().position(|s| *s == set);
            let place = place.unwrap_or_else(|| {
                sets.push(set);
                sets.len() - 1
            });
            places.push(place.to_string());
        }
        let _ = writeln!(of, "\t{{ {} }},", places.join(", "));
    }
    let inside: Vec<String> = (shards.steering.iter())
        .map(|s| u8::from(s.inside).to_string())
        .collect();
    let most = sets.iter().map(|s| s.1.len()).max().unwrap_or(1);
    let list = |all: &[u32]| {
        let lines = all.chunks(12);
        let line = |c: &[u32]| c.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        lines.map(line).collect::<Vec<_>>().join(",\n\t  ")
    };
    let each = |of: &dyn Fn(&Set) -> String| {
        let all = sets.iter().map(|s| format!("\t{{ {} }},\n", of(s)));
        all.collect::<String>()
    };
    // A table has a power of two of buckets (crates/steer/nics).
    let masks: Vec<String> = sets.iter().map(|s| (s.1.len() - 1).to_string()).collect();
    Ok(format!(
        "
#define WORKERS {workers}
#define PORTS {ports} /* the last one's steering is that of ports behind it, too */
#define SETS {count} /* kinds of packets that are hashed alike */
#define INPUT {INPUT} /* bits of a packet's fields */
#define TABLE_MOST {most}

/* Whether an error of ICMP, or a first fragment, belongs where the packet it tells of does, by port. */
static const u8 INSIDE[PORTS] = {{ {inside} }};

/* By port and kind. */
static const u8 SETS_OF[PORTS][{KINDS}] = {{
{of}}};

/* What each bit of the fields adds to the hash: of addresses, 128 bits each, and of ports; 0 of what is not hashed. */
static const u32 ADDED[SETS][INPUT] = {{
{added}}};

static const u32 TABLE_MASKS[SETS] = {{ {masks} }};

/* The worker of each bucket. */
static const u32 TABLES[SETS][TABLE_MOST] = {{
{tables}}};
",
        workers = shards.workers,
        ports = shards.steering.len(),
        count = sets.len(),
        added = each(&|s: &Set| list(&s.0)),
        tables = each(&|s: &Set| list(&s.1)),
        masks = masks.join(", "),
        inside = inside.join(", "),
    ))
}

/// What each bit of a kind's fields adds to the hash, which is linear; bits of an address of IPv4 are the first of its 128.
fn added(program: &Program, rss: &Rss, kind: Kind) -> Result<Vec<u32>, Error> {
    let mut all = Vec::with_capacity(INPUT);
    let mut sum = 0;
    let mut every: [Vec<u8>; 4] = Default::default();
    for (field, every) in Field::ALL.into_iter().zip(&mut every) {
        let room = match field {
            Field::SourceAddress | Field::DestinationAddress => 128,
            Field::SourcePort | Field::DestinationPort => 16,
        };
        let bits = field.bits(kind);
        *every = vec![0xff; bits / 8];
        for bit in 0..room {
            let mut bytes = vec![0; bits / 8];
            let Some(byte) = bytes.get_mut(bit / 8) else {
                all.push(0);
                continue;
            };
            *byte = 0x80 >> (bit % 8);
            let one = rss.hash_of(&Parsed::with_only(kind, field, &bytes));
            sum ^= one;
            all.push(one);
        }
    }
    let [source, destination, from, to] = &every;
    // Some devices' hashes of both directions alike are no sums of bits.
    let whole = Parsed::of(kind, [source, destination, from, to]);
    match rss.hash_of(&whole) == sum {
        true => Ok(all),
        false => Err(unsupported(
            program,
            None,
            "a hash in the kernel that is not linear; give another --nic",
        )),
    }
}

fn worker(shards: &Shards, entry: usize) -> Result<String, Error> {
    let program = shards.program;
    let mut out = String::new();
    for (number, object) in program.objects.iter().enumerate() {
        out.push_str(&declared(number, object, lock(shards.checked, number)));
    }
    let input = Input {
        program,
        checked: shards.checked,
        cores: shards.workers as u16,
        slots: 1,
        period: 1,
    };
    out.push_str(&asm::functions(&input, asm::Clock::Own)?);
    out.push_str(&named(program, entry));
    out.push_str(WORKER);
    Ok(out)
}
