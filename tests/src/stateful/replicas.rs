//! Generated programs held against replication itself: state after `process` is state after `replay` of `extract`, byte for
//! byte, under AddressSanitizer and UndefinedBehaviorSanitizer.
//!
//! A [`case`] is a program of the grammar with what replication has to cope with: tables that are too small, several blocks in a
//! row, loops before, around and behind the first access to state, time, packet sets. [`Kit::held`] compiles it, asks
//! `millrace_history` for its row, emits the three bodies and lets `crates/emit/tests/replicate/driver.c` run four replicas: one
//! by packets with their rows, one by rows in bursts, one row by row, one that has some of the packets among the rows of others.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_check::{Checked, check};
use millrace_emit::Sharing;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, Toolchain, compile_module, compile_nf, find};
use millrace_history::{History, effects};
use millrace_object::Program;
use millrace_object::program::{ObjectId, Role, StateObject};
use millrace_place::{Held, Placement};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::aimed::Aim;
use super::case::{
    Action, Block, Case, Dialect, Kind, Leak, Object, Over, Parse, Program as Drawn, Shape, Source,
    Value, When,
};
use super::grammar::{Intent, chance, pick, program};
use super::traffic::{self, Traffic};
use super::{render, sets};
use crate::command::root;

/// What programs are drawn for, each as often as it is drawn. Leases and per-CPU values have their share, although most are refused.
const INTENTS: [Intent; 14] = [
    Intent::PerKey,
    Intent::SeveralKeys,
    Intent::Shared,
    Intent::Observed,
    Intent::PerKey,
    Intent::Statistics,
    Intent::SeveralKeys,
    Intent::Shared,
    Intent::Aimed(Aim::Through),
    Intent::PerKey,
    Intent::Observed,
    Intent::Other,
    Intent::Leases,
    Intent::PerCpu,
];

/// Entries of a table that does not have room for what comes.
const FEW: [u32; 3] = [5, 9, 33];

/// The case of a seed.
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x4e91_1ca5);
    if seed % 16 == 15 {
        let mut case = sets::case(seed);
        widened(&mut random, &mut case.program);
        return case;
    }
    let intent = INTENTS[(seed % INTENTS.len() as u64) as usize];
    let mut program = program(&mut random, intent);
    for _ in 0..random.random_range(0..3) {
        joined(&mut random, &mut program);
    }
    widened(&mut random, &mut program);
    program.clock |= random.random::<bool>();
    let packets = traffic::packets(&mut random, Traffic::Mixed);
    Case {
        seed,
        program,
        packets,
    }
}

/// The blocks of another program of this dialect and these headers behind those that there are.
fn joined(random: &mut impl Rng, program: &mut Drawn) {
    let alike = |p: &Parse| (p.family, p.protocol, p.gathered);
    for _ in 0..40 {
        let other = super::grammar::program(random, Intent::SeveralKeys);
        let fits = other.dialect == program.dialect
            && alike(&other.parse) == alike(&program.parse)
            && other.blocks.iter().all(|b| keeps(b.leak));
        if !fits {
            continue;
        }
        let (objects, blocks) = (program.objects.len(), program.blocks.len());
        program.objects.extend(other.objects);
        for mut block in other.blocks {
            shift(&mut block, objects, blocks);
            program.blocks.push(block);
        }
        return;
    }
}

/// Whether any block may follow one with this leak.
fn keeps(leak: Leak) -> bool {
    !matches!(
        leak,
        Leak::Verdict | Leak::TailCall | Leak::Tail | Leak::Head | Leak::PerfLength
    )
}

fn shift(block: &mut Block, objects: usize, blocks: usize) {
    use super::case::{Amount, Key};
    if let When::Odd(of) = &mut block.when {
        *of += blocks;
    }
    let (Source::Value { object, key, .. }
    | Source::First { object, key }
    | Source::Delete { object, key }) = &mut block.source
    else {
        return;
    };
    *object += objects;
    if let Key::Of(of) = key {
        *of += blocks;
    }
    if let Source::Value {
        amount: Amount::Of(of),
        ..
    } = &mut block.source
    {
        *of += blocks;
    }
}

