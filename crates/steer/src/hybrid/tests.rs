//! A model check: all orders in which cores run, all moments at which keys move, and drivers that are wrong.

use std::collections::{BTreeMap, HashSet};

use super::*;

type Key = u8;
type Value = u64;

/// What a packet makes of its key's state.
fn after(state: Option<Value>, packet: usize) -> Value {
    state.unwrap_or(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (packet as u64 + 1)
}

/// A row of the history.
#[derive(Clone)]
enum Row {
    Packet { slot: u8, key: Key, packet: usize },
    Moves(Moving<Key>),
    Beat,
}

/// What a core receives; a heartbeat is no packet.
#[derive(Clone)]
struct Received {
    sent: Sent,
    packet: Option<(Key, usize)>,
}

/// One sequence of packets, and what came of it.
struct Scenario {
    cores: u16,
    rows: Vec<Row>,
    queues: Vec<Vec<Received>>,
    /// of each packet, by one core
    outputs: Vec<Value>,
    states: BTreeMap<Key, Value>,
}

#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// cores do not wait for the owner
    Impatient,
    /// packets of sharded keys do not wait for rows
    Unnumbered,
    /// a core applies the rows of all that it has received before the first packet of it
    Burst,
    /// a demoted key's state goes to another core than its packets
    Misplaced,
    /// no heartbeats
    Silent,
}

/// A handover that gives nothing where nothing is published.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Shared {
    passed: Passed<Value>,
    impatient: bool,
}

impl Handover<Value> for Shared {
    fn publish(&mut self, number: u64, state: Option<Value>, others: u16) {
        self.passed.publish(number, state, others);
    }

