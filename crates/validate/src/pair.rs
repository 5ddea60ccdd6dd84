//! The two executions: the emitted module, and the interpreter, which says what it does to state on the way.

use std::sync::Arc;

use millrace_classify::{Budget, Classifier, Key, Rules};
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Fate, HEADROOM, Layout, TAILROOM};
use millrace_dataplane::runner::hex;
use millrace_object::helper::FOR_EACH_MAP_ELEM;
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, ObjectId, Program, Role};
use millrace_object::state::{allocator, array, classifier, global, hash, lpm, map, vector};
use millrace_reference::{End, Log, Machine, Target, index_key};

use crate::trial::{Case, Seed, Trial, takes_packets};

/// More steps than an admitted program executes.
const STEPS: u64 = 4_000_000;
/// The least that a record takes of a ring buffer, bytes.
const RECORD: u64 = 16;
/// Objects of more entries are compared only where something happened to them.
const LISTED: u64 = 1 << 17;

/// The execution, when both agreed.
#[derive(Clone, Debug)]
pub struct Happened {
    /// the packet's fate; aborted for an entry that takes none
    pub fate: Fate,
    /// the frame afterwards
    pub packet: Vec<u8>,
    /// what happened to state
    pub log: Log,
    /// how many entries each object that evicts had, and has
    pub counts: Vec<(ObjectId, u64, u64)>,
}

/// Both, in the same state.
pub struct Pair<'a> {
    program: &'a Program,
    machine: Machine<'a>,
    instance: Instance,
    packets: u64,
    now: u64,
    /// the ring that has been filled
    filled: Option<usize>,
    /// maps whose entries the program may visit
    visited: Vec<ObjectId>,
}

/// The maps whose entries a program may visit, one after another.
fn visited(program: &Program) -> Vec<ObjectId> {
    let visit =
        |insn: &Insn| matches!(insn, Insn::Call { helper } if *helper == FOR_EACH_MAP_ELEM.number);
    let mut insns = program.functions.iter().flat_map(|f| &f.insns);
    if !insns.any(visit) {
        return Vec::new();
    }
    let objects = program.objects.iter().enumerate();
    let tables = objects.filter(|(_, o)| o.kind.is_table() && !o.is_shape());
    let tables = tables.filter(|(_, o)| o.kind.does(&FOR_EACH_MAP_ELEM).is_some());
    tables.map(|(i, _)| ObjectId(i)).collect()
}

impl<'a> Pair<'a> {
    /// Empty state. The program's contents are those that it starts with.
    ///
    /// # Errors
    /// The module's state cannot be made.
    pub fn new(program: &'a Program, module: &Arc<Module>, now: u64) -> Result<Self, String> {
        let config = Config {
            hash_seed: 1,
            sketch_seed: 0,
            time: now,
            initial: program.objects.iter().map(|o| o.initial.clone()).collect(),
            entries: Vec::new(),
            homes: None,
            resumed: false,
        };
        let instance = Instance::create(module.clone(), &config).map_err(|e| e.to_string())?;
        let mut pair = Self {
            program,
            machine: Machine::exact(program),
            instance,
            packets: 0,
            now,
            filled: None,
            visited: visited(program),
        };
        pair.advance(now)?;
        Ok(pair)
    }

    fn advance(&mut self, now: u64) -> Result<(), String> {
        self.now = now;
        let fired = self.machine.advance(now, STEPS).map_err(|v| v.0)?;
        self.instance.alarm(now);
        // What expires does so at its moment, in both executions; no packet's path is of that.
        let expires = self.program.objects.iter().any(|o| o.expiry.is_some());
        match fired {
            0 => Ok(()),
            _ if expires => Ok(()),
            n => Err(format!(
                "{n} timers in values of maps fired, which no path is of"
            )),
        }
    }

