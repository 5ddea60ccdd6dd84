//! Timers in the values of maps: the emitted code and the interpreter fire the same ones at the same
//! times, whatever the burst, and a run tells how many.

use millrace_dataplane::packet::Fate;
use millrace_object::program::ObjectId;
use millrace_reference::{End, Machine};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::random::Random;

/// Steps of the interpreter for one packet.
const STEPS: u64 = 1_000_000;

/// Packets with their times: mostly close together, some at the same time, some after a pause.
fn packets(count: usize) -> Vec<(u64, Vec<u8>)> {
    let mut draw = Random(0x9e37_79b9_7f4a_7c15);
    let mut time = 1_000_000;
    let packet = |_| {
        let pause = match draw.below(20) {
            0..5 => 0,
            5..19 => draw.below(300),
            _ => draw.below(20_000),
        };
        time += pause as u64;
        (time, (0..60).map(|_| draw.below(256) as u8).collect())
    };
    (0..count).map(packet).collect()
}

fn verdict(fate: Fate) -> u64 {
    match fate {
        Fate::Dropped(_) => 1,
        Fate::Passed => 2,
        Fate::Forwarded(0) => 3,
        other => panic!("{other:?}"),
    }
}

#[test]
fn timers_fire_as_in_the_interpreter_whatever_the_burst() {
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/alarms.c");
    let packets = packets(6000);
    let mut draw = Random(5);
    for (most, prefetch) in [(1, false), (1, true), (32, false), (32, true), (7, true)] {
        let mut ours = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
        let program = ours.program.clone();
        let entry = &program.entries[0];
        let mut machine = Machine::exact(&program);
        let mut fired = 0;
        let mut rest = &packets[..];
        let mut verdicts = [0_usize; 4];
        while !rest.is_empty() {
            let n = (1 + draw.below(most)).min(rest.len());
            let (burst, after) = rest.split_at(n);
            rest = after;
            let borrowed: Vec<(u64, &[u8])> = burst.iter().map(|(t, p)| (*t, &p[..])).collect();
            let outcomes = ours.burst(&borrowed, prefetch).unwrap();
            for ((time, packet), outcome) in burst.iter().zip(outcomes) {
                fired += machine.advance(*time, STEPS).unwrap();
                machine.packet(packet, 0, 0);
                let end = machine.run(entry.function, entry.role, STEPS);
                let fate = verdict(outcome.fate);
                assert_eq!(end, Ok(End::Verdict(fate)), "at {time}");
                verdicts[fate as usize] += 1;
            }
            for (i, object) in program.objects.iter().enumerate() {
                let interpreted = machine.entries(ObjectId(i));
                let mine = ours.entries(&object.name).unwrap();
                assert_eq!(mine, interpreted, "{} at {:?}", object.name, burst.last());
            }
        }
        assert_eq!(ours.alarms_fired(), fired);
        assert!(fired > 2000, "{fired} timers fired: shows little");
        assert!(verdicts[2] > 500 && verdicts[3] > 500, "{verdicts:?}");
        println!("bursts up to {most}, prefetch {prefetch}: {fired} timers agree");
    }
}
