//! Contracts of kinds, compared with their C: every helper is called on every kind of object of an instance, with the
//! same keys and numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_object::contract::{Act, Call, Reach};
use millrace_object::helper::{Arg, CHECK_MTU, FIB_LOOKUP, Helper, INTERNAL, Return};
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{ObjectId, Program, StateObject};
use millrace_object::state::{Addressing, KINDS};
use millrace_tests::soundness::batch::Bench;
use millrace_tests::soundness::{self, CALLEES, objects};

/// Bytes of the frame: a number, a key, a value, and what the call answers.
const FRAME: usize = 64;
const ANSWER: usize = 40;

/// Keys and numbers that calls are tried with.
const WORDS: u64 = 5;

/// When entries are put there, ns.
const PUT: u64 = 1_000;

/// When calls are made, and when the host looks again: what expires does so in between unless a call has refreshed it.
fn times(object: &StateObject) -> (u64, u64) {
    let age = object.expire_after.max(100);
    (PUT + age / 10 * 6, PUT + age / 10 * 12)
}

fn alu(op: AluOp, dst: u8, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst: Reg(dst),
        src,
    }
}

fn set(dst: u8, value: i64) -> Insn {
    alu(AluOp::Mov, dst, Operand::Imm(value))
}

fn copy(dst: u8, src: u8) -> Insn {
    alu(AluOp::Mov, dst, Operand::Reg(Reg(src)))
}

fn load(size: Size, dst: u8, base: u8, offset: i16) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst: Reg(dst),
        base: Reg(base),
        offset,
    }
}

fn store(size: Size, base: u8, offset: i16, src: Operand) -> Insn {
    Insn::Store {
        size,
        base: Reg(base),
        offset,
        src,
    }
}

fn unless(op: Condition, left: u8, right: Operand, target: usize) -> Insn {
    Insn::Branch {
        condition: op,
        width: Width::W64,
        left: Reg(left),
        right,
        target,
    }
}

/// Bytes of a frame that stand in memory of `bytes` of the stack: the key's as they are, the value's again and again.
fn fill(out: &mut Vec<Insn>, place: i16, bytes: u32, from: i16, again: bool) {
    for word in 0..bytes.div_ceil(8) as i16 {
        let at = if again || word == 0 { from } else { from + 8 };
        out.push(load(Size::B8, 0, 7, at));
        out.push(store(Size::B8, 10, place + 8 * word, Operand::Reg(Reg(0))));
    }
}

/// A program that calls a helper on an object with what the frame says, and stores the answer into it.
fn calls(helper: &Helper, id: ObjectId, object: &StateObject) -> Vec<Insn> {
    let mut out = vec![
        copy(6, 1),
        load(Size::B4, 7, 6, 0),
        load(Size::B4, 8, 6, 4),
        copy(0, 7),
        alu(AluOp::Add, 0, Operand::Imm(FRAME as i64)),
    ];
    let short = out.len();
    out.push(unless(Condition::Gt, 0, Operand::Reg(Reg(8)), 0));
    for (arg, reg) in helper.args.iter().zip(1_u8..) {
        let place = -128 * i16::from(reg) + 16;
        let memory = |out: &mut Vec<Insn>| {
            out.push(copy(reg, 10));
            out.push(alu(AluOp::Add, reg, Operand::Imm(i64::from(place))));
        };
        match arg {
            Arg::Context => out.push(copy(reg, 6)),
            Arg::Object => out.push(Insn::LoadImm {
                dst: Reg(reg),
                value: Imm64::Object(id),
            }),
            Arg::Key | Arg::KeyOut => {
                fill(&mut out, place, object.key_bytes, 8, false);
                memory(&mut out);
            }
            Arg::Value | Arg::ValueOut => {
                fill(&mut out, place, object.value_bytes.max(8), 24, true);
                memory(&mut out);
            }
            Arg::Read { .. } | Arg::Update => {
                fill(&mut out, place, 64, 24, true);
                memory(&mut out);
            }
            Arg::InOut(bytes) => {
                fill(&mut out, place, (*bytes).max(8), 24, true);
                memory(&mut out);
            }
            Arg::Bytes { .. } => out.push(set(reg, 64)),
            // The kernel's flags come last, and 0 is one that all have.
            Arg::Scalar
                if helper.is_kernels() && usize::from(reg) == helper.args.len() && reg > 2 =>
            {
                out.push(set(reg, 0));
            }
            Arg::Scalar => match objects::member(helper).filter(|_| reg == 2) {
                Some(member) => out.push(set(reg, member)),
                None => out.push(load(Size::B8, reg, 7, 0)),
            },
            other => panic!("{}: {other:?}", helper.name),
        }
    }
    out.push(Insn::Call {
        helper: helper.number,
    });
    let maps = object.kind.holds_maps();
    match helper.returns {
        Return::Scalar { .. } => out.push(store(Size::B8, 7, ANSWER as i16, Operand::Reg(Reg(0)))),
        // What is found, by its first byte; addresses are secret.
        _ => {
            let absent = out.len() + 1 + if maps { 1 } else { 3 };
            out.push(unless(Condition::Eq, 0, Operand::Imm(0), absent));
            if !maps {
                out.push(load(Size::B1, 1, 0, 0));
                out.push(store(Size::B1, 7, ANSWER as i16 + 1, Operand::Reg(Reg(1))));
            }
            out.push(store(Size::B1, 7, ANSWER as i16, Operand::Imm(1)));
        }
    }
    let end = out.len();
    out.extend([set(0, 2), Insn::Exit]);
    if let Some(Insn::Branch { target, .. }) = out.get_mut(short) {
        *target = end;
    }
    out
}

