//! Meaning of calls, compared with an interpreter: for each of many packets exactly one path's guard holds, and it
//! says which verdict, which bytes and which entries come out.

use crate::support;

use std::collections::BTreeMap;
use std::time::Duration;

use millrace_model::exec::Presence;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, Rel, SymId};
use millrace_model::model::{Entry, Outcome, Path, Use, Verdict};
use millrace_model::solver::{Answer, Oracle, Z3};
use millrace_object::program::Role;
use millrace_reference::{End, Machine};
use support::Loaded;

const HEADROOM: u64 = 40;
const TAILROOM: u64 = 12;
const PACKETS: usize = 150;
const SEED: u64 = 0x51_7cc1_b727_220a;

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    /// Few values where calls have their edges, and any bytes behind them.
    fn packet(&mut self) -> Vec<u8> {
        let length = 14 + self.below(50);
        (0..length)
            .map(|i| match self.below(3) {
                0 if i < 8 => self.below(256) as u8,
                _ if i < 8 => self.below(8) as u8,
                _ => self.below(256) as u8,
            })
            .collect()
    }
}

/// Everything that a path says, in its own symbols.
fn roots(path: &Path) -> Vec<ExprId> {
    let mut all = path.guard.clone();
    all.extend(
        path.rewrites
            .iter()
            .flat_map(|w| w.base.into_iter().chain([w.byte])),
    );
    all.extend([path.borders.start, path.borders.end]);
    for place in &path.places {
        all.extend(place.key.iter().chain(place.bytes.values()));
    }
    if let Verdict::Number(e) = path.verdict {
        all.push(e);
    }
    all
}

/// What the symbols of a path are, for a packet before a machine; and those of which nobody says.
fn resolved(
    loaded: &Loaded,
    machine: &Machine<'_>,
    arena: &Arena,
    path: &Path,
    packet: &[u8],
) -> (Assignment, Vec<String>) {
    let bytes: BTreeMap<u64, u8> = (0..).zip(packet.iter().copied()).collect();
    let mut names: BTreeMap<String, SymId> = BTreeMap::new();
    for e in cone(arena, &roots(path), |_| false) {
        if let Node::Sym(s) = arena.node(e) {
            names.insert(arena.symbol(*s).name.clone(), *s);
        }
    }
    let mut values: IdMap<SymId, u64> = IdMap::default();
    let mut set = |name: String, value: u64, values: &mut IdMap<SymId, u64>| {
        if let Some(s) = names.remove(&name) {
            values.insert(s, value);
        }
    };
    set("length".into(), packet.len() as u64, &mut values);
    set("headroom".into(), HEADROOM, &mut values);
    set("tailroom".into(), TAILROOM, &mut values);
    set("port".into(), 1, &mut values);
    set("cpu".into(), 0, &mut values);
    for place in &path.places {
        // A key that nobody knows leads nowhere.
        if place.turned {
            // A loop may have changed it before the path came to it.
            continue;
        }
        let parts = cone(arena, &place.key, |_| false);
        let known = |e: &ExprId| match arena.node(*e) {
            Node::Sym(s) => values.contains_key(s),
            _ => true,
        };
        if !parts.iter().all(known) {
            continue;
        }
        let so_far = Assignment::new(values.clone(), bytes.clone());
        let key: Vec<u8> = place
            .key
            .iter()
            .map(|e| so_far.value(arena, *e) as u8)
            .collect();
        let object = &loaded.program.objects[place.object.0];
        // A map of maps holds numbers, from 1; the entries of a map in it are found by that.
        if object.shape().is_some() {
            let inner = machine.inner(place.object, &key);
            let number = inner.map_or(0, |m| m.0 as u64 + 1);
            set(
                format!("{}.present", place.stem),
                u64::from(inner.is_some()),
                &mut values,
            );
            set(format!("{}.map", place.stem), number, &mut values);
            continue;
        }
        let (map, key) = if object.is_shape() {
            let (number, key) = key.split_at(4);
            let number = u32::from_le_bytes(number.try_into().unwrap()) as usize;
            let Some(at) = number.checked_sub(1) else {
                continue;
            };
            (millrace_object::program::ObjectId(at), key.to_vec())
        } else {
            (place.object, key)
        };
        let entries = machine.entries(map);
        let found = entries.get(&key);
        set(
            format!("{}.present", place.stem),
            u64::from(found.is_some()),
            &mut values,
        );
        let full = entries.len() as u64 >= object.capacity;
        set(format!("{}.full", place.stem), u64::from(full), &mut values);
        let zeros = vec![0; object.value_bytes as usize];
        let value = found.unwrap_or(&zeros);
        for from in (0..value.len()).step_by(8) {
            let part = &value[from..value.len().min(from + 8)];
            let number = part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
            set(
                format!("{}[{from}..{}]", place.stem, from + part.len()),
                number,
                &mut values,
            );
        }
    }
    let left = names.into_keys().collect();
    (Assignment::new(values, bytes), left)
}