    /// Puts something into the state of both.
    ///
    /// # Errors
    /// The object does not take it.
    pub fn seed(&mut self, seed: &Seed) -> Result<(), String> {
        match seed {
            Seed::Entry { object, key, value } => {
                let set = self.instance.set(object.0, key, value, self.now);
                set.map_err(|e| e.to_string())?;
                if !self.machine.set(*object, key, value) {
                    return Err("the interpreter does not take the entry".into());
                }
            }
            Seed::Full { object, but } => {
                let Some(o) = self.program.objects.get(object.0) else {
                    return Err("there is no such object".into());
                };
                let mut next = o.first;
                let mut added = 0;
                let value = vec![0; o.value_bytes as usize];
                let mut missing = o.capacity.saturating_sub(self.machine.how_many(*object));
                while missing > 0 {
                    let mut key = next.to_le_bytes().to_vec();
                    key.resize(o.key_bytes as usize, 0);
                    next += 1;
                    let leased = o.kind.leases() && self.machine.peek(*object, &key).is_some();
                    if but.contains(&key) || leased {
                        continue;
                    }
                    let set = self.instance.set(object.0, &key, &value, self.now);
                    set.map_err(|e| e.to_string())?;
                    missing -= 1;
                    // Which prefix an address finds depends on all that are there.
                    match *o.kind == lpm::KIND {
                        true => drop(self.machine.set(*object, &key, &value)),
                        false => added += 1,
                    }
                }
                match o.kind.is_table() && *o.kind != lpm::KIND {
                    true => self.machine.crowd_under(*object, added, o.first..next, but),
                    false => self.machine.crowd(*object, added),
                }
            }
            Seed::Next { object, number } => {
                let Some(o) = self.program.objects.get(object.0) else {
                    return Err("there is no such object".into());
                };
                // Numbers that were never leased come first, in ascending order.
                let below = number.checked_sub(1).filter(|n| *n >= o.first);
                let key = below.and_then(|n| index_key(n, o.key_bytes));
                let Some(key) = key.filter(|key| self.machine.peek(*object, key).is_none()) else {
                    return Ok(());
                };
                let value = vec![0; o.value_bytes as usize];
                let set = self.instance.set(object.0, &key, &value, self.now);
                let set = set.and_then(|()| self.instance.remove(object.0, &key, self.now));
                set.map_err(|e| e.to_string())?;
                self.machine.set(*object, &key, &value);
                self.machine.free(*object, &key);
            }
            Seed::Estimate { object, key, sum } if self.classifies(*object) => {
                self.class(*object, key, *sum)?;
            }
            Seed::Member {
                object,
                member,
                value,
            } => self.member(*object, *member, *value)?,
            Seed::Estimate { object, key, sum } => {
                let set = self
                    .instance
                    .set(object.0, key, &sum.to_le_bytes(), self.now);
                set.map_err(|e| e.to_string())?;
                self.machine.estimate(*object, key, *sum);
            }
        }
        Ok(())
    }

    fn classifies(&self, object: ObjectId) -> bool {
        let object = self.program.objects.get(object.0);
        object.is_some_and(|o| o.kind.holds_rules())
    }

    /// Sets one of the numbers that packets add to.
    fn member(&mut self, object: ObjectId, member: u64, value: u64) -> Result<(), String> {
        let bytes = self.program.objects.get(object.0).map(|o| o.key_bytes);
        let key = vec![0; bytes.unwrap_or(4) as usize];
        let found = self.instance.get(object.0, &key, self.now);
        let mut all = found.map_err(|e| e.to_string())?.unwrap_or_default();
        let at = usize::try_from(member)
            .unwrap_or(usize::MAX)
            .saturating_mul(8);
        let place = all.get_mut(at..at.saturating_add(8));
        place
            .ok_or("there is no such member")?
            .copy_from_slice(&value.to_le_bytes());
        let set = self.instance.set(object.0, &key, &all, self.now);
        set.map_err(|e| e.to_string())?;
        self.machine.set(object, &key, &all);
        Ok(())
    }

