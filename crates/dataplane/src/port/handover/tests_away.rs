//! Two machines of two workers each: classes go from one to the other and back while packets come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use millrace_steer::buckets::{Buckets, Drawn};

use super::tests::{Fed, bytes, frame, steering};
use super::*;
use crate::classes::away::{Elsewhere, MARK, PeerCounts, Settled, Stray};
use crate::classes::{Classes, Task};
use crate::module::{Rest, Stamped};
use crate::port::peers::{Arrival, Arrivals, peers};

const CLASSES: u32 = 4;
const WORKERS: usize = 2;
const ROUNDS: u16 = 2000;

struct ByHash(Owners);

impl Buckets for ByHash {
    fn count(&self) -> u32 {
        CLASSES
    }

    fn packet(&self, _: u32, frame: &[u8]) -> u32 {
        self.0.owner(frame)
    }

    fn entry(&self, _: usize, _: &[u8]) -> Option<u32> {
        None
    }

    fn draw(&self, _: [u8; 32]) -> Option<Drawn> {
        None
    }
}

/// Datagrams on their way to a machine, and how many were sent and have come so far.
#[derive(Default)]
struct Way {
    datagrams: VecDeque<(u32, u8, u16, Vec<u8>)>,
    sent: u64,
    came: u64,
}

type Wire = Arc<Mutex<Way>>;

/// Waits until all that is on its way now has come.
fn arrived(wires: &[Wire]) {
    for wire in wires {
        let sent = wire.lock().unwrap().sent;
        while wire.lock().unwrap().came < sent {
            std::thread::yield_now();
        }
    }
}

/// The other machine, as one sees it.
#[derive(Default)]
struct Other {
    /// this machine's number
    me: u8,
    to: Wire,
    closed: AtomicBool,
    sent: AtomicU64,
    marks: AtomicU64,
    passed: Mutex<Vec<u64>>,
    unmarked: AtomicU64,
    /// no mark is sent
    unordered: bool,
}

impl Other {
    fn put(&self, datagram: (u32, u8, u16, Vec<u8>)) {
        let mut way = self.to.lock().unwrap();
        way.datagrams.push_back(datagram);
        way.sent += 1;
    }
}

impl Elsewhere for Other {
    fn accepts(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    fn send(&self, packet: &Stray<'_>) -> Result<(), Refusal> {
        if packet.hops & !MARK > 1 {
            return Err(Refusal::Circle);
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        let frame = packet.frame.to_vec();
        self.put((packet.port, packet.hops + 1, packet.class, frame));
        Ok(())
    }

    fn owner(&self, _: u16) -> Option<u16> {
        Some(1 - u16::from(self.me))
    }

    fn mark(&self, class: u16, port: u32, by: u16) -> Option<u64> {
        assert_eq!(by, 1 - u16::from(self.me));
        let number = self.marks.fetch_add(1, Ordering::Relaxed);
        let mark = [&[self.me][..], &number.to_be_bytes()].concat();
        (!self.unordered).then(|| {
            self.put((port, 1 | MARK, class, mark));
            number
        })
    }

    fn passed(&self, number: u64) -> bool {
        let mut passed = self.passed.lock().unwrap();
        let at = passed.iter().position(|n| *n == number);
        at.map(|at| passed.swap_remove(at)).is_some()
    }

    fn reached(&self, _: u16, mark: &[u8]) {
        // Where one machine of two has given a class to the other, marks come back to their own.
        if mark[0] == self.me {
            let number = u64::from_be_bytes(mark[1..].try_into().unwrap());
            self.passed.lock().unwrap().push(number);
        }
    }

    fn unmarked(&self) {
        self.unmarked.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> PeerCounts {
        PeerCounts::default()
    }

    fn parked(&self) {}
}

struct In(Wire, Vec<u8>, std::net::UdpSocket);

impl Arrivals for In {
    fn next(&mut self) -> Result<Option<Arrival<'_>>, PortError> {
        let mut way = self.0.lock().unwrap();
        let Some((port, hops, class, frame)) = way.datagrams.pop_front() else {
            return Ok(None);
        };
        way.came += 1;
        self.1 = frame;
        let frame = &self.1;
        Ok(Some(Arrival {
            port,
            hops,
            class,
            frame,
        }))
    }

    fn descriptor(&self) -> RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.2)
    }
}

