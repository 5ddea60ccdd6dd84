//! A guest that threads of the host's run in turn, as when its packet class moves from worker to worker.

use crate::common;

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use common::{Caught, Packets, compile};
use millrace_guest::{Over, describe};

const THREADS: usize = 3;
/// Packets that a thread gives it before the next one does.
const EACH: usize = 50;

/// It checks at each packet that what belongs to a thread is its own still: thread-local storage, errno, its number, the
/// signal mask, the control word of SSE, and a timer that goes on.
#[test]
fn whatever_belongs_to_a_thread_goes_with_the_guest() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let packets = Packets::made(40 * EACH);
    let (count, sum) = (packets.len(), packets.sum());
    let caught = Caught::start(dir.path(), &format!("guest:{} wander", program.display()));
    let here = Mutex::new((0, caught.unwrap(), packets));
    let next = Condvar::new();
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let (here, next) = (&here, &next);
            scope.spawn(move || {
                loop {
                    let others = |(turn, ..): &mut (usize, _, Packets)| {
                        turn.wrapping_mul(EACH) < count && *turn % THREADS != own
                    };
                    let mut locked = next.wait_while(here.lock().unwrap(), others).unwrap();
                    let (turn, caught, packets) = &mut *locked;
                    let from = *turn * EACH;
                    if from >= count {
                        return;
                    }
                    packets.part(from..from + EACH, &mut [&mut caught.guest]);
                    *turn += 1;
                    drop(locked);
                    next.notify_all();
                    // A time for the timer to be due in.
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
    });
    let (turns, caught, _) = here.into_inner().unwrap();
    assert_eq!(turns, 40);
    let (over, printed) = caught.finish();
    assert!(
        matches!(over, Over::Exit(0)),
        "{}: {printed}",
        describe(&over)
    );
    let expected = format!("the same throughout, it rang\n{count} packets, sum {sum}\n");
    assert_eq!(printed, expected);
}

/// A fault, and the watchdog, find the thread that runs it now.
#[test]
fn a_guest_fails_on_another_thread_as_on_its_first() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    for (how, told) in [("null", "a null pointer"), ("loop", "too long")] {
        let mut packets = Packets::made(200);
        let word = format!("guest,limit=0.3:{} {how}", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        packets.part(0..32, &mut [&mut caught.guest]);
        // Packet 40 is one of these.
        let (caught, on) = std::thread::spawn(move || {
            let (_, on) = packets.part(32..200, &mut [&mut caught.guest]);
            (caught, on)
        })
        .join()
        .unwrap();
        assert_eq!(on, 168, "{how}: packets go on without it");
        let (over, _) = caught.finish();
        let said = describe(&over);
        assert!(said.contains(told), "{how}: {said}");
    }
}
