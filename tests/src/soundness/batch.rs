//! Many programs in one module, executed twice: by the reference interpreter, and as emitted code
//! under AddressSanitizer and UndefinedBehaviorSanitizer.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_check::Options;
use millrace_check::reference::{End, Machine};
use millrace_emit::alone;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, Toolchain, compile_module, find};
use millrace_object::insn::Insn;
use millrace_object::program::{FunctionId, Nesting, ObjectId, Program, Role};
use rand::{Rng, RngExt};

use super::{CALLEES, TRACE};

/// Ports that a packet may go to.
const PORTS: u32 = 2;
/// The time of the first packet, and from one to the next, ns.
const BEGIN: u64 = 1000;
const STEP: u64 = 50;

/// Instructions that an admitted program of these shapes never needs.
const MOST_STEPS: u64 = 2_000_000;

/// The values under each key, in ascending order: prefix tables show several by address alone.
type Entries = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Entries of these pairs.
fn gather(pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Entries {
    let mut all = Entries::new();
    for (key, value) in pairs {
        all.entry(key).or_default().push(value);
    }
    all.values_mut().for_each(|values| values.sort());
    all
}

/// A packet and who gets it.
#[derive(Clone, Debug)]
pub struct Packet {
    program: usize,
    port: u32,
    headroom: usize,
    bytes: Vec<u8>,
}

/// What one packet left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Outcome {
    fate: u32,
    bytes: Vec<u8>,
    trace: u64,
    records: Vec<(u32, Vec<u8>)>,
}

/// What a batch showed.
#[derive(Debug, Default)]
pub struct Trial {
    /// what the interpreter saw a program do that no admitted program may
    pub interpreter: Option<String>,
    /// why there is no code to run
    pub emitter: Option<String>,
    /// what a sanitizer said
    pub sanitizer: Option<String>,
    /// where interpreter and emitted code do not agree
    pub difference: Option<String>,
    /// packets that both executed alike
    pub compared: u64,
    /// timers that fired between them
    pub fired: u64,
}

impl Trial {
    /// Whether everything was as it should be.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.findings().is_empty()
    }

    /// Who noticed what.
    #[must_use]
    pub fn findings(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("interpreter", &self.interpreter),
            ("emitter", &self.emitter),
            ("sanitizer", &self.sanitizer),
            ("difference", &self.difference),
        ];
        all.into_iter()
            .filter_map(|(by, what)| Some((by, what.as_deref()?)))
            .collect()
    }
}