/// Whether the call can be made by a program of this test. Timers have addresses of their own and records must be given
/// back: tests/timers.rs and tests/soundness.rs are about those. What is laid out or ends a program is no C function.
fn is_tried(helper: &Helper) -> bool {
    let own = |a: &Arg| matches!(a, Arg::Timer | Arg::Callback | Arg::Record);
    let laid_out = helper.is_expanded() || helper.number >= INTERNAL;
    !laid_out && !helper.args.iter().any(own) && helper.returns != Return::RecordOrNull
}

/// One call of one object, and the entry that makes it.
struct Tried {
    entry: usize,
    object: usize,
    call: Call,
}

struct Bed {
    program: Program,
    module: Arc<Module>,
    tried: Vec<Tried>,
}

/// The observable part of an object: its entries, their number, and what looking at each key answers.
#[derive(PartialEq, Eq, Debug)]
struct Shows {
    entries: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    count: Option<u64>,
    answers: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
}

impl Bed {
    fn new(bench: &Bench) -> Self {
        let mut bodies = Vec::new();
        let mut tried = Vec::new();
        for (at, object) in objects::all().iter().enumerate() {
            // Others are of the same kinds without timers.
            if object.is_shape() || object.timer.is_some() {
                continue;
            }
            for call in object.kind.calls.iter().copied().flatten() {
                if is_tried(call.helper) {
                    tried.push(Tried {
                        entry: bodies.len(),
                        object: at,
                        call: *call,
                    });
                    bodies.push(calls(call.helper, ObjectId(at), object));
                }
            }
        }
        let program = soundness::program(&bodies);
        assert_eq!(program.functions.len(), CALLEES + bodies.len());
        let module = bench.build(&program).unwrap();
        Self {
            program,
            module: Arc::new(Module::load(&module).unwrap()),
            tried,
        }
    }

    /// An instance in whose objects something is.
    fn instance(&self) -> Instance {
        let objects = &self.program.objects;
        let config = Config {
            initial: objects.iter().map(|o| o.initial.clone()).collect(),
            time: PUT,
            ..Config::default()
        };
        let mut instance = Instance::create(self.module.clone(), &config).unwrap();
        for (i, object) in objects.iter().enumerate() {
            for word in 0..2 {
                let (_, key, value) = frame(object, word);
                // What takes no entries from outside, or not these, has none.
                let _ = instance.set(i, &key, &value, PUT);
            }
        }
        instance
    }

    /// Runs an entry, and gives the answer.
    fn call(&self, instance: &mut Instance, tried: &Tried, word: u64, time: u64) -> Vec<u8> {
        let object = &self.program.objects[tried.object];
        let mut burst = Burst::new(1, 2, Layout::Pooled);
        let arrival = Arrival {
            time,
            ..Arrival::default()
        };
        assert!(burst.push(&frame(object, word).0, arrival));
        instance.burst(tried.entry, false, &mut burst);
        burst.outcome(0).unwrap().bytes[ANSWER..ANSWER + 8].to_vec()
    }

    /// The observable part of an object at a time, by all calls that look but the one on trial, which may do more than it says.
    fn shows(&self, instance: &mut Instance, on_trial: &Tried, time: u64) -> Shows {
        let object = on_trial.object;
        let mut entries = BTreeMap::<_, Vec<_>>::new();
        let listed = instance.entries(object, usize::MAX, time);
        for (key, value) in listed.unwrap_or_default() {
            entries.entry(key).or_default().push(value);
        }
        let looks =
            |t: &&Tried| t.object == object && t.call.does.looks() && t.entry != on_trial.entry;
        let words = || 0..WORDS;
        let mut answers = Vec::new();
        for look in self.tried.iter().filter(looks) {
            answers.extend(words().map(|word| self.call(instance, look, word, time)));
        }
        let mut records = Vec::new();
        instance.drain(|record| records.push(record.bytes));
        Shows {
            entries,
            count: instance.count(object, time),
            answers,
            records,
        }
    }

