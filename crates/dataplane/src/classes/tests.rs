//! Buckets whose entries move: the steps, and what calls them off.

use std::sync::Arc;

use millrace_steer::buckets::{Buckets, Drawn};

use super::state::spread;
use super::{Classes, MoveError, Task};
use crate::module::{Rest, Stamped};
use crate::moved::Full;

/// The bucket of a key is its first byte, plus what was drawn.
struct ByByte(u8);

impl Buckets for ByByte {
    fn count(&self) -> u32 {
        4
    }

    fn packet(&self, _: u32, frame: &[u8]) -> u32 {
        self.entry(0, frame).unwrap_or(0)
    }

    fn entry(&self, _: usize, key: &[u8]) -> Option<u32> {
        key.first().map(|b| u32::from(b.wrapping_add(self.0)) % 4)
    }

    fn draw(&self, secret: [u8; 32]) -> Option<Drawn> {
        Some(Drawn {
            steering: Vec::new(),
            buckets: Arc::new(Self(secret[0])),
        })
    }
}

fn entry(byte: u8) -> (usize, Stamped) {
    let stamped = Stamped {
        key: vec![byte],
        value: Vec::new(),
        stamp: 7,
        rest: Rest::default(),
    };
    (0, stamped)
}

/// Buckets of two workers with a queue each, which never have packets on their way.
fn classes() -> Arc<Classes> {
    let classes = Classes::of_buckets(Arc::new(ByByte(0)), &[0, 1, 0, 1], 2);
    for worker in 0..2 {
        classes.join((0, worker), None, || ());
    }
    classes
}

/// Both queues look until a worker has something to do.
fn drain(classes: &Classes) {
    for member in [0, 1, 0, 1] {
        classes.look(member, (None, false), |_| 0, |_| 0);
    }
}

/// Asks for a move on a thread, and goes on once it is under way.
fn begun(
    classes: &Arc<Classes>,
    ask: impl FnOnce(&Classes) -> Result<super::Moved, MoveError> + Send + 'static,
) -> std::thread::JoinHandle<Result<super::Moved, MoveError>> {
    let (other, before) = (classes.clone(), classes.step());
    let thread = std::thread::spawn(move || ask(&other));
    while !classes.has_changed(before) {
        std::thread::yield_now();
    }
    thread
}

#[test]
fn a_bucket_goes_by_steps_and_its_packets_wait_from_the_second_on() {
    let classes = classes();
    let moving = begun(&classes, |c| c.assign(2, 1));
    assert!(matches!(classes.task(0), Some(Task::Look(2))));
    assert!(classes.task(1).is_none());
    assert_eq!(classes.look(0, (None, false), |_| 0, |_| 0).hold, None);
    classes.looked();
    assert_eq!(classes.look(1, (None, false), |_| 0, |_| 0).hold, Some(2));
    assert!(matches!(classes.task(0), Some(Task::Look(2))));
    drain(&classes);
    assert!(matches!(classes.task(0), Some(Task::Take(2))));
    classes.took(0, vec![entry(2)]);
    assert!(classes.task(0).is_none());
    let Some(Task::Put(entries)) = classes.task(1) else {
        panic!("nothing to put in");
    };
    assert_eq!(*entries, [entry(2)]);
    // Nobody else moves anything meanwhile, back or elsewhere.
    assert_eq!(classes.assign(2, 0), Err(MoveError::Busy));
    assert_eq!(classes.worker(2), 0);
    classes.put(1, Ok(()));
    let moved = moving.join().unwrap().unwrap();
    assert_eq!((moved.from, moved.to, moved.entries), (0, 1, 1));
    assert_eq!(classes.worker(2), 1);
    assert_eq!(classes.look(0, (None, false), |_| 0, |_| 0).hold, None);
    assert_eq!((classes.counts().moves, classes.counts().entries), (1, 1));
}

#[test]
fn what_a_full_worker_does_not_take_goes_back() {
    let classes = classes();
    let moving = begun(&classes, |c| c.assign(0, 1));
    classes.looked();
    drain(&classes);
    classes.took(0, vec![entry(0), entry(4)]);
    classes.put(1, Err(Full { object: 0 }));
    let Some(Task::Back {
        entries,
        all: false,
    }) = classes.task(0)
    else {
        panic!("nothing goes back");
    };
    assert_eq!(entries.len(), 2);
    classes.back(0, 0);
    assert_eq!(moving.join().unwrap(), Err(MoveError::Full));
    assert_eq!((classes.worker(0), classes.counts().refused), (0, 1));
}

