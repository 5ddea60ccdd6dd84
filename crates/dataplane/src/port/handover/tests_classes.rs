//! Packet classes that move while packets come.
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use super::tests::{Port, all_is_home, bytes, frame, port_by, run, steering};
use super::*;
use crate::classes::{Classes, MoveError};

const CLASSES: u16 = 5;
const WORKERS: usize = 3;

fn port(waiting: Vec<Vec<Vec<u8>>>, classes: &Arc<Classes>) -> Port {
    let classes = classes.clone();
    port_by(waiting, By::Class { classes, port: 0 })
}

fn classes() -> Arc<Classes> {
    let owners = vec![steering(u32::from(CLASSES)).owners()];
    Classes::new(owners, CLASSES, WORKERS)
}

/// Rounds of packets of eight flows of its own for each worker, numbered from 0 by flow.
fn flows(rounds: u16) -> Vec<Vec<Vec<u8>>> {
    let of = |worker: u8| {
        let all = (0..rounds).flat_map(move |n| {
            (0..8).map(move |flow| {
                let mut packet = frame(worker * 8 + flow, 0);
                packet.extend(n.to_be_bytes());
                packet
            })
        });
        all.collect()
    };
    (0..WORKERS as u8).map(of).collect()
}

#[test]
fn a_class_moves_with_none_lost_doubled_overtaken_or_at_two_workers() {
    const ROUNDS: u16 = 3000;
    let classes = classes();
    let mut port = port(flows(ROUNDS), &classes);
    let (over, moves) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut next = vec![0_u16; 8 * WORKERS];
    let mut frames = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0.. {
                let (class, to) = (turn * 3 % usize::from(CLASSES), turn % WORKERS);
                match classes.assign(class, to) {
                    Ok(moved) => {
                        moves.fetch_add(usize::from(moved.from != to), Ordering::Relaxed);
                        assert_eq!(moved.to, to);
                    }
                    Err(error) => return assert_eq!(error, MoveError::Ends),
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        while !port.queues.iter().all(|q| q.ended()) {
            for (worker, queue) in port.queues.iter_mut().enumerate() {
                frames.clear();
                queue.receive(&mut frames, 16, u64::MAX).unwrap();
                for frame in &frames {
                    let bytes = bytes(frame);
                    assert_eq!(frame.class, classes.of(0, &bytes));
                    // Nobody else moves a class here: looking is a part of receiving.
                    assert_eq!(classes.worker(frame.class), worker);
                    let next = &mut next[usize::from(bytes[28])];
                    let number = u16::from_be_bytes([bytes[35], bytes[36]]);
                    assert_eq!(number, *next, "flow {}", bytes[28]);
                    *next += 1;
                }
                queue.release(&frames);
            }
            std::thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        classes.close();
    });
    assert!(next.iter().all(|n| *n == ROUNDS), "{next:?}");
    assert!(moves.load(Ordering::Relaxed) > 10, "{moves:?}");
    all_is_home(&mut port);
}

/// Each worker on a thread of its own: whoever has packets of a class is the only one, and they are the next ones.
#[test]
fn threads_never_have_packets_of_a_class_at_once() {
    const ROUNDS: u16 = 4000;
    let classes = classes();
    let Port { queues, lent } = port(flows(ROUNDS), &classes);
    let next = vec![0_u16; 8 * WORKERS];
    // By class, as that of a guest: where each flow is.
    let states: Vec<_> = (0..CLASSES).map(|_| Mutex::new(next.clone())).collect();
    let (over, moves) = (AtomicBool::new(false), AtomicUsize::new(0));
    let queues = std::thread::scope(|scope| {
        // Two who do not know of each other.
        for first in 0..2_usize {
            let (classes, over, moves) = (&classes, &over, &moves);
            scope.spawn(move || {
                for turn in first.. {
                    let (class, to) = (turn * 3 % usize::from(CLASSES), turn % WORKERS);
                    match classes.assign(class, to) {
                        Ok(moved) => {
                            assert_eq!((usize::from(moved.class), moved.to), (class, to));
                            moves.fetch_add(usize::from(moved.from != to), Ordering::Relaxed);
                        }
                        Err(MoveError::Busy) => std::thread::yield_now(),
                        Err(error) => return assert_eq!(error, MoveError::Ends),
                    }
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let threads: Vec<_> = queues
            .into_iter()
            .map(|mut queue| {
                let (classes, states) = (&classes, &states);
                scope.spawn(move || {
                    let mut frames = Vec::new();
                    while !queue.ended() {
                        frames.clear();
                        queue.receive(&mut frames, 16, u64::MAX).unwrap();
                        for frame in &frames {
                            let mut next = states[usize::from(frame.class)].try_lock().unwrap();
                            let bytes = bytes(frame);
                            let next = &mut next[usize::from(bytes[28])];
                            assert_eq!(u16::from_be_bytes([bytes[35], bytes[36]]), *next);
                            *next += 1;
                        }
                        queue.release(&frames);
                        std::thread::yield_now();
                    }
                    classes.close();
                    queue
                })
            })
            .collect();
        let queues: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        queues
    });
    let all = states.iter().map(|s| s.lock().unwrap().clone());
    let sum: usize = all.flatten().map(usize::from).sum();
    assert_eq!(sum, usize::from(ROUNDS) * 8 * WORKERS);
    assert!(moves.load(Ordering::Relaxed) > 10, "{moves:?}");
    all_is_home(&mut Port { queues, lent });
}

#[test]
fn what_is_held_when_the_run_ends_goes_where_it_would_have_gone() {
    let classes = classes();
    let mut port = port(flows(200), &classes);
    let sent: usize = 200 * 8 * WORKERS;
    let mut frames = Vec::new();
    std::thread::scope(|scope| {
        // From worker 1, which does not come back, so that the move stays under way.
        let moving = scope.spawn(|| classes.assign(1, 2));
        while classes.assign(2, 2) != Err(MoveError::Busy) {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            for worker in [0, 2] {
                port.queues[worker]
                    .receive(&mut frames, 4, u64::MAX)
                    .unwrap();
            }
        }
        assert!(!frames.is_empty() && frames.iter().all(|f| f.class != 1));
        classes.close();
        assert_eq!(moving.join().unwrap(), Err(MoveError::Ends));
    });
    let early = frames.len();
    for (worker, queue) in port.queues.iter_mut().enumerate() {
        let own = frames.iter().filter(|f| classes.worker(f.class) == worker);
        queue.release(&own.copied().collect::<Vec<_>>());
    }
    let got = run(&mut port);
    assert_eq!(early + got.iter().map(Vec::len).sum::<usize>(), sent);
    for (worker, got) in got.iter().enumerate() {
        let own = |p: &Vec<u8>| classes.worker(classes.of(0, p)) == worker;
        assert!(got.iter().all(own), "worker {worker}");
    }
    assert_eq!(classes.assign(1, 2), Err(MoveError::Ends));
}

#[test]
fn a_class_or_worker_that_there_is_not_is_refused() {
    let classes = classes();
    let none = classes.assign(usize::from(CLASSES), 0).unwrap_err();
    assert_eq!(none.to_string(), "there is no class 5: there are 5, from 0");
    let none = classes.assign(0, WORKERS).unwrap_err();
    assert_eq!(
        none.to_string(),
        "there is no worker 3: there are 3, from 0"
    );
    // Without a port there is nothing to wait for.
    assert_eq!(classes.assign(0, 2).map(|m| (m.from, m.to)), Ok((0, 2)));
    assert_eq!(classes.worker(0), 2);
}