    /// The observable part after these calls: at once, and when time has passed and entries have come that had no room.
    fn after(&self, on_trial: &Tried, words: &[u64]) -> (Shows, Shows) {
        let object = on_trial.object;
        let mut instance = self.instance();
        let (called, later) = times(&self.program.objects[object]);
        for word in words {
            self.call(&mut instance, on_trial, *word, called);
        }
        let now = self.shows(&mut instance, on_trial, called);
        for word in 10..13 {
            let (_, key, value) = frame(&self.program.objects[object], word);
            let _ = instance.set(object, &key, &value, called);
        }
        (now, self.shows(&mut instance, on_trial, later))
    }
}

/// A frame, and the key and the value in it, by which an object may be asked for.
fn frame(object: &StateObject, word: u64) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let prefix = object.key_bytes >= 8 && object.flags == 1;
    // A whole address, behind the length of its prefix.
    let key = if prefix { word << 32 | 32 } else { word };
    let mut frame = vec![0; FRAME];
    // Prefixes are whole addresses.
    let number = match object.kind.addressing {
        Addressing::Prefix => 8 * u64::from(object.key_bytes),
        _ => word + object.first,
    };
    frame[..8].copy_from_slice(&number.to_le_bytes());
    let index = if object.kind.leases() {
        word + object.first
    } else {
        key
    };
    frame[8..16].copy_from_slice(&index.to_le_bytes());
    // Not 0, which stands for no interface.
    frame[24..32].copy_from_slice(&(1 + word).to_le_bytes());
    let key = frame[8..24].iter().copied().take(object.key_bytes as usize);
    let value = frame[24..32].iter().copied().cycle();
    let value = value.take(object.value_bytes as usize).collect();
    let key = key.collect();
    (frame, key, value)
}

#[test]
fn calls_do_what_their_kinds_say() {
    let bench = Bench::new().unwrap();
    let bed = Bed::new(&bench);
    let mut checked = BTreeMap::<&str, u32>::new();
    for tried in &bed.tried {
        let object = &bed.program.objects[tried.object];
        let what = format!("{} on a {}", tried.call.helper.name, object.kind.name);
        let act = tried.call.does.act;
        let before = bed.after(tried, &[]);
        let after: Vec<_> = { 0..WORDS }.map(|word| bed.after(tried, &[word])).collect();
        let (now, later): (Vec<_>, Vec<_>) = after
            .iter()
            .map(|(now, later)| (*now == before.0, *later == before.1))
            .unzip();
        match act {
            Act::Look => {
                assert!(now.iter().chain(&later).all(|same| *same), "{what} looks");
            }
            // At once nothing shows; then what was touched stays, or another entry is evicted.
            Act::Touch => {
                assert!(now.iter().all(|same| *same), "{what} touches");
                let lasts = object.expire_after > 0 || object.kind.evicts;
                assert_eq!(later.iter().any(|same| !same), lasts, "{what} touches");
            }
            Act::Add | Act::Write => {
                assert!(now.iter().any(|same| !same), "{what} changes nothing");
            }
        }
        if act == Act::Add {
            let both = |a, b| bed.after(tried, &[a, b]).0;
            assert_eq!(both(1, 2), both(2, 1), "{what}: the order shows");
        }
        // What is about an entry leaves all others.
        if act == Act::Write && tried.call.does.reach == Reach::Entry {
            for (word, (after, _)) in { 0..WORDS }.zip(&after) {
                let own = frame(object, word).1;
                let mut others = before.0.entries.keys().filter(|key| **key != own);
                let same = |key: &Vec<u8>| after.entries.get(key) == before.0.entries.get(key);
                assert!(others.all(same), "{what} reaches beyond its entry");
            }
        }
        let word = match act {
            Act::Look => "look",
            Act::Touch => "touch",
            Act::Add => "add",
            Act::Write => "write",
        };
        *checked.entry(word).or_default() += 1;
    }
    println!("calls by what they do: {checked:?}");
    assert!(
        checked["look"] >= 30 && checked["write"] >= 25,
        "{checked:?}"
    );
    assert!(checked["touch"] >= 5 && checked["add"] == 5, "{checked:?}");
}

/// Each kind is among the objects, and each helper that a kind names is tried on it but for those with a test of their own.
#[test]
fn every_kind_and_call_is_tried() {
    let all = objects::all();
    for kind in KINDS {
        assert!(all.iter().any(|o| o.kind == *kind), "{}", kind.name);
    }
    let left = |h: &&&Helper| h.does.is_some() && !is_tried(h);
    let left: Vec<&str> = { millrace_object::helper::HELPERS.iter() }
        .filter(left)
        .map(|h| h.name)
        .collect();
    assert_eq!(
        left,
        [
            "ringbuf_reserve",
            "ringbuf_submit",
            "ringbuf_discard",
            "for_each_map_elem",
            "timer_init",
            "timer_set_callback",
            "timer_start",
            "timer_cancel",
            "map_slot",
            "tail_away",
            "timer_fired"
        ]
    );
    assert!(is_tried(&FIB_LOOKUP) && is_tried(&CHECK_MTU));
}