/// Smaller tables, and a loop.
fn widened(random: &mut impl Rng, program: &mut Drawn) {
    // These are reached by an index, and have no call that stores a value.
    for block in &mut program.blocks {
        if let Source::Value { object, action, .. } = &mut block.source
            && *action == Action::Put
            && let Some(object) = program.objects.get(*object)
            && (object.kind == Kind::Nested
                || program.dialect == Dialect::Handlers && object.kind.indexed())
        {
            *action = Action::Last;
        }
    }
    // What is written by what state decided is hardly ever read again, but a generated key often is.
    let last = program.blocks.len().saturating_sub(1);
    for block in program.blocks.iter_mut().take(last) {
        if matches!(block.leak, Leak::Byte | Leak::Place) && !chance(random, 4) {
            block.leak = Leak::Above(10);
        }
    }
    // A row cannot name the program that a tail call goes on with: a few such programs are enough to see that they are refused.
    for block in &mut program.blocks {
        if block.leak == Leak::TailCall && !chance(random, 8) {
            block.leak = Leak::Odd;
        }
    }
    for object in &mut program.objects {
        if !object.kind.indexed() && chance(random, 3) {
            object.capacity = pick(random, &FEW);
        }
    }
    if chance(random, 3) {
        let key = pick(random, &KEYS);
        let kinds: &[Kind] = match program.dialect {
            Dialect::Xdp => &[Kind::Hash, Kind::Lru],
            Dialect::Handlers => &[Kind::Hash],
        };
        program.objects.push(Object {
            kind: pick(random, kinds),
            shape: Shape::Word,
            value: Value {
                a: 4,
                b: 4,
                packed: false,
            },
            capacity: pick(random, &[9, 64, 4096]),
            expires: 0,
        });
        let object = program.objects.len() - 1;
        let over = pick(
            random,
            &[
                Over::Bytes,
                Over::Bytes,
                Over::Keys,
                Over::Keys,
                Over::Rounds,
                Over::Rounds,
                Over::Late,
            ],
        );
        let block = Block {
            when: pick(random, &[When::Always, When::Udp, When::Port(1)]),
            source: Source::Loop { object, key, over },
            leak: pick(random, &[Leak::None, Leak::Odd, Leak::Above(10)]),
        };
        // What is read of the packet in a loop is read before the first access to state, or the program is refused.
        let first = matches!(over, Over::Bytes | Over::Late) || random.random();
        if first && program.sets.is_none() {
            for other in &mut program.blocks {
                shift(other, 0, 1);
            }
            program.blocks.insert(0, block);
        } else {
            program.blocks.push(block);
        }
    }
}

/// Keys of a word that all headers have.
const KEYS: [super::case::Key; 4] = {
    use super::case::Key::{Constant, Len, Low, Src};
    [Src, Low, Len, Constant(2)]
};

/// What came of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Came {
    /// it is not admitted, or cannot be replicated, for this reason
    Refused(String),
    /// no packet touches replicated state
    Stateless,
    /// the replicas were compared
    Compared {
        /// rows that packets had
        rows: u32,
        /// the first object that differs, and on which replica
        differs: Option<String>,
        /// fields of which a replica was kept in the dark, and of these how many it noticed
        fields: (u32, u32),
    },
}

/// How the driver's three other replicas take rows.
const HOW: [&str; 3] = [
    "in bursts",
    "row by row",
    "with packets in groups among rows",
];

/// Every burst of rows takes the passes, but for the first, which find no entry.
const ALWAYS_COLD: &str = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";

/// Compilers, headers and the driver.
pub struct Kit {
    toolchain: Toolchain,
    headers: PathBuf,
    driver: PathBuf,
}