    /// Adds a rule of this very key and class.
    fn class(&mut self, object: ObjectId, key: &[u8], class: u32) -> Result<(), String> {
        let Some(o) = self.program.objects.get(object.0) else {
            return Err("there is no such object".into());
        };
        let rules = match self.instance.rules(object.0) {
            Some(made) => Ok(made.rules().clone()),
            None => Key::whole(o.key_bytes).map(|key| {
                let room = usize::try_from(classifier::room(o)).unwrap_or(usize::MAX);
                Rules::new(key, classifier::classes(o), room)
            }),
        };
        let mut rules = rules.map_err(|e| e.to_string())?;
        let words: Vec<_> = rules.key().split(key).iter().map(|w| (*w, *w)).collect();
        rules
            .push_box(&words, class, 0)
            .map_err(|e| e.to_string())?;
        self.machine.set_rules(object, rules.clone());
        let made = Classifier::build(rules, &Budget::default());
        let set = self.instance.set_rules(object.0, Some(Arc::new(made)));
        set.map(drop).map_err(|e| e.to_string())
    }

    /// Fills a ring buffer with what this case leaves in it, as often as it takes; all else that it leaves is
    /// taken away again.
    ///
    /// # Errors
    /// The case cannot be run.
    pub fn fill(&mut self, ring: ObjectId, by: &Case) -> Result<(), String> {
        let bytes = self.program.objects.get(ring.0).map_or(0, |o| o.capacity);
        for _ in 0..=bytes / RECORD {
            for seed in &by.seeds {
                if let Seed::Entry { object, key, value } = seed {
                    let set = self.instance.set(object.0, key, value, self.now);
                    set.map_err(|e| e.to_string())?;
                }
            }
            self.emitted(&by.trial)?;
        }
        for i in 0..self.program.objects.len() {
            // What has no entries, or none that can go, is as it was.
            for (key, _) in self
                .instance
                .entries(i, usize::MAX, self.now)
                .unwrap_or_default()
            {
                let _ = self.instance.remove(i, &key, self.now);
            }
        }
        self.machine.crowd(ring, 1);
        self.filled = Some(ring.0);
        Ok(())
    }

    /// Sends packets that differ in these bytes through emitted code until an object is full, and gives the
    /// interpreter the state that this leaves. How many were sent.
    ///
    /// # Errors
    /// The object did not become full.
    pub fn flood(
        &mut self,
        object: ObjectId,
        trial: &Trial,
        digits: &[usize],
    ) -> Result<u64, String> {
        let capacity = self.program.objects.get(object.0).map_or(0, |o| o.capacity);
        let mut trial = trial.clone();
        // Some numbers may be no keys: addresses that are nobody's, or of groups.
        let most = 2 * capacity + 2;
        for n in 0..most {
            for (i, at) in digits.iter().rev().enumerate() {
                if let Some(byte) = trial.packet.get_mut(*at) {
                    *byte = (n >> (8 * i)) as u8;
                }
            }
            crate::packets::checksum(&mut trial.packet);
            self.emitted(&trial)?;
            let checked = n % 1024 == 1023 || n + 1 == most;
            if checked && self.instance.count(object.0, self.now) == Some(capacity) {
                self.instance.drain(|_| {});
                self.copy()?;
                return Ok(n + 1);
            }
        }
        Err("it did not become full".into())
    }

    /// Gives the interpreter the entries that are in emitted code, and what packets have counted beside them.
    fn copy(&mut self) -> Result<(), String> {
        for (i, o) in self.program.objects.iter().enumerate() {
            if *o.kind == global::KIND {
                if let Ok(Some(value)) = self.instance.get(i, &[], self.now) {
                    self.machine.set(ObjectId(i), &[], &value);
                }
                continue;
            }
            let tables = [&map::KIND, &hash::KIND, &allocator::KIND];
            let elements = [&array::KIND, &vector::KIND];
            if !tables.contains(&o.kind) && !elements.contains(&o.kind) {
                continue;
            }
            let entries = self.instance.entries(i, usize::MAX, self.now);
            for (key, value) in entries.map_err(|e| e.to_string())? {
                self.machine.set(ObjectId(i), &key, &value);
            }
        }
        Ok(())
    }