struct Machine {
    classes: Arc<Classes>,
    other: Arc<Other>,
    inbound: Wire,
    /// by port, that between machines last; by worker
    queues: Vec<Vec<Box<dyn Queue>>>,
    /// by worker: entries, as many as packets of a class were seen
    state: Vec<Vec<u64>>,
    step: Vec<u64>,
    /// packets that no worker got
    refused: Vec<(Refusal, u64)>,
}

/// Flows of its own for each worker of a machine, numbered by flow.
fn flows(machine: u8, rounds: u16) -> Vec<VecDeque<Vec<u8>>> {
    let of = |worker: u8| {
        let all = (0..rounds).flat_map(move |n| {
            (0..8).map(move |flow| {
                let mut packet = frame((machine * WORKERS as u8 + worker) * 8 + flow, 0);
                packet.extend(n.to_be_bytes());
                packet
            })
        });
        all.collect()
    };
    (0..WORKERS as u8).map(of).collect()
}

impl Machine {
    fn new(
        number: u8,
        rounds: u16,
        (inbound, to, unordered): (Wire, Wire, bool),
        has: impl Fn(u32) -> bool,
    ) -> Self {
        let other = Arc::new(Other {
            me: number,
            to,
            unordered,
            ..Other::default()
        });
        let buckets = Arc::new(ByHash(steering(CLASSES).owners()));
        let table: Vec<Option<u32>> = (0..CLASSES)
            .map(|class| has(class).then_some(class % WORKERS as u32))
            .collect();
        let classes = Classes::of_machines(buckets, &table, WORKERS, other.clone());
        let queues = flows(number, rounds).into_iter();
        let queues = queues.map(|waiting| Fed::queue(64, waiting, &Arc::default(), false));
        let by = By::Class {
            classes: classes.clone(),
            port: 0,
        };
        let own = hand_over("x:y", queues.collect(), by, None).unwrap();
        let null = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = Box::new(In(inbound.clone(), Vec::new(), null));
        let between = peers(from, &classes, (1, WORKERS, 64)).unwrap();
        Self {
            classes,
            other,
            inbound,
            queues: vec![own, between.queues],
            state: vec![vec![0; CLASSES as usize]; WORKERS],
            step: vec![0; WORKERS],
            refused: Vec::new(),
        }
    }

    /// One poll iteration of all workers; `each` sees the packets that a worker gets.
    fn turn(&mut self, each: &mut dyn FnMut(usize, &Frame)) {
        let mut frames = Vec::new();
        for worker in 0..WORKERS {
            self.moves(worker);
            for port in &mut self.queues {
                frames.clear();
                port[worker].receive(&mut frames, 16, u64::MAX).unwrap();
                for frame in &frames {
                    self.state[worker][usize::from(frame.class)] += 1;
                    each(worker, frame);
                }
                port[worker].release(&frames);
                let refused = &mut self.refused;
                port[worker].refused(&mut |_, why, packets, _| refused.push((why, packets)));
            }
        }
    }