impl Kit {
    /// Makes the driver in a folder.
    ///
    /// # Errors
    /// Whatever is missing, as text.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let cache = Cache::at(&folder.join("cache")).map_err(|e| e.to_string())?;
        let toolchain = find(&cache).map_err(|e| e.to_string())?;
        let headers = cache.headers().map_err(|e| e.to_string())?;
        let driver = folder.join("driver");
        let mut command = Command::new(&toolchain.clang);
        command.args(["-O1", "-fsanitize=address,undefined", "-rdynamic", "-I"]);
        command.arg(headers.join("fastpath")).arg("-o").arg(&driver);
        command.arg(root().join("crates/emit/tests/replicate/driver.c"));
        let output = command.arg("-ldl").output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(Self {
            toolchain,
            headers,
            driver,
        })
    }

    /// Compares the replicas of a case, in a folder of its own; `fields`: of so many fields of its rows also a replica that does not
    /// see one.
    ///
    /// # Errors
    /// The program does not compile or cannot be read, what is emitted does not compile, or a sanitizer stopped it.
    pub fn held(&self, case: &Case, folder: &Path, fields: usize) -> Result<Came, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let (source, object) = (folder.join("function.c"), folder.join("function.o"));
        std::fs::write(&source, render::source(&case.program)).map_err(|e| text(&e))?;
        let include = self.headers.join("include");
        compile_nf(&self.toolchain, &source, &include, &object).map_err(|e| text(&e))?;
        let object = std::fs::read(object).map_err(|e| text(&e))?;
        let program = match millrace_object::load(&object, "function") {
            Ok(program) => program,
            Err(error) => return Ok(Came::Refused(format!("not read: {error}"))),
        };
        let checked = match check(&program, &millrace_check::Options::default()) {
            Ok(checked) => checked,
            Err(refusals) => {
                let rule = refusals.first().map_or("?", |r| r.rule);
                return Ok(Came::Refused(format!("not admitted: {rule}")));
            }
        };
        let history = History::of(&program, &checked);
        if let Some(refusal) = history.refusals.first() {
            return Ok(Came::Refused(refusal.reason.clone()));
        }
        if !history.touches() {
            return Ok(Came::Stateless);
        }
        let module = match self.module(&program, &checked, folder)? {
            Ok(module) => module,
            Err(refusal) => return Ok(Came::Refused(refusal)),
        };
        let (rows, differs) = self.run(&program, &module, case, (0, 0))?;
        let mut noticed = (0, 0);
        let time = (history.time_bits > 0).then_some((0, history.time_bits));
        let all = history.fields.iter().map(|f| (f.at, f.bits)).chain(time);
        for cleared in all.take(fields) {
            noticed.0 += 1;
            // A row without a field may be none: that it is refused is noticed as well.
            let seen = self.run(&program, &module, case, cleared);
            noticed.1 += u32::from(seen.is_err() || seen.is_ok_and(|(_, d)| d.is_some()));
        }
        Ok(Came::Compared {
            rows,
            differs,
            fields: noticed,
        })
    }

    /// Emits and compiles a program, all of whose state is replicated; inside, why emit refuses it.
    fn module(
        &self,
        program: &Program,
        checked: &Checked,
        folder: &Path,
    ) -> Result<Result<PathBuf, String>, String> {
        let held =
            (0..program.objects.len()).map(|at| match effects::replicated(program, ObjectId(at)) {
                true => Held::Replicated,
                false => Held::Copied,
            });
        let sharing = Sharing {
            placement: Placement::even(&program.objects, 1, held.collect()),
            test: None,
            profile: false,
        };
        let text = match millrace_emit::emit(program, checked, &sharing, "module.c") {
            Ok(text) => text,
            Err(refusal) => return Ok(Err(format!("by emit: {refusal}"))),
        };
        let (source, module) = (folder.join("module.c"), folder.join("module.so"));
        std::fs::write(&source, format!("{ALWAYS_COLD}{text}")).map_err(|e| e.to_string())?;
        let fastpath = self.headers.join("fastpath");
        let options = ModuleOptions {
            sanitize: true,
            strict: true,
            unoptimised: false,
        };
        compile_module(&self.toolchain, &source, &fastpath, &module, options)
            .map_err(|e| e.to_string())?;
        Ok(Ok(module))
    }

    /// Rows, and what differs; of `cleared`, the first bit and how many, the replicas that take rows see zeros.
    fn run(
        &self,
        program: &Program,
        module: &Path,
        case: &Case,
        cleared: (u32, u32),
    ) -> Result<(u32, Option<String>), String> {
        let mut input: Vec<u8> = Vec::new();
        let word = |input: &mut Vec<u8>, n: u32| input.extend(n.to_le_bytes());
        for n in [case.packets.len() as u32, cleared.0, cleared.1] {
            word(&mut input, n);
        }
        for (at, object) in program.objects.iter().enumerate() {
            let initial = object.initial.as_deref().unwrap_or_default();
            let compared = effects::replicated(program, ObjectId(at));
            word(&mut input, u32::from(compared));
            word(&mut input, initial.len() as u32);
            input.extend(initial);
        }
        let entry = entry(program);
        for packet in &case.packets {
            word(&mut input, entry);
            word(&mut input, packet.port);
            input.extend(packet.stamp.to_le_bytes());
            word(&mut input, packet.bytes.len() as u32);
            word(&mut input, 0);
            input.extend(&packet.bytes);
        }
        let mut child = Command::new(&self.driver)
            .arg(module)
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Where it does not read all, its status says why.
                let _ = stdin.map(|mut to| to.write_all(&input));
            });
            child.wait_with_output()
        });
        let output = output.map_err(|e| e.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}\n{said}", output.status));
        }
        let number = |at: usize| {
            let bytes = output.stdout.get(4 * at..4 * at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        // What packets find in objects that are each replica's own is theirs alone: a plan refuses a program that shows it.
        let own = |(at, o): (usize, &StateObject)| {
            let id = ObjectId(at);
            (o.kind.per_cpu || o.kind.holds_records()) && !effects::constant(program, id)
        };
        let own = program.objects.iter().enumerate().any(own);
        let mut differs = None;
        for (at, how) in HOW.iter().enumerate().rev() {
            differs = match number(1 + at).ok_or("the driver said nothing")? {
                0 => differs,
                0xffff if own => differs,
                0xffff => Some(format!("what became of a packet, {how}")),
                object => {
                    let object = program.objects.get(object as usize - 1);
                    Some(format!("{}, {how}", object.map_or("?", |o| &o.name)))
                }
            };
        }
        Ok((number(0).unwrap_or_default(), differs))
    }
}

/// The place of `function`, or of the handler, among the programs that take packets.
fn entry(program: &Program) -> u32 {
    let takes = |role: &Role| matches!(role, Role::Xdp | Role::OnPacket);
    let mut packets = program.entries.iter().filter(|e| takes(&e.role));
    let named = |f: usize| {
        program
            .functions
            .get(f)
            .is_some_and(|f| f.name == "function")
    };
    packets.position(|e| named(e.function.0)).unwrap_or(0) as u32
}
