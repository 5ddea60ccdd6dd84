//! A treatment that this crate does not have, added by a folder and a line, and run: on several threads under
//! ThreadSanitizer, and replayed by one worker in the order in which packets were committed.

mod treatment;

use millrace_emit::codegen::emit_as;
use millrace_emit::sync::{Make, Sharing};

use crate::support::traffic::{SECOND, events, frame};
use crate::support::workers::{Build, PHASE, TIMER, Way, difference};
use crate::support::{Bench, facts, nf};

/// The line that adds it.
const TREATMENTS: &[Make] = &[treatment::make];

#[test]
fn a_treatment_is_a_folder_and_a_line() {
    let bench = Bench::new();
    for name in ["firewall", "bridge", "lb", "policer", "cl"] {
        let program = nf::load(&bench, name);
        let facts = facts(&program);
        let text = emit_as(TREATMENTS, &program, &facts, &Sharing::default(), "m.c").unwrap();
        let module = bench.build("serial", &text, Build::Thread);
        let alone = millrace_emit::alone::emit(&program, &facts, "m.c").unwrap();
        let alone = bench.build("alone", &alone, Build::Reference);
        let mut events = events(3, 20, 100, 45 * SECOND, |random, _| {
            let (inside, far) = (random.below(9) as u32, 90 + random.below(9) as u32);
            let ports = (1000 + random.below(4) as u16, 80);
            let lan = random.below(2) == 0;
            let bytes = match lan {
                true => frame((1, 2), inside, far, ports),
                false => frame((2, 1), far, inside, (ports.1, ports.0)),
            };
            (u32::MAX, u32::from(!lan), bytes)
        });
        let timers = program
            .entries
            .iter()
            .filter(|e| matches!(e.role, millrace_object::program::Role::Every { .. }));
        if let Some(at) = events.iter().position(|e| e.program == PHASE)
            && timers.count() > 0
        {
            let (phase, mut timer) = (events[at].clone(), events[at].clone());
            timer.program = TIMER;
            events.splice(at + 1..at + 1, [timer, phase]);
        }
        let way = Way {
            workers: 3,
            plain: false,
            burst: 32,
            rounds: 1,
        };
        let result = bench.work(&program, &module, Build::Thread, way, &events);
        let result = result.unwrap_or_else(|e| panic!("{name}: {e}"));
        let replayed = bench.replay(&program, &alone, &events, &result);
        if let Some(what) = difference(&program, &result, &replayed) {
            panic!("{name}: {what}");
        }
        let forwarded = result.done.iter().filter(|d| d.outcome.fate == 3);
        assert!(forwarded.count() > 0, "{name}");
    }
}
