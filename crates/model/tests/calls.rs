//! What calls mean, against an interpreter: for each of many packets exactly one path's guard holds, and it
//! says which verdict, which bytes and which entries come out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, HashMap};

use millrace_check::reference::{End, Machine};
use millrace_model::exec::Presence;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, ExprId, Node, SymId};
use millrace_model::model::{Entry, Outcome, Path, Verdict};
use millrace_object::program::Role;
use support::Loaded;

const HEADROOM: u64 = 40;
const TAILROOM: u64 = 12;
const PACKETS: usize = 150;

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

/// What the symbols of a path are, for a packet before a machine.
fn assignment(
    loaded: &Loaded,
    machine: &Machine<'_>,
    arena: &Arena,
    path: &Path,
    packet: &[u8],
) -> Assignment {
    let bytes: BTreeMap<u64, u8> = (0..).zip(packet.iter().copied()).collect();
    let mut names: BTreeMap<String, SymId> = BTreeMap::new();
    for e in cone(arena, &roots(path), |_| false) {
        if let Node::Sym(s) = arena.node(e) {
            names.insert(arena.symbol(*s).name.clone(), *s);
        }
    }
    let mut values: HashMap<SymId, u64> = HashMap::new();
    let mut set = |name: String, value: u64, values: &mut HashMap<SymId, u64>| {
        if let Some(s) = names.remove(&name) {
            values.insert(s, value);
        }
    };
    set("length".into(), packet.len() as u64, &mut values);
    set("headroom".into(), HEADROOM, &mut values);
    set("tailroom".into(), TAILROOM, &mut values);
    set("port".into(), 1, &mut values);
    for place in &path.places {
        let so_far = Assignment::new(values.clone(), bytes.clone());
        let key: Vec<u8> = place
            .key
            .iter()
            .map(|e| so_far.value(arena, *e) as u8)
            .collect();
        let object = &loaded.program.objects[place.object.0];
        let entries = machine.entries(place.object);
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
    assert!(names.is_empty(), "nobody says what these are: {names:?}");
    Assignment::new(values, bytes)
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
        .position(|o| o.name == "ports")
        .unwrap();
    machine.set(
        millrace_object::program::ObjectId(ports),
        &2_u32.to_le_bytes(),
        &2_u32.to_le_bytes(),
    );
    let mut draw = Draw(seed);
    let mut verdicts = BTreeMap::new();
    for _ in 0..PACKETS {
        let packet = draw.packet();
        machine.packet(&packet, HEADROOM as usize, 0);
        machine.tailroom(TAILROOM as usize);
        let mut taken = Vec::new();
        for path in &model.paths {
            let a = assignment(loaded, &machine, &model.arena, path, &packet);
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
            let element = loaded.program.objects[place.object.0].kind.name == "array";
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
    ];
    assert_eq!(model.entries.len(), expected.len());
    for (i, (name, least)) in expected.into_iter().enumerate() {
        let entry = support::entry(&model, name);
        assert_eq!(entry.outcome, Outcome::Exhaustive, "{name}");
        let verdicts = drive(&loaded, entry, 0x9e37_79b9_7f4a_7c15 + i as u64);
        assert!(verdicts.len() >= least, "{name}: {verdicts:?}");
    }
}