/// The packet at the end of a path.
fn packet_after(arena: &Arena, path: &Path, a: &Assignment) -> Vec<u8> {
    let at = |e: ExprId| a.value(arena, e) as i64;
    let mut bytes: BTreeMap<i64, u8> = a.packet.iter().map(|(at, b)| (*at as i64, *b)).collect();
    for w in &path.rewrites {
        bytes.insert(w.base.map_or(0, at) + w.at, a.value(arena, w.byte) as u8);
    }
    (at(path.borders.start)..at(path.borders.end))
        .map(|i| bytes.get(&i).copied().unwrap_or(0))
        .collect()
}

/// Sends packets to one program of `calls.c`; gives how often each verdict came out.
fn drive(loaded: &Loaded, model: &Entry, seed: u64) -> BTreeMap<u64, u32> {
    let name = &model.function;
    let function = loaded
        .program
        .functions
        .iter()
        .position(|f| f.name == *name)
        .unwrap();
    let mut machine = Machine::exact(&loaded.program);
    machine.ports(3);
    let ports = loaded
        .program
        .objects
        .iter()
        .position(|o| o.name == "ports");
    if let Some(ports) = ports {
        machine.set(
            millrace_object::program::ObjectId(ports),
            &2_u32.to_le_bytes(),
            &2_u32.to_le_bytes(),
        );
    }
    let mut draw = Draw(seed);
    let mut verdicts = BTreeMap::new();
    for _ in 0..PACKETS {
        let packet = draw.packet();
        machine.packet(&packet, HEADROOM as usize, 0);
        machine.tailroom(TAILROOM as usize);
        let mut taken = Vec::new();
        for path in &model.paths {
            let (a, left) = resolved(loaded, &machine, &model.arena, path, &packet);
            assert!(
                left.is_empty(),
                "{name}: nobody says what these are: {left:?}"
            );
            if path.guard.iter().all(|g| a.value(&model.arena, *g) == 1) {
                taken.push((path, a));
            }
        }
        assert_eq!(taken.len(), 1, "{name}: {packet:02x?} takes one path");
        let (path, a) = &taken[0];
        let id = millrace_object::program::FunctionId(function);
        let end = machine.run(id, Role::Xdp, 10_000).unwrap();
        let Verdict::Number(e) = path.verdict else {
            panic!("{name}: no verdict");
        };
        let verdict = a.value(&model.arena, e);
        let End::Verdict(got) = end else {
            panic!("{name}: {end:?}")
        };
        assert_eq!(got & 0xffff_ffff, verdict, "{name}: {packet:02x?}");
        let after = packet_after(&model.arena, path, a);
        assert_eq!(machine.packet_bytes(), after, "{name}: {packet:02x?}");
        for place in path.places.iter().filter(|p| p.lapsed.is_none()) {
            let value = |e: &ExprId| a.value(&model.arena, *e) as u8;
            let key: Vec<u8> = place.key.iter().map(value).collect();
            let entry = machine.entries(place.object).remove(&key);
            let element = loaded.program.objects[place.object.0].kind.has_all();
            match place.presence {
                Presence::There => {
                    let entry = entry.unwrap_or_default();
                    for (at, byte) in &place.bytes {
                        let got = entry.get(*at as usize).copied().unwrap_or(0);
                        assert_eq!(got, value(byte), "{name}: {packet:02x?}");
                    }
                }
                Presence::Absent => assert!(element || entry.is_none(), "{name}: {packet:02x?}"),
                Presence::Open => {}
            }
        }
        *verdicts.entry(got).or_default() += 1;
    }
    verdicts
}