    /// A worker's part in moves: its state of a class is one entry.
    fn moves(&mut self, worker: usize) {
        if !self.classes.has_changed(self.step[worker]) {
            return;
        }
        self.step[worker] = self.classes.step();
        let own = &mut self.state[worker];
        let put = |own: &mut Vec<u64>, entries: &[(usize, Stamped)]| {
            for (class, entry) in entries {
                own[*class] += entry.stamp;
            }
        };
        match self.classes.task(worker) {
            Some(Task::Look(_)) => self.classes.looked(),
            Some(Task::Take(class)) => {
                let stamp = std::mem::take(&mut own[class as usize]);
                let entry = Stamped {
                    key: Vec::new(),
                    value: Vec::new(),
                    stamp,
                    rest: Rest::default(),
                };
                self.classes.took(worker, vec![(class as usize, entry)]);
            }
            Some(Task::Put(entries) | Task::Bring { entries, .. }) => {
                put(own, &entries);
                self.classes.put(worker, Ok(()));
            }
            Some(Task::Back { entries, .. }) => {
                put(own, &entries);
                self.classes.back(worker, 0);
            }
            Some(Task::TakeAll) | None => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.inbound.lock().unwrap().datagrams.is_empty()
            && self.queues[0].iter().all(|q| q.ended())
    }
}

/// Number and flow of a packet.
fn read(frame: &Frame) -> (usize, u16) {
    let bytes = bytes(frame);
    (
        usize::from(bytes[28]),
        u16::from_be_bytes([bytes[35], bytes[36]]),
    )
}

#[test]
fn classes_go_to_another_machine_and_back_with_none_lost_doubled_or_at_two_machines() {
    // How many moves there are while packets come depends on what else runs.
    let mut moves = 0;
    for _ in 0..50 {
        let (moved, late, unmarked) = moved_while_packets_come(false);
        // A mark's answer is not waited for when this machine is that busy.
        assert!(late == 0 || unmarked > 0, "{late} packets came late");
        moves += moved;
        if moves > 20 {
            return;
        }
    }
    assert!(moves > 0, "nothing moved while packets came");
}

#[test]
fn without_marks_packets_come_late_which_the_test_of_the_order_would_see() {
    assert!((0..200).any(|_| moved_while_packets_come(true).1 > 0));
}

/// How often a class moved, how many packets came behind a later one of their flow, and how many marks were not waited for.
fn moved_while_packets_come(unordered: bool) -> (u64, usize, u64) {
    let (a, b) = (Wire::default(), Wire::default());
    let mut machines = [
        Machine::new(0, ROUNDS, (a.clone(), b.clone(), unordered), |_| true),
        Machine::new(1, ROUNDS, (b, a, unordered), |_| false),
    ];
    let [first, second] = [machines[0].classes.clone(), machines[1].classes.clone()];
    let both = [first, second];
    let wires = [machines[0].inbound.clone(), machines[1].inbound.clone()];
    let over = AtomicBool::new(false);
    let moves = AtomicU64::new(0);
    let flows = 2 * WORKERS * 8;
    let mut seen = vec![Vec::new(); flows];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut at = [0_usize; CLASSES as usize];
            for turn in 0.. {
                let class = turn * 3 % CLASSES as usize;
                let (from, to) = (at[class], 1 - at[class]);
                let Ok(entries) = both[from].give(class) else {
                    return;
                };
                if turn % 5 == 4 {
                    // The other one refused.
                    both[from].settle(class, Settled::Here(entries)).unwrap();
                } else {
                    both[to].take(class, entries, 0).unwrap();
                    both[from].settle(class, Settled::Away).unwrap();
                    both[to].settle(class, Settled::Here(Vec::new())).unwrap();
                    at[class] = to;
                }
                moves.fetch_add(1, Ordering::Relaxed);
                // What was sent on by the table before the last one has come: it is sent on once more, not twice.
                arrived(&wires);
                arrived(&wires);
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let mut quiet = 0;
        while quiet < 200 {
            for (number, machine) in machines.iter_mut().enumerate() {
                let classes = machine.classes.clone();
                machine.turn(&mut |worker, frame| {
                    quiet = 0;
                    assert_eq!(
                        classes.whose(frame.class),
                        Whose::Worker(worker),
                        "{number}"
                    );
                    let (flow, packet) = read(frame);
                    seen[flow].push(packet);
                });
            }
            let empty = machines.iter().all(Machine::is_empty);
            over.store(empty, Ordering::Relaxed);
            quiet = if empty { quiet + 1 } else { 0 };
            std::thread::yield_now();
        }
    });
    for machine in &machines {
        assert!(machine.refused.is_empty(), "{:?}", machine.refused);
    }
    let (mut late, mut all) = (0, 0);
    for packets in &seen {
        late += packets.windows(2).filter(|w| w[0] > w[1]).count();
        all += packets.len() as u64;
        let mut sorted = packets.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..ROUNDS).collect::<Vec<_>>(), "each once");
    }
    let state: u64 = machines.iter().flat_map(|m| m.state.iter().flatten()).sum();
    assert_eq!(state, all, "state is where its packets are");
    let moves = moves.load(Ordering::Relaxed);
    let unmarked = machines.iter();
    let unmarked = unmarked.map(|m| m.other.unmarked.load(Ordering::Relaxed));
    (moves, late, unmarked.sum())
}