#[test]
fn who_asks_for_the_state_calls_a_bucket_back() {
    let classes = classes();
    // Before its entries are out it simply stays.
    let moving = begun(&classes, |c| c.assign(0, 1));
    let still = classes.still();
    assert_eq!(moving.join().unwrap(), Err(MoveError::Asked));
    assert_eq!(classes.assign(0, 1), Err(MoveError::Asked));
    drop(still);
    // Once they are, their worker has to take them back.
    let moving = begun(&classes, |c| c.assign(0, 1));
    classes.looked();
    drain(&classes);
    classes.took(0, vec![entry(0)]);
    assert!(!classes.recall());
    assert!(classes.task(1).is_none());
    assert!(matches!(
        classes.task(0),
        Some(Task::Back { all: false, .. })
    ));
    classes.back(0, 0);
    assert!(classes.recall());
    assert_eq!(moving.join().unwrap(), Err(MoveError::Asked));
    // But where the other one is at them they are not given to both.
    let moving = begun(&classes, |c| c.assign(0, 1));
    classes.looked();
    drain(&classes);
    classes.took(0, vec![entry(0)]);
    assert!(matches!(classes.task(1), Some(Task::Put(_))));
    assert!(!classes.recall());
    assert!(classes.task(0).is_none());
    classes.put(1, Ok(()));
    assert!(moving.join().unwrap().is_ok());
    assert!(classes.recall());
    classes.changes();
    assert_eq!(classes.assign(0, 1), Err(MoveError::Changed));
    classes.close();
    assert_eq!(classes.assign(0, 1), Err(MoveError::Ends));
}

#[test]
fn another_key_takes_all_entries_where_it_leads_or_none() {
    for full in [false, true] {
        let classes = classes();
        let moving = begun(&classes, |c| c.rotate([1; 32]));
        assert!(classes.look(0, (None, false), |_| 0, |_| 0).still);
        drain(&classes);
        for worker in 0..2_usize {
            assert!(matches!(classes.task(worker), Some(Task::TakeAll)));
            classes.took(worker, vec![entry(worker as u8)]);
        }
        // Of bucket 0 at worker 0, and now of 1, which worker 1 has; and the other way round.
        for (worker, byte) in [(0, 1), (1, 0)] {
            let Some(Task::Put(entries)) = classes.task(worker) else {
                panic!("nothing to put in");
            };
            assert_eq!(*entries, [entry(byte)]);
            classes.put(
                worker,
                if full && worker == 1 {
                    Err(Full { object: 0 })
                } else {
                    Ok(())
                },
            );
        }
        for worker in 0..2_usize {
            if full {
                let Some(Task::Back { entries, all: true }) = classes.task(worker) else {
                    panic!("nothing goes back");
                };
                assert_eq!(*entries, [entry(worker as u8)]);
                classes.back(worker, 0);
            }
        }
        let rotated = moving.join().unwrap();
        assert_eq!(
            rotated.map(|r| r.entries),
            if full { Err(MoveError::Full) } else { Ok(2) }
        );
        let bucket = classes.buckets().unwrap().packet(0, &[0]);
        assert_eq!(bucket, u32::from(!full));
        assert!(!classes.look(0, (None, false), |_| 0, |_| 0).still);
    }
}

#[test]
fn the_fewest_buckets_move_when_the_number_of_workers_changes() {
    let after = |table: &[usize], count: usize| {
        let mut table = table.to_vec();
        let moves = spread(&table, count);
        for (bucket, to) in &moves {
            table[*bucket] = *to;
        }
        let has = |w: usize| table.iter().filter(|at| **at == w).count();
        (moves.len(), (0..count).map(has).collect::<Vec<_>>())
    };
    let four: Vec<usize> = (0..128).map(|b| b % 4).collect();
    assert_eq!(after(&four, 4).0, 0);
    assert_eq!(after(&four, 3), (32, vec![43, 43, 42]));
    assert_eq!(after(&four, 1), (96, vec![128]));
    let two: Vec<usize> = (0..128).map(|b| b % 2).collect();
    assert_eq!(after(&two, 4), (64, vec![32; 4]));
}
