//! Modules on several threads, and what they did replayed by one.

use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_emit::{Sharing, Test};
use millrace_object::Program;
use millrace_object::state::lpm;
use millrace_place::{Held, Placement};

use super::drive::{Input, Output};
use super::{Bench, Outcome, facts};

/// The event is no packet: all workers wait for each other.
pub const PHASE: u32 = u32::MAX;
/// The event is no packet: this and the timer's index.
pub const TIMER: u32 = 1 << 31;

/// What a worker is given to do.
#[derive(Clone, Debug)]
pub struct Event {
    pub worker: u32,
    pub program: u32,
    pub port: u32,
    pub time: u64,
    pub number: u64,
    pub bytes: Vec<u8>,
}

/// What it made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    pub commit: u64,
    /// that the program had for it
    pub time: u64,
    pub outcome: Outcome,
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// What all of them made of it.
#[derive(Clone, Debug)]
pub struct Result {
    pub done: Vec<Done>,
    /// by object: entries, sorted
    pub entries: Vec<Vec<Entry>>,
    /// hundredths of a time stamp tick a packet, all workers together
    pub ticks: u64,
}

/// How a module and its host are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Build {
    Plain,
    /// not optimised: of what others are held against
    Reference,
    /// AddressSanitizer and UndefinedBehaviorSanitizer
    Address,
    /// ThreadSanitizer
    Thread,
}

/// How events are fed.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub workers: u32,
    pub plain: bool,
    pub burst: u32,
    /// how often each worker goes through its events
    pub rounds: u32,
}

/// How many packets were writers: their commit numbers are even.
pub fn writers((result, events): &(Result, Vec<Event>)) -> usize {
    let packets = result.done.iter().zip(events);
    packets
        .filter(|(d, e)| e.program < TIMER && d.commit % 2 == 0)
        .count()
}

/// The objects of these names are shared, in a module whose threads switch where a seed says so.
pub fn sharing(program: &Program, shared: &[&str]) -> Sharing {
    for name in shared {
        let there = program.objects.iter().any(|o| o.name == *name);
        assert!(there, "there is no object {name}");
    }
    let held = |name: &str| match shared.contains(&name) {
        true => Held::Locked,
        false => Held::Copied,
    };
    let held = program.objects.iter().map(|o| held(&o.name)).collect();
    Sharing {
        placement: Placement::even(&program.objects, 1, held),
        test: Some(Test::default()),
        profile: false,
    }
}

/// All that some packet writes.
pub fn written(program: &Program) -> Vec<&str> {
    let written = program.objects.iter().filter(|o| !o.read_only);
    written.map(|o| o.name.as_str()).collect()
}

impl Bench {
    pub fn shared_text(&self, program: &Program, sharing: &Sharing) -> String {
        millrace_emit::emit(program, &facts(program), sharing, "module.c").unwrap()
    }