/// Where modules are built and run.
pub struct Bench {
    cache: Cache,
    toolchain: Toolchain,
    driver: PathBuf,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Makes the folder and compiles the driver.
    ///
    /// # Errors
    /// No folder, no clang, or no sanitizer runtime.
    pub fn new() -> Result<Bench, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let cache = Cache::at(&folder.path().join("cache")).map_err(|e| e.to_string())?;
        let toolchain = find(&cache).map_err(|e| e.to_string())?;
        let driver = folder.path().join("driver");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/soundness/driver.c");
        let headers = cache.headers().map_err(|e| e.to_string())?;
        let compiled = Command::new(&toolchain.clang)
            .args(["-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"])
            .args(["-rdynamic", "-fsanitize=address,undefined", "-I"])
            .arg(headers.join("fastpath"))
            .arg("-o")
            .args([&driver, &source])
            .arg("-ldl")
            .output()
            .map_err(|e| e.to_string())?;
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        Ok(Bench {
            cache,
            toolchain,
            driver,
            folder,
        })
    }

    /// Runs programs that the checker, so set, admits each by itself, on so many packets each: as
    /// emitted under sanitizers, or, without `sanitize`, as users run it.
    ///
    /// # Errors
    /// The checker refuses them together, or there is no compiler.
    pub fn trial(
        &self,
        bodies: &[Vec<Insn>],
        checker: &Options,
        sanitize: bool,
        random: &mut impl Rng,
        each: usize,
    ) -> Result<Trial, String> {
        let program = super::program(bodies);
        let checked = millrace_check::check(&program, checker)
            .map_err(|r| format!("admitted alone and refused together: {r:?}"))?;
        let packets: Vec<Packet> = (0..each * bodies.len())
            .map(|i| packet(random, i % bodies.len()))
            .collect();
        let mut trial = Trial::default();
        let with_text = |what: String, program: usize| {
            let text = bodies.get(program).map(|b| super::text(b));
            Some(format!("{what}\n{}", text.unwrap_or_default()))
        };
        let mut expected = None;
        match interpret(&program, &packets) {
            Ok((outcomes, entries, fired)) => {
                trial.fired = fired;
                expected = Some((outcomes, entries));
            }
            Err((program, what)) => trial.interpreter = with_text(what, program),
        }
        let text = match alone::emit(&program, &checked, "batch.c") {
            Ok(text) => text,
            Err(what) => {
                trial.emitter = Some(what.to_string());
                return Ok(trial);
            }
        };
        let module = self.compile(&text, sanitize)?;
        let (found, entries) = match self.run(&program, &module, &packets) {
            Ok(both) => both,
            Err((at, said)) => {
                trial.sanitizer = with_text(said, packets.get(at).map_or(0, |p| p.program));
                return Ok(trial);
            }
        };
        let Some((expected, machine_entries)) = expected else {
            return Ok(trial);
        };
        for ((packet, expected), found) in packets.iter().zip(&expected).zip(&found) {
            // A redirect goes to a port that no helper has named here.
            let fate = expected.fate == 4 || expected.fate == found.fate;
            if fate
                && (&expected.bytes, expected.trace, &expected.records)
                    == (&found.bytes, found.trace, &found.records)
            {
                trial.compared += 1;
                continue;
            }
            let what =
                format!("packet {packet:x?}\ninterpreter {expected:x?}\nemitted     {found:x?}");
            trial.difference = with_text(what, packet.program);
            return Ok(trial);
        }
        let both = machine_entries.iter().zip(&entries);
        for (object, (expected, found)) in program.objects.iter().zip(both) {
            if expected != found {
                trial.difference = Some(format!(
                    "`{}` at the end\ninterpreter {expected:x?}\nemitted     {found:x?}",
                    object.name
                ));
            }
        }
        Ok(trial)
    }

    fn compile(&self, text: &str, sanitize: bool) -> Result<PathBuf, String> {
        let folder = self.folder.path();
        let (source, module) = (folder.join("batch.c"), folder.join("batch.so"));
        std::fs::write(&source, text).map_err(|e| e.to_string())?;
        let fastpath = self.cache.headers().map_err(|e| e.to_string())?;
        let fastpath = fastpath.join("fastpath");
        let options = ModuleOptions {
            sanitize,
            strict: false,
        };
        compile_module(&self.toolchain, &source, &fastpath, &module, options)
            .map_err(|e| e.to_string())?;
        Ok(module)
    }

    /// The module in a process of its own. The error says how many packets it came through.
    fn run(
        &self,
        program: &Program,
        module: &Path,
        packets: &[Packet],
    ) -> Result<(Vec<Outcome>, Vec<Entries>), (usize, String)> {
        let none = |e: std::io::Error| (0, e.to_string());
        let mut input = Vec::new();
        let word = |n: usize| (n as u32).to_le_bytes();
        let head = [TRACE.0, packets.len(), BEGIN as usize, STEP as usize];
        input.extend(head.map(word).concat());
        for object in &program.objects {
            let initial = object.initial.as_deref().unwrap_or_default();
            input.extend(word(initial.len()));
            input.extend(initial);
        }
        for p in packets {
            let head = [p.program, p.port as usize, p.headroom, p.bytes.len()];
            input.extend(head.map(word).concat());
            input.extend(&p.bytes);
        }
        let mut child = Command::new(&self.driver)
            .arg(module)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(none)?;
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || {
            // A driver that ended early says itself why.
            stdin.map(|mut s| s.write_all(&input))
        });
        let output = child.wait_with_output().map_err(none)?;
        let _ = writer.join();
        let mut reader = Reader(&output.stdout);
        let outcomes: Vec<Outcome> = (0..packets.len()).map_while(|_| reader.outcome()).collect();
        if !output.status.success() || outcomes.len() < packets.len() {
            let said: String = String::from_utf8_lossy(&output.stderr)
                .lines()
                .take(30)
                .collect::<Vec<_>>()
                .join("\n");
            return Err((outcomes.len(), format!("{}\n{said}", output.status)));
        }
        let entries = program.objects.iter().map(|o| {
            let count = reader.word().unwrap_or(0);
            // The entries of the maps in a map come with both keys.
            let before = match o.nesting {
                Some(Nesting::Shape(holder)) => {
                    program.objects.get(holder.0).map_or(0, |h| h.key_bytes)
                }
                _ => 0,
            };
            let pair = |_| {
                let key = reader.take((before + o.key_bytes) as usize)?.to_vec();
                Some((key, reader.take(o.value_bytes as usize)?.to_vec()))
            };
            gather((0..count).map_while(pair))
        });
        let entries = entries.collect();
        Ok((outcomes, entries))
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let (fate, _out, length) = (self.word()?, self.word()?, self.word()?);
        let bytes = self.take(length as usize)?.to_vec();
        let trace = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let mut records = Vec::new();
        for _ in 0..self.word()? {
            let (object, length) = (self.word()?, self.word()?);
            records.push((object, self.take(length as usize)?.to_vec()));
        }
        Some(Outcome {
            fate,
            bytes,
            trace,
            records,
        })
    }
}