    fn take(&mut self, number: u64) -> Option<Option<Value>> {
        match self.passed.take(number) {
            None if self.impatient => Some(None),
            taken => taken,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    sides: Vec<Side<Key, Value>>,
    next: Vec<usize>,
    shared: Shared,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Violation {
    Diverged,
    Deadlock,
}

/// `keys` are the packets' keys; before packet i key `moves[i]` is promoted if it is sharded, and demoted if it is not.
fn scenario(cores: u16, keys: &[Key], moves: &[Option<Key>], wrong: Wrong) -> Scenario {
    let mut elephants = Elephants::new(cores, 0);
    let mut rows = Vec::new();
    let mut queues = vec![Vec::new(); usize::from(cores)];
    let (mut outputs, mut states) = (Vec::new(), BTreeMap::new());
    let owner = |key: Key, moved: usize| (u16::from(key) + moved as u16) % cores;
    // A key's owner changes when it is demoted, as it does under a table that was balanced meanwhile.
    let mut moved = [0_usize; 8];
    for (packet, key) in keys.iter().enumerate() {
        if let Some(Some(key)) = moves.get(packet) {
            let count = &mut moved[usize::from(*key)];
            let row = match elephants.slot(key) {
                None => elephants.promote(key, owner(*key, *count)),
                Some(_) => {
                    *count += 1;
                    elephants.demote(key, owner(*key, *count))
                }
            };
            let mut row = row.unwrap();
            if wrong == Wrong::Misplaced && row.direction == Move::Demote {
                row.owner = (row.owner + 1) % cores;
            }
            rows.push(Row::Moves(row));
        }
        let owner = owner(*key, moved[usize::from(*key)]);
        let sent = elephants.packet(key, owner, true).unwrap();
        if let Some(slot) = sent.slot {
            assert!(sent.row && sent.sequence == rows.len() as u64 + 1);
            let key = *key;
            rows.push(Row::Packet { slot, key, packet });
        }
        let state = after(states.get(key).copied(), packet);
        states.insert(*key, state);
        outputs.push(state);
        queues[usize::from(sent.core)].push(Received {
            sent,
            packet: Some((*key, packet)),
        });
    }
    if wrong != Wrong::Silent {
        let sequence = elephants.number().unwrap();
        rows.push(Row::Beat);
        for (core, queue) in queues.iter_mut().enumerate() {
            let sent = Sent {
                core: core as u16,
                sequence,
                slot: None,
                row: true,
            };
            queue.push(Received { sent, packet: None });
        }
    }
    Scenario {
        cores,
        rows,
        queues,
        outputs,
        states,
    }
}

impl Scenario {
    /// One step of a core: a row, or its packet. None: it waits, or is done.
    fn step(&self, world: &World, core: usize, wrong: Wrong) -> Option<Result<World, Violation>> {
        let queue = &self.queues[core];
        let at = world.next[core];
        let received = queue.get(at)?;
        let mut world = world.clone();
        let side = &mut world.sides[core];
        let upto = match (wrong, received.sent.slot) {
            (Wrong::Burst, _) => queue.last()?.sent.sequence,
            (Wrong::Unnumbered, None) if received.packet.is_some() => 0,
            _ => received.sent.sequence,
        };
        // An elephant's own row is its packet's.
        let own = received.sent.row && received.packet.is_some();
        if side.applied() < upto && !(own && side.applied() + 1 == received.sent.sequence) {
            match &self.rows[side.applied() as usize] {
                Row::Beat => side.passed(),
                Row::Packet { slot, key, packet } => {
                    let change = |s: &mut Option<Value>| *s = Some(after(*s, *packet));
                    if side.change(Some(*slot), key, change).is_none() {
                        return Some(Err(Violation::Diverged));
                    }
                    side.passed();
                }
                Row::Moves(row) => {
                    if !side.moves(row, &mut world.shared) {
                        return None;
                    }
                }
            }
            return Some(Ok(world));
        }
        world.next[core] += 1;
        let Some((key, packet)) = received.packet else {
            return Some(Ok(world));
        };
        let output = side.change(received.sent.slot, &key, |s| {
            let state = after(*s, packet);
            *s = Some(state);
            state
        });
        if own {
            side.passed();
        }
        if output != Some(self.outputs[packet]) {
            return Some(Err(Violation::Diverged));
        }
        Some(Ok(world))
    }

    /// All worlds; gives how many there are, or what is wrong with one.
    fn explore(&self, wrong: Wrong) -> Result<usize, Violation> {
        let cores = usize::from(self.cores);
        let start = World {
            sides: (0..self.cores)
                .map(|c| Side::new(c, self.cores, 0))
                .collect(),
            next: vec![0; cores],
            shared: Shared {
                impatient: wrong == Wrong::Impatient,
                ..Shared::default()
            },
        };
        let mut seen = HashSet::from([start.clone()]);
        let mut stack = vec![start];
        while let Some(world) = stack.pop() {
            let mut moved = false;
            for core in 0..cores {
                if let Some(next) = self.step(&world, core, wrong) {
                    moved = true;
                    let next = next?;
                    if seen.insert(next.clone()) {
                        stack.push(next);
                    }
                }
            }
            if !moved {
                self.judge(&world, wrong)?;
            }
        }
        Ok(seen.len())
    }

    /// Of a world in which nothing happens any more.
    fn judge(&self, world: &World, wrong: Wrong) -> Result<(), Violation> {
        let done = self.queues.iter().zip(&world.next);
        if done.into_iter().any(|(queue, next)| *next < queue.len()) {
            return Err(Violation::Deadlock);
        }
        // What ends without heartbeats, ends with rows that cores have still to apply.
        if wrong == Wrong::Silent {
            return Ok(());
        }
        let replicas: Vec<BTreeMap<_, _>> = world
            .sides
            .iter()
            .map(|s| s.replica().filter_map(|(k, s)| Some((*k, (*s)?))).collect())
            .collect();
        let mut all = replicas[0].clone();
        let mut count = all.len();
        for side in &world.sides {
            count += side.own().len();
            all.extend(side.own());
        }
        let equal = replicas.iter().all(|r| *r == replicas[0]);
        let passed = world.shared.passed.waiting() == 0;
        match equal && passed && all == self.states && count == all.len() {
            true => Ok(()),
            false => Err(Violation::Diverged),
        }
    }
}

/// All moments of up to two moves of either key among packets of two keys.
fn patterns(cores: u16, keys: &[Key], wrong: Wrong) -> Result<usize, Violation> {
    let choices = [None, Some(0), Some(1)];
    let mut worlds = 0;
    for pattern in 0..3_usize.pow(keys.len() as u32) {
        let choice = |i: usize| choices[pattern / 3_usize.pow(i as u32) % 3];
        let moves: Vec<_> = (0..keys.len()).map(choice).collect();
        if moves.iter().flatten().count() > 3 {
            continue;
        }
        worlds += scenario(cores, keys, &moves, wrong).explore(wrong)?;
    }
    Ok(worlds)
}

#[test]
fn all_orders() {
    let two = patterns(2, &[0, 1, 0, 0, 1, 0], Wrong::Nothing).unwrap();
    let three = patterns(3, &[0, 0, 1, 0, 0], Wrong::Nothing).unwrap();
    assert!(two > 10_000 && three > 10_000, "{two} {three}");
}

#[test]
fn wrong_drivers() {
    let found = |wrong| patterns(2, &[0, 1, 0, 0, 1, 0], wrong).err();
    for wrong in [
        Wrong::Impatient,
        Wrong::Unnumbered,
        Wrong::Burst,
        Wrong::Misplaced,
    ] {
        assert_eq!(found(wrong), Some(Violation::Diverged));
    }
    assert_eq!(found(Wrong::Silent), Some(Violation::Deadlock));
}

#[test]
fn table() {
    let mut elephants = Elephants::new(4, crate::sequence::LAST - 66);
    assert_eq!(
        elephants.promote(&9, 4),
        Err(MoveError::Owner { owner: 4, cores: 4 })
    );
    assert_eq!(elephants.demote(&9, 1), Err(MoveError::Sharded));
    for key in 0..MAX_ELEPHANTS {
        assert_eq!(usize::from(elephants.promote(&key, 1).unwrap().slot), key);
    }
    assert_eq!(elephants.promote(&3, 1), Err(MoveError::Replicated));
    assert_eq!(elephants.promote(&64, 1), Err(MoveError::Full));
    // Packets of others, and those that touch nothing, take no number.
    let before = elephants.sequence();
    let sharded = elephants.packet(&64, 2, true).unwrap();
    assert_eq!(
        (sharded.core, sharded.sequence, sharded.slot),
        (2, before, None)
    );
    let plain = elephants.packet(&5, 2, false).unwrap();
    assert_eq!((plain.core, plain.row, plain.slot), (0, false, Some(5)));
    assert_eq!(elephants.sequence(), before);
    assert_eq!(elephants.demote(&7, 3).unwrap().slot, 7);
    assert_eq!(elephants.packet(&8, 2, true).unwrap().core, 1);
    assert_eq!(elephants.keys().count(), MAX_ELEPHANTS - 1);
    // Without a number left nothing moves.
    let kept = elephants.clone();
    assert_eq!(elephants.promote(&64, 1), Err(MoveError::Exhausted));
    assert_eq!(elephants.demote(&8, 1), Err(MoveError::Exhausted));
    assert_eq!(elephants.packet(&8, 1, true), Err(MoveError::Exhausted));
    assert_eq!(elephants, kept);
}