#[test]
fn a_packet_takes_the_path_that_the_model_says() {
    let Some(loaded) = support::load("calls") else {
        return;
    };
    let model = loaded.model();
    // Verdicts that packets reach; both outcomes of each call are among them.
    let expected = [
        ("head", 2),
        ("tail", 3),
        ("meta", 2),
        ("bytes", 3),
        ("sums", 2),
        ("updates", 2),
        ("elements", 2),
        ("targets", 4),
        ("indexed", 3),
        ("tall", 3),
        ("tallied", 2),
    ];
    assert_eq!(model.entries.len(), expected.len());
    for (i, (name, least)) in expected.into_iter().enumerate() {
        let entry = support::entry(&model, name);
        assert_eq!(entry.outcome, Outcome::Exhaustive, "{name}");
        let verdicts = drive(&loaded, entry, 0x9e37_79b9_7f4a_7c15 + i as u64);
        assert!(verdicts.len() >= least, "{name}: {verdicts:?}");
    }
}

/// Which of an array's counters is added to is no decision: two paths, and sums that every core may have a part of.
#[test]
fn counters_of_a_large_array_are_sums() {
    let Some(loaded) = support::load("calls") else {
        return;
    };
    let model = loaded.model();
    let entry = support::entry(&model, "tallied");
    assert_eq!(entry.outcome, Outcome::Exhaustive);
    assert_eq!(entry.paths.len(), 2);
    let mut objects = model.objects.iter();
    let tallies = objects.find(|o| loaded.program.objects[o.id.0].name == "tallies");
    let tallies = tallies.expect("the object of the counters");
    assert_eq!(tallies.usage, Use::Additive);
    let words = tallies.parts.as_ref().map(|p| p.words.len());
    assert_eq!(words, Some(64 + 256));
}

#[test]
fn ways_that_meet_are_one_path_where_they_differ_in_computed_numbers() {
    let Some(loaded) = support::load("merges") else {
        return;
    };
    let model = loaded.model();
    // Too short, and the ways that are told apart: of `written` two verdicts, of `apart` which byte and which constant.
    for (name, paths, verdicts) in [("excepted", 2, 2), ("written", 3, 3), ("apart", 5, 2)] {
        let entry = support::entry(&model, name);
        assert_eq!(entry.outcome, Outcome::Exhaustive, "{name}");
        assert_eq!(entry.paths.len(), paths, "{name}");
        let driven = drive(&loaded, entry, SEED);
        assert_eq!(driven.len(), verdicts, "{name}");
    }
    // Three ways in each of ten turns.
    let crowd = support::entry(&model, "crowd");
    assert_eq!(crowd.outcome, Outcome::Exhaustive);
    assert_eq!(drive(&loaded, crowd, SEED).len(), 3);
}