/// Whether the interpreter alone sees a program do what no admitted program may, on so many packets.
pub fn trips(insns: &[Insn], random: &mut impl Rng, packets: usize) -> bool {
    let program = super::program(&[insns.to_vec()]);
    let packets: Vec<Packet> = (0..packets).map(|_| packet(random, 0)).collect();
    interpret(&program, &packets).is_err()
}

fn packet(random: &mut impl Rng, program: usize) -> Packet {
    let length: usize = random.random_range(0..72);
    // Small numbers as often as large ones, so that both sides of comparisons are taken.
    let most: u8 = [1, 9, 70, 255][random.random_range(0..4)];
    let mut bytes: Vec<u8> = (0..length).map(|_| random.random_range(0..=most)).collect();
    // And numbers a little below zero, or the least there are.
    let edge: i64 = match random.random_range(0..4) {
        0 | 1 => -random.random_range(0..64),
        2 => i64::MIN >> (8 * random.random_range(0..8)),
        _ => 0,
    };
    let at = [8, random.random_range(0..64)][random.random_range(0..2)];
    if let Some(word) = bytes.get_mut(at..at + 8).filter(|_| edge != 0) {
        word.copy_from_slice(&edge.to_le_bytes());
    }
    Packet {
        program,
        port: random.random_range(0..2),
        // Without headroom a sanitizer sees the first byte before the packet, too.
        headroom: [0, 24][random.random_range(0..2)],
        bytes,
    }
}

/// What the interpreter makes of the packets, and how many timers fired. The error says which program did what.
fn interpret(
    program: &Program,
    packets: &[Packet],
) -> Result<(Vec<Outcome>, Vec<Entries>, u64), (usize, String)> {
    let mut machine = Machine::exact(program);
    machine.ports(PORTS);
    let (mut outcomes, mut fired) = (Vec::new(), 0);
    for (number, p) in (0..).zip(packets) {
        let now = machine.advance(BEGIN + STEP * number, MOST_STEPS);
        fired += now.map_err(|violation| (p.program, violation.0))?;
        machine.packet(&p.bytes, p.headroom, p.port);
        let verdict = match machine.run(FunctionId(CALLEES + p.program), Role::Xdp, MOST_STEPS) {
            Ok(End::Verdict(verdict)) => verdict,
            Ok(End::OutOfSteps) => return Err((p.program, "does not end".into())),
            Err(violation) => return Err((p.program, violation.0)),
        };
        let trace = machine.value(TRACE).unwrap_or_default();
        outcomes.push(Outcome {
            fate: match verdict as u32 {
                number @ 0..=4 => number,
                _ => 0,
            },
            bytes: machine.packet_bytes().to_vec(),
            trace: trace.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)),
            records: machine
                .take_records()
                .into_iter()
                .map(|(object, bytes)| (object.0 as u32, bytes))
                .collect(),
        });
    }
    // Constants are compiled in: emitted code has no control functions for them, nor any that read arrays of
    // programs.
    let entries = program.objects.iter().enumerate().map(|(i, o)| {
        let id = ObjectId(i);
        match &o.nesting {
            _ if o.read_only || o.kind.name == "prog_array" => Entries::new(),
            Some(Nesting::Holds { .. }) => {
                let number = |map: ObjectId| (map.0 as u32 + 1).to_le_bytes().to_vec();
                let inner = machine.inner_maps(id).into_iter();
                gather(inner.map(|(key, map)| (key, number(map))))
            }
            Some(Nesting::Shape(holder)) => {
                let inner = machine.inner_maps(*holder).into_iter();
                gather(inner.flat_map(|(outer, map)| {
                    let entries = machine.entries(map).into_iter();
                    entries.map(move |(key, value)| ([&outer[..], &key[..]].concat(), value))
                }))
            }
            None if ["queue", "stack"].contains(&o.kind.name) => {
                let held = machine.held(id).into_iter();
                gather(held.map(|value| (Vec::new(), value)))
            }
            // Addresses without the lengths before them.
            None if o.kind.name == "lpm" => {
                let entries = machine.entries(id).into_iter();
                gather(entries.map(|(key, value)| (key[4..].to_vec(), value)))
            }
            None => gather(machine.entries(id).into_iter()),
        }
    });
    Ok((outcomes, entries.collect(), fired))
}
