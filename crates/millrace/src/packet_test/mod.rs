//! Packet tests (docs/packet-tests.md): a case against a fresh copy of a function.
//!
//! Packets that follow each other without a question between them go through the function in one
//! burst of at most the given size, as they would in a run. A case begins at a fixed moment in 2001; timers count
//! from there and fire before the first packet or question at or after their moment.

mod expect;
mod hexdiff;

use std::collections::BTreeMap;

use millrace_dataplane::module::Entry;
use millrace_dataplane::module::abi::LATEST;
use millrace_dataplane::packet::{Arrival, Burst};
use millrace_dataplane::runner::Timers;
use millrace_dataplane::{Config, Instance};
use millrace_traffic::language::{self, Action, Case, Expectation, Port, Step};

use crate::Function;

/// The clock when a case begins, ns since the epoch: some moment in 2001, because a function that
/// takes time 0 for "never" is right everywhere but in 1970.
const START: u64 = 1_000_000_000_000_000_000;

/// Where a case failed, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// the line in the case's file; 0 when it is the whole file's
    pub line: usize,
    /// one line, then details on more lines
    pub message: String,
}

impl Failed {
    /// A failure at a line.
    pub fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

/// Runs a case in bursts of at most `burst` packets, from a state that holds these entries.
///
/// # Errors
/// The first thing that is not as the case says.
pub fn execute(
    function: &Function,
    case: &Case,
    entries: &[Entry],
    burst: usize,
) -> Result<(), Failed> {
    let mut bench = Bench::new(function, case, entries, burst)?;
    for step in case.steps() {
        let step = step.map_err(|e| Failed::new(e.line, e.message))?;
        bench.step(step)?;
    }
    bench.flush()
}

/// The names of the ports: the function's, or as many as the case says, two at least.
fn ports(function: &Function, case: &Case) -> Result<Vec<String>, Failed> {
    match (case.ports(), function.ports.is_empty()) {
        (Some(ports), false) => Err(Failed::new(
            ports.line,
            format!(
                "the function names its ports: {}",
                function.ports.join(", ")
            ),
        )),
        (None, false) => Ok(function.ports.clone()),
        (None, true) => Ok(vec!["LAN".to_owned(), "WAN".to_owned()]),
        (Some(ports), true) => Ok((0..ports.count).map(|n| n.to_string()).collect()),
    }
}

/// A key or value as in a file of entries: JSON where it begins with a bracket, else words.
fn written(what: &str, text: &str) -> Result<serde_json::Value, String> {
    if text.starts_with(['{', '[']) {
        return serde_json::from_str(text)
            .map_err(|e| format!("the {what} {text} is not JSON: {e}"));
    }
    Ok(text.into())
}

/// A packet on its way, and what must become of it.
struct Pending {
    line: usize,
    round: Option<u64>,
    bytes: Vec<u8>,
    expectation: Option<Expectation>,
}

struct Bench<'a> {
    function: &'a Function,
    ports: Vec<String>,
    instance: Instance,
    timers: Timers,
    burst: Burst,
    pending: Vec<Pending>,
    records: BTreeMap<String, u64>,
    /// of classifiers: the rules so far
    rules: BTreeMap<usize, String>,
    number: u64,
    /// `ON_START` has run: at the first statement that sets no entry, so that it finds those set before, as it
    /// finds those of `--map` in a run
    started: bool,
}

impl<'a> Bench<'a> {
    fn new(
        function: &'a Function,
        case: &Case,
        entries: &[Entry],
        burst: usize,
    ) -> Result<Self, Failed> {
        let mut initial = function.initial.clone();
        if !case.settings().is_empty() {
            let program = function.program.as_ref();
            let mut program = program.cloned().ok_or_else(|| {
                Failed::new(
                    0,
                    "a module alone has no parameters to set; test its source",
                )
            })?;
            for setting in case.settings() {
                let set = program.set_param(&setting.name, &setting.value);
                set.map_err(|e| Failed::new(setting.line, e.to_string()))?;
            }
            initial = program.objects.into_iter().map(|o| o.initial).collect();
        }
        let config = Config {
            hash_seed: 1,
            time: START,
            initial,
            ..function.state(1, entries.to_vec())
        };
        let instance = Instance::create(function.module.clone(), &config);
        let instance = instance.map_err(|e| Failed::new(0, e.to_string()))?;
        let ports = ports(function, case)?;
        let burst = Burst::new(burst, ports.len() as u32, function.layout);
        Ok(Self {
            timers: Timers::new(function.module.timers(), START),
            instance,
            burst,
            ports,
            function,
            pending: Vec::new(),
            records: BTreeMap::new(),
            rules: BTreeMap::new(),
            number: 0,
            started: false,
        })
    }

    fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.instance.start(START);
        }
    }

    fn step(&mut self, step: Step) -> Result<(), Failed> {
        let now = START.saturating_add(step.time_ns).min(LATEST);
        if step.time_ns > 0 || !matches!(step.action, Action::Map { .. }) {
            self.start();
        }
        if self.timers.due(now) {
            self.flush()?;
            for (moment, timer) in self.timers.take(now) {
                self.instance.fire(timer, moment);
            }
        }
        match step.action {
            Action::Packet {
                port,
                bytes,
                expectation,
            } => {
                let port = self.port(&port).map_err(|m| Failed::new(step.line, m))?;
                let arrival = Arrival {
                    number: self.number,
                    port,
                    time: now,
                    stamp: now,
                    wire: bytes.len() as u32,
                    home: 0,
                    place: 0,
                };
                if !self.burst.push(&bytes, arrival) {
                    let n = bytes.len();
                    return Err(Failed::new(
                        step.line,
                        format!("a frame of {n} bytes is longer than a function takes"),
                    ));
                }
                self.number += 1;
                self.pending.push(Pending {
                    line: step.line,
                    round: step.round,
                    bytes,
                    expectation,
                });
                if self.burst.is_full() {
                    self.flush()
                } else {
                    Ok(())
                }
            }
            Action::Map { object, key, value } => {
                self.flush()?;
                self.set(&object, &key, &value, now)
                    .map_err(|m| Failed::new(step.line, m))
            }
            Action::State { object, count } => {
                self.flush()?;
                self.state(&object, count, now)
                    .map_err(|m| Failed::new(step.line, m))
            }
            Action::Records { object, count } => {
                self.flush()?;
                self.check_records(&object, count)
                    .map_err(|m| Failed::new(step.line, m))
            }
        }
    }

    /// Runs what is pending, and compares.
    fn flush(&mut self) -> Result<(), Failed> {
        if !self.burst.is_empty() {
            self.instance
                .burst(self.function.entry, true, &mut self.burst);
        }
        let mut result = Ok(());
        for (index, pending) in self.pending.iter().enumerate() {
            let Some(outcome) = self.burst.outcome(index) else {
                continue;
            };
            let names = expect::Names {
                ports: &self.ports,
                reasons: &self.function.reasons,
            };
            let compared = expect::compare(
                &names,
                pending.expectation.as_ref().map(|e| &e.fate),
                &pending.bytes,
                &outcome,
            );
            if let Err(message) = compared {
                let line = pending
                    .expectation
                    .as_ref()
                    .map_or(pending.line, |e| e.line);
                let round = pending
                    .round
                    .map_or(String::new(), |r| format!(" (round {r})"));
                let packet = language::summarise(&pending.bytes);
                let (headline, rest) = message.split_once('\n').unwrap_or((&message, ""));
                let message = format!("{headline}{round}\n  packet    {packet}\n{rest}");
                result = Err(Failed::new(line, message.trim_end()));
                break;
            }
        }
        self.burst.clear();
        self.pending.clear();
        let objects = self.function.module.objects();
        let records = &mut self.records;
        self.instance.drain(|record| {
            if let Some(object) = objects.get(record.object) {
                *records.entry(object.name.clone()).or_default() += 1;
            }
        });
        result
    }

    fn set(&mut self, name: &str, key: &str, value: &str, now: u64) -> Result<(), String> {
        let exposed = &self.function.exposed;
        if let Ok(object) = exposed.index(name)
            && exposed.takes_rules(object)
        {
            return self.rule(object, key, value);
        }
        let object = exposed.settable(name).map_err(|t| {
            let help = t.help.unwrap_or_default();
            format!("`{name}`: {}; {help}", t.what)
        })?;
        let (key, value) = (written("key", key)?, written("value", value)?);
        for entry in exposed.entries(object, Some(&key), &value)? {
            self.instance
                .set(entry.object, &entry.key, &entry.value, now)
                .map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// A rule behind those that there are.
    fn rule(&mut self, object: usize, fields: &str, class: &str) -> Result<(), String> {
        let rules = self.rules.entry(object).or_default();
        rules.push_str(&format!("{fields} class {class}\n"));
        let made = self.function.exposed.rules(object, rules.as_bytes());
        let made = made.map_err(|t| match t.help {
            Some(help) => format!("{}; {help}", t.what),
            None => t.what,
        })?;
        let set = self.instance.set_rules(object, Some(made));
        set.map(drop).map_err(|e| e.to_string())
    }

    fn state(&mut self, name: &str, want: u64, now: u64) -> Result<(), String> {
        let index = self.object(name)?;
        match self.instance.count(index, now) {
            Some(got) if got == want => Ok(()),
            Some(got) => Err(format!(
                "`{name}` holds {got} live entries, expected {want}"
            )),
            None => Err(format!("the entries of `{name}` cannot be counted")),
        }
    }

    fn check_records(&mut self, name: &str, want: u64) -> Result<(), String> {
        let index = self.object(name)?;
        if !self
            .function
            .module
            .objects()
            .get(index)
            .is_some_and(|o| o.records)
        {
            return Err(format!("`{name}` is not a ring buffer"));
        }
        let got = self.records.get(name).copied().unwrap_or(0);
        if got == want {
            return Ok(());
        }
        Err(format!(
            "{got} records have come out of `{name}`, expected {want}"
        ))
    }

    fn object(&self, name: &str) -> Result<usize, String> {
        let objects = self.function.module.objects();
        objects.iter().position(|o| o.name == name).ok_or_else(|| {
            let names: Vec<_> = objects.iter().map(|o| o.name.as_str()).collect();
            format!(
                "there is no object `{name}`; there are {}",
                names.join(", ")
            )
        })
    }

    fn port(&self, port: &Port) -> Result<u32, String> {
        expect::port(&self.ports, port)
    }
}