    /// Runs both.
    ///
    /// # Errors
    /// Disagreement of the two, or why one of them cannot run it. The state is then in doubt.
    pub fn run(&mut self, trial: &Trial) -> Result<Happened, String> {
        let Some(entry) = self.program.entries.get(trial.entry) else {
            return Err("there is no such entry".into());
        };
        self.advance(trial.time)?;
        self.packets += 1;
        self.machine.ports(trial.ports);
        self.machine.packet(&trial.packet, HEADROOM, trial.port);
        self.machine.tailroom(TAILROOM);
        self.machine.record();
        self.visits()?;
        let before = self.evicting();
        let end = self.machine.run(entry.function, entry.role, STEPS);
        let log = self.machine.take_log();
        let verdict = match end.map_err(|v| format!("the interpreter: {}", v.0))? {
            End::Verdict(verdict) => verdict,
            End::OutOfSteps => return Err("the interpreter: it does not end".into()),
        };
        let (fate, packet) = if takes_packets(entry.role) {
            let target = self.machine.target();
            let fate = fate(self.program.dialect, verdict as u32, trial.port, target);
            let packet = self.machine.packet_bytes().to_vec();
            let (emitted, bytes) = self.emitted(trial)?;
            if emitted != fate {
                return Err(format!(
                    "{fate:?} by the interpreter, {emitted:?} in emitted code"
                ));
            }
            if bytes != packet {
                return Err(
                    "the packet's bytes differ in emitted code and in the interpreter".into(),
                );
            }
            (fate, packet)
        } else {
            self.handler(trial.entry, entry.role);
            (Fate::Aborted, Vec::new())
        };
        self.records()?;
        for (object, key) in log.before.keys() {
            let by_machine = self.machine.peek(*object, key);
            if let Ok(emitted) = self.instance.get(object.0, key, self.now)
                && emitted != by_machine
            {
                return Err(format!(
                    "{}[{}] is {} by the interpreter, {} in emitted code",
                    self.name(*object),
                    hex(key),
                    shown(by_machine.as_deref()),
                    shown(emitted.as_deref())
                ));
            }
        }
        let after = self.evicting().into_iter();
        let counts = before.into_iter().zip(after);
        Ok(Happened {
            fate,
            packet,
            log,
            counts: counts.map(|(b, a)| (b.0, b.1, a.1)).collect(),
        })
    }

    /// Lets the interpreter visit entries in the order of their places in emitted code.
    fn visits(&mut self) -> Result<(), String> {
        for id in &self.visited {
            let entries = self.instance.entries(id.0, usize::MAX, self.now);
            let entries = entries.map_err(|e| e.to_string())?;
            let keys = entries.into_iter().map(|(key, _)| key).collect();
            self.machine.visited_in(*id, keys);
        }
        Ok(())
    }

    /// How many entries each object has that evicts.
    fn evicting(&self) -> Vec<(ObjectId, u64)> {
        let objects = self.program.objects.iter().enumerate();
        let evicts = objects.filter(|(_, o)| o.kind.evicts && !o.is_shape());
        let ids = evicts.map(|(i, _)| ObjectId(i));
        ids.map(|id| (id, self.machine.how_many(id))).collect()
    }

    /// The host takes all records; both must have left the same.
    fn records(&mut self) -> Result<(), String> {
        let mut emitted = Vec::new();
        self.instance.drain(|r| emitted.push((r.object, r.bytes)));
        let mine = self.machine.take_records().into_iter();
        let mut mine: Vec<_> = mine.map(|(object, bytes)| (object.0, bytes)).collect();
        // The module is drained object by object.
        mine.sort_by_key(|r| r.0);
        // What filled a ring is not the packet's, for which there was no room.
        let filled = self.filled.take();
        emitted.retain(|r| filled != Some(r.0));
        if emitted != mine {
            return Err(format!(
                "{} records by the interpreter, {} in emitted code, or other bytes in them",
                mine.len(),
                emitted.len()
            ));
        }
        Ok(())
    }