/// Whether some values of the symbols that nobody knows make a path say this verdict and this packet.
fn says(
    arena: &mut Arena,
    oracle: &mut Oracle,
    path: &Path,
    a: &Assignment,
    got: u64,
    after: &[u8],
) -> bool {
    let Verdict::Number(verdict) = path.verdict else {
        return false;
    };
    let mut all = path.guard.clone();
    let mut equal = |arena: &mut Arena, e: ExprId, value: u64| {
        let value = arena.number(value, arena.width(e));
        all.push(arena.compare(Rel::Eq, e, value));
    };
    let symbols: Vec<(ExprId, u64)> = a
        .symbols
        .iter()
        .map(|(s, v)| {
            let symbol = arena.symbol(*s).clone();
            (arena.sym(&symbol.name, symbol.width, symbol.origin), *v)
        })
        .collect();
    for (e, v) in symbols {
        equal(arena, e, v);
    }
    for (at, byte) in &a.packet {
        let at = arena.number(*at, 64);
        let e = arena.byte(at);
        equal(arena, e, u64::from(*byte));
    }
    equal(arena, verdict, got & 0xffff_ffff);
    let (start, end) = (
        a.value(arena, path.borders.start),
        a.value(arena, path.borders.end),
    );
    if end.wrapping_sub(start) != after.len() as u64 {
        return false;
    }
    let mut last: BTreeMap<u64, ExprId> = BTreeMap::new();
    for w in &path.rewrites {
        let base = w.base.map_or(0, |b| a.value(arena, b));
        last.insert(base.wrapping_add(w.at as u64).wrapping_sub(start), w.byte);
    }
    for (at, byte) in (0..).zip(after) {
        match last.get(&at) {
            Some(e) => equal(arena, *e, u64::from(*byte)),
            None => {
                let came = a.packet.get(&at.wrapping_add(start)).copied().unwrap_or(0);
                if came != *byte {
                    return false;
                }
            }
        }
    }
    matches!(oracle.holds(arena, &all), Answer::Holds(_))
}

/// What a machine does with packets is what one of the paths says, for some state.
fn among(loaded: &Loaded, model: &Entry, seed: u64) {
    let name = &model.function;
    let function = loaded
        .program
        .functions
        .iter()
        .position(|f| f.name == *name)
        .unwrap();
    let mut machine = Machine::exact(&loaded.program);
    machine.ports(3);
    let mut arena = model.arena.clone();
    let z3 = Z3::new("z3".into(), Duration::from_secs(2));
    let mut oracle = Oracle::new(
        Box::new(z3),
        millrace_check::moment::Moment::now() + Duration::from_secs(300),
    );
    let mut draw = Draw(seed);
    for _ in 0..40 {
        let mut packet = draw.packet();
        packet.resize(packet.len() + 40, 1);
        machine.packet(&packet, HEADROOM as usize, 0);
        machine.tailroom(TAILROOM as usize);
        let ways: Vec<(&Path, Assignment)> = (model.paths.iter())
            .map(|p| (p, resolved(loaded, &machine, &arena, p, &packet).0))
            .collect();
        let id = millrace_object::program::FunctionId(function);
        let End::Verdict(got) = machine.run(id, Role::Xdp, 100_000).unwrap() else {
            panic!("{name}: no verdict");
        };
        let after = machine.packet_bytes().to_vec();
        let said = ways
            .iter()
            .any(|(p, a)| says(&mut arena, &mut oracle, p, a, got, &after));
        assert!(said, "{name}: {packet:02x?} gives {got} and {after:02x?}");
    }
}

#[test]
fn what_happens_is_among_what_the_model_says() {
    let others = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let programs = [
        own.join("stateful.c"),
        own.join("turns.c"),
        others.join("sequences.c"),
        others.join("routing.c"),
        others.join("nested.c"),
        others.join("blocklist.c"),
        others.join("odd.c"),
    ];
    let mut driven = 0;
    for (i, source) in programs.iter().enumerate() {
        let Some(loaded) = support::compile(source) else {
            return;
        };
        for entry in &loaded.model().entries {
            let leaves = |p: &millrace_model::model::Path| matches!(p.verdict, Verdict::GoesOn(..));
            if entry.outcome.covers() && !entry.paths.iter().any(leaves) {
                among(&loaded, entry, 0x2545_f491_4f6c_dd1d + i as u64);
                driven += 1;
            }
        }
    }
    assert!(driven >= 12, "{driven}");
}