/// The flow is the giver's: what it held goes on behind what went before.
#[test]
fn packets_that_waited_go_to_the_other_machine_in_order() {
    let (a, b) = (Wire::default(), Wire::default());
    let mut giver = Machine::new(0, ROUNDS, (a.clone(), b.clone(), false), |_| true);
    let mut taker = Machine::new(1, 0, (b, a, false), |_| false);
    let (from, to) = (giver.classes.clone(), taker.classes.clone());
    let mut seen = vec![Vec::new(); WORKERS * 8];
    let mover = std::thread::spawn(move || {
        for class in 0..CLASSES as usize {
            let entries = from.give(class).unwrap();
            to.take(class, entries, 0).unwrap();
            from.settle(class, Settled::Away).unwrap();
            to.settle(class, Settled::Here(Vec::new())).unwrap();
        }
    });
    let mut quiet = 0;
    while quiet < 200 {
        // Until all have moved there are packets to come.
        for machine in [&mut giver, &mut taker] {
            machine.turn(&mut |_, frame| {
                let (flow, packet) = read(frame);
                seen[flow].push(packet);
            });
        }
        let empty = mover.is_finished() && giver.is_empty() && taker.is_empty();
        quiet = if empty { quiet + 1 } else { 0 };
        std::thread::yield_now();
    }
    mover.join().unwrap();
    for packets in seen {
        assert_eq!(packets, (0..ROUNDS).collect::<Vec<_>>());
    }
    assert!(giver.other.sent.load(Ordering::Relaxed) > 0);
}

#[test]
fn without_a_lease_own_packets_are_dropped_and_no_packet_goes_in_circles() {
    let (a, b) = (Wire::default(), Wire::default());
    let mut one = Machine::new(0, 1, (a.clone(), b.clone(), false), |class| class < 2);
    one.other.closed.store(true, Ordering::Relaxed);
    let classes = one.classes.clone();
    let of = |flow: u8| classes.buckets().unwrap().packet(0, &frame(flow, 0));
    let own = (0..16).filter(|flow| of(*flow) < 2).count() as u64;
    // A packet that was sent on twice, of a class that is away.
    let stray = (0..=255).find(|flow| of(*flow) >= 2).unwrap();
    let twice = (0, 2, 0, frame(stray, 0));
    a.lock().unwrap().datagrams.push_back(twice);
    for _ in 0..50 {
        one.turn(&mut |_, _| panic!("accepted without a lease"));
    }
    let count = |why| -> u64 {
        let all = one.refused.iter().filter(|(w, _)| *w == why);
        all.map(|(_, packets)| packets).sum()
    };
    assert_eq!(count(Refusal::NoLease), own);
    assert_eq!(count(Refusal::Circle), 1);
    assert_eq!(b.lock().unwrap().datagrams.len() as u64, 16 - own);
}