    fn emitted(&mut self, trial: &Trial) -> Result<(Fate, Vec<u8>), String> {
        let entries = self.program.entries.iter().take(trial.entry);
        let program = entries.filter(|e| takes_packets(e.role)).count();
        let mut burst = Burst::new(1, trial.ports, Layout::Pooled);
        let arrival = Arrival {
            // The interpreter counts from 0.
            number: self.packets.saturating_sub(1),
            port: trial.port,
            time: trial.time,
            stamp: trial.time,
            wire: trial.packet.len() as u32,
            home: 0,
            place: 0,
        };
        if !burst.push(&trial.packet, arrival) {
            return Err(format!("{} bytes are too long", trial.packet.len()));
        }
        // Every other packet without the passes that prefetch.
        self.instance
            .burst(program, self.packets.is_multiple_of(2), &mut burst);
        let outcome = burst.outcome(0).ok_or("the packet is missing")?;
        Ok((outcome.fate, outcome.bytes.to_vec()))
    }

    fn handler(&mut self, at: usize, role: Role) {
        match role {
            Role::OnStart => self.instance.start(self.now),
            Role::OnStop => self.instance.stop(self.now),
            _ => {
                let before = self.program.entries.iter().take(at);
                let timer = before
                    .filter(|e| matches!(e.role, Role::Every { .. }))
                    .count();
                self.instance.fire(timer, self.now);
            }
        }
    }

    /// The value of an entry as it is now.
    #[must_use]
    pub fn value(&self, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
        self.machine.peek(object, key)
    }

    /// All values of an object.
    #[must_use]
    pub fn values(&self, object: ObjectId) -> Vec<Vec<u8>> {
        self.machine.entries(object).into_values().collect()
    }

    /// Whether no further entry fits into an object.
    #[must_use]
    pub fn is_full(&self, object: ObjectId) -> bool {
        self.machine.is_full(object)
    }

    /// Compares all entries of both.
    ///
    /// # Errors
    /// A difference.
    pub fn same_state(&mut self) -> Result<(), String> {
        for (i, o) in self.program.objects.iter().enumerate() {
            let counted = o.kind.is_table() || o.kind.leases();
            if !counted || o.capacity > LISTED {
                continue;
            }
            let mine = self.machine.how_many(ObjectId(i));
            let theirs = self.instance.entries(i, usize::MAX, self.now);
            let theirs = theirs.map_err(|e| e.to_string())?;
            if mine != theirs.len() as u64 {
                return Err(format!(
                    "`{}` has {mine} entries by the interpreter, {} in emitted code",
                    o.name,
                    theirs.len()
                ));
            }
            let crowded = self.machine.entries(ObjectId(i)).len() as u64 != mine;
            let other = theirs.iter().find(|(key, value)| {
                !crowded && self.machine.peek(ObjectId(i), key).as_ref() != Some(value)
            });
            if let Some((key, _)) = other {
                return Err(format!("`{}`[{}] differs", o.name, hex(key)));
            }
        }
        Ok(())
    }

    fn name(&self, object: ObjectId) -> &str {
        let object = self.program.objects.get(object.0);
        object.map_or("?", |o| &o.name)
    }
}

/// Meaning of the interpreter's verdict at the border.
fn fate(dialect: Dialect, verdict: u32, port: u32, target: Option<Target>) -> Fate {
    if dialect == Dialect::Handlers {
        return Fate::of_verdict(verdict);
    }
    match (verdict, target) {
        (4, Some(Target::Others)) => Fate::Flooded,
        (4, Some(Target::Host)) => Fate::Passed,
        (4, Some(Target::Socket)) => Fate::Consumed,
        (4, Some(Target::Nobody)) => Fate::Dropped(0),
        (4, Some(Target::Port(to))) => Fate::Forwarded(to),
        _ => xdp(verdict, port, None),
    }
}

/// The fate of an XDP verdict, `to` the port of a redirect.
#[must_use]
pub fn xdp(verdict: u32, port: u32, to: Option<u32>) -> Fate {
    match verdict {
        1 => Fate::Dropped(0),
        2 => Fate::Passed,
        3 => Fate::Forwarded(port),
        // A redirect to no interface's port: the host aborts it.
        4 => Fate::Forwarded(to.unwrap_or(u32::MAX)),
        _ => Fate::Aborted,
    }
}

/// A value for people.
#[must_use]
pub fn shown(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "absent".to_owned(), hex)
}