    pub fn clang(&self, build: Build, flags: &[&str], source: &Path, output: &Path) {
        let fastpath = self.cache.headers().unwrap().join("fastpath");
        let mut command = Command::new(&self.toolchain.clang);
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]);
        command.args([
            "-Wno-unknown-warning-option",
            "-Wno-invalid-feature-combination",
        ]);
        command.args([
            "-fno-strict-aliasing",
            "-fno-strict-overflow",
            "-gline-tables-only",
        ]);
        command.args(match build {
            Build::Plain => &["-O3", "-march=native"][..],
            Build::Reference => &["-O0", "-march=native"],
            Build::Address => &[
                "-O0",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=undefined",
            ],
            Build::Thread => &["-O0", "-fsanitize=thread"],
        });
        command.args(flags).arg("-I").arg(fastpath);
        let output = command.arg("-o").arg(output).arg(source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", source.display());
    }

    /// Compiles emitted C as a module.
    pub fn build(&self, name: &str, text: &str, build: Build) -> PathBuf {
        let source = self.path(&format!("{name}-{build:?}.c"));
        let module = self.path(&format!("{name}-{build:?}.so"));
        std::fs::write(&source, text).unwrap();
        self.clang(
            build,
            &["-fPIC", "-shared", "-fvisibility=hidden"],
            &source,
            &module,
        );
        module
    }

    /// The module of a worker that shares nothing.
    pub fn alone(&self, name: &str, program: &Program, build: Build) -> PathBuf {
        let text = millrace_emit::alone::emit(program, &facts(program), "module.c").unwrap();
        self.build(name, &text, build)
    }

    /// What several workers make of events. The error is what a sanitizer said, or how it differs from what one makes of them in the
    /// order of commits.
    pub fn replayed(
        &self,
        program: &Program,
        (module, alone): (&Path, &Path),
        build: Build,
        way: Way,
        events: &[Event],
    ) -> std::result::Result<Result, String> {
        let result = self.work(program, module, build, way, events)?;
        let replayed = self.replay(program, alone, events, &result);
        match difference(program, &result, &replayed) {
            Some(what) => Err(what),
            None => Ok(result),
        }
    }

    /// Feeds events to a module in a process of its own; the error is what a sanitizer said.
    pub fn work(
        &self,
        program: &Program,
        module: &Path,
        build: Build,
        way: Way,
        events: &[Event],
    ) -> std::result::Result<Result, String> {
        let host = self.path(&format!("workers-{build:?}"));
        if !host.exists() {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/workers.c");
            self.clang(build, &["-rdynamic", "-pthread"], &source, &host);
        }
        let mut input = Input::of(&[
            way.workers,
            u32::from(way.plain),
            way.burst,
            events.len() as u32,
            way.rounds,
        ]);
        input.objects(program, None);
        for e in events {
            for word in [e.worker, e.program, e.port, e.bytes.len() as u32] {
                input.word(word);
            }
            input.long(e.time);
            input.long(e.number);
            input.bytes(&e.bytes);
        }
        let output = input.feed(Command::new(host).arg(module))?;
        Ok(parse(&output, events.len(), program))
    }

    /// What one worker makes of the same, in the order in which several committed it.
    pub fn replay(
        &self,
        program: &Program,
        alone: &Path,
        events: &[Event],
        result: &Result,
    ) -> Result {
        let mut order: Vec<usize> = (0..events.len())
            .filter(|i| events[*i].program != PHASE)
            .collect();
        order.sort_by_key(|i| {
            let done = &result.done[*i];
            (done.commit, done.time, events[*i].number)
        });
        let times = order.iter().map(|i| result.done[*i].time);
        assert!(times.is_sorted(), "time goes back in the order of commits");
        for i in &order {
            assert!(
                result.done[*i].time >= events[*i].time,
                "event {i} has a time before it came"
            );
        }
        let sequence: Vec<Event> = order
            .iter()
            .map(|i| Event {
                worker: 0,
                time: result.done[*i].time,
                ..events[*i].clone()
            })
            .collect();
        let way = Way {
            workers: 1,
            plain: true,
            burst: 1,
            rounds: 1,
        };
        let mut replayed = self
            .work(program, alone, Build::Plain, way, &sequence)
            .unwrap();
        let mut done = result.done.clone();
        for (at, made) in order.iter().zip(replayed.done) {
            done[*at] = Done {
                commit: result.done[*at].commit,
                time: result.done[*at].time,
                ..made
            };
        }
        replayed.done = done;
        replayed
    }
}

/// The first difference, if there is one. Counts that each worker keeps of its own are added up.
pub fn difference(program: &Program, a: &Result, b: &Result) -> Option<String> {
    for (n, (x, y)) in a.done.iter().zip(&b.done).enumerate() {
        if x != y {
            return Some(format!("event {n}: {x:?} in parallel, {y:?} replayed"));
        }
    }
    let entries = a.entries.iter().zip(&b.entries).zip(&program.objects);
    for ((x, y), object) in entries {
        let (x, y) = match object.kind.c {
            "vector" | "array" => (summed(x), summed(y)),
            _ => (x.clone(), y.clone()),
        };
        if x != y {
            return Some(format!(
                "{}: {x:?} in parallel, {y:?} replayed",
                object.name
            ));
        }
    }
    None
}

/// One entry a key, values of 8 bytes added up.
fn summed(entries: &[Entry]) -> Vec<Entry> {
    let mut out: Vec<Entry> = Vec::new();
    for (key, value) in entries {
        let number = |v: &[u8]| v.try_into().map(u64::from_le_bytes).ok();
        match out.last_mut() {
            Some((last, sum)) if last == key => match (number(sum), number(value)) {
                (Some(a), Some(b)) => *sum = (a + b).to_le_bytes().to_vec(),
                _ => out.push((key.clone(), value.clone())),
            },
            _ => out.push((key.clone(), value.clone())),
        }
    }
    out
}

fn parse(bytes: &[u8], events: usize, program: &Program) -> Result {
    let mut output = Output(bytes);
    let done = (0..events).map(|_| Done {
        commit: output.long(),
        time: output.long(),
        outcome: output.outcome(),
    });
    let done = done.collect();
    let mut entries = Vec::new();
    for object in &program.objects {
        let count = output.word();
        let mut part = |bytes: u32| output.take(bytes as usize).to_vec();
        // The length of a handler's prefix stands before it.
        let length = if *object.kind == lpm::KIND { 4 } else { 0 };
        let key = length + object.key_bytes;
        let entry = |_| (part(key), part(object.value_bytes));
        let mut all: Vec<_> = (0..count).map(entry).collect();
        all.sort();
        // What nobody writes each worker has.
        if object.read_only {
            all.clear();
        }
        entries.push(all);
    }
    Result {
        done,
        entries,
        ticks: output.long(),
    }
}
