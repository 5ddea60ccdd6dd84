//! Serialisability of packets that were transactions, by versions.
//!
//! Each worker has noted which version words its packets read and wrote (fastpath/sync/accesses.h). From that a graph is made: a
//! packet comes behind the one that wrote the version which it read, before the one that overwrote that, and behind those
//! before it of its worker; one that ran alone comes behind and before all others as its number says; and so do decisions over
//! the expiry of entries. A cycle says that no order of the packets gives what they saw (Adya, Liskov and O'Neil,
//! Generalized Isolation Level Definitions, ICDE 2000, section 4.3), and is a finding. Otherwise the order in which one core
//! repeats them is a topological one, the earliest packets first: it comes from the versions, and from nothing that the protocol
//! says of itself.
//!
//! A lost write shows here in that two packets wrote one version; a version from before the window that has been overwritten
//! in an earlier one, in that it is too old. Where programs compute with time, no packet may be earlier than one whose value
//! it read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use millrace_dataplane::module::Access;

use crate::compare::Kind;

/// What versions say so far.
#[derive(Debug, Default)]
pub struct History {
    /// by word: the latest version of all windows before
    latest: HashMap<u64, u64>,
    /// places that were given
    places: u64,
    /// what was looked at
    pub seen: Seen,
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// packets that committed beside others
    pub committed: u64,
    /// packets that ran alone
    pub alone: u64,
    /// decisions over the expiry of entries
    pub decisions: u64,
    /// reads and writes of words
    pub accesses: u64,
    /// pairs of packets of different workers of which one has to be first
    pub dependencies: u64,
}

/// An entry that was removed for its age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// the map's place among the objects
    pub object: usize,
    /// its key
    pub key: Vec<u8>,
    /// ns
    pub time: u64,
}

/// A place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// the packet's `number`; none of a decision over expiry
    pub packet: Option<u64>,
    /// what was removed with it
    pub removed: Vec<Removed>,
}

/// An order of a window's packets, and what forbids it.
#[derive(Debug, Default)]
pub struct Order {
    /// in the order in which one core repeats them
    pub places: Vec<Place>,
    /// the place of the first of them among all windows
    pub first: u64,
    /// what no order gives: of a packet, if it is one's
    pub faults: Vec<(Option<u64>, Kind, String)>,
}

/// What one packet did, or one decision.
#[derive(Debug, Default)]
struct Node {
    worker: usize,
    packet: Option<u64>,
    alone: u64,
    itself: bool,
    time: u64,
    reads: Vec<(u64, u64, bool)>,
    writes: Vec<(u64, u64)>,
    removed: Vec<Removed>,
}

/// All that is known of one word.
#[derive(Debug, Default)]
struct Word {
    /// by version: who wrote it
    wrote: BTreeMap<u64, usize>,
    /// version, who read it, and whether it may not be earlier
    read: Vec<(u64, usize, bool)>,
}

impl History {
    /// The order of a window, from what each worker noted.
    pub fn order(&mut self, noted: Vec<Vec<Access>>) -> Order {
        let nodes = self.nodes(noted);
        let mut order = Order {
            first: self.places,
            ..Order::default()
        };
        let edges = self.edges(&nodes, &mut order.faults);
        let sorted = sorted(&nodes, &edges, &mut order.faults);
        let place = |at: &usize| {
            nodes.get(*at).map(|node| Place {
                packet: node.packet,
                removed: node.removed.clone(),
            })
        };
        order.places = sorted.iter().filter_map(place).collect();
        self.places += order.places.len() as u64;
        order
    }

    fn nodes(&mut self, noted: Vec<Vec<Access>>) -> Vec<Node> {
        let mut nodes = Vec::new();
        for (worker, accesses) in noted.into_iter().enumerate() {
            let mut node = Node::default();
            for access in accesses {
                match access {
                    Access::Read {
                        word,
                        version,
                        timed,
                    } => node.reads.push((word, version, timed)),
                    Access::Write { word, version } => node.writes.push((word, version)),
                    Access::Expired { object, key, time } => {
                        node.removed.push(Removed { object, key, time });
                    }
                    Access::End {
                        packet,
                        alone,
                        itself,
                        time,
                    } => {
                        let seen = &mut self.seen;
                        seen.accesses += (node.reads.len() + node.writes.len()) as u64;
                        match (packet, itself) {
                            (Some(_), false) => seen.committed += 1,
                            (Some(_), true) => seen.alone += 1,
                            (None, _) => seen.decisions += 1,
                        }
                        nodes.push(Node {
                            worker,
                            packet,
                            alone,
                            itself,
                            time,
                            ..std::mem::take(&mut node)
                        });
                    }
                }
            }
        }
        nodes
    }

    /// Who is behind whom: for each node those that follow it.
    fn edges(
        &mut self,
        nodes: &[Node],
        faults: &mut Vec<(Option<u64>, Kind, String)>,
    ) -> Vec<Vec<usize>> {
        let mut edges: Vec<Vec<usize>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut words: HashMap<u64, Word> = HashMap::new();
        let who = |at: usize| nodes.get(at).and_then(|n| n.packet);
        for (at, node) in nodes.iter().enumerate() {
            for (word, version) in &node.writes {
                let of = words.entry(*word).or_default();
                if let Some(other) = of.wrote.insert(*version, at)
                    && other != at
                {
                    let what = format!(
                        "{} and {} wrote one version of a word: one of the writes is lost",
                        named(nodes, other),
                        named(nodes, at)
                    );
                    faults.push((who(at).or(who(other)), Kind::Cycle, what));
                }
            }
            for (word, version, timed) in &node.reads {
                words
                    .entry(*word)
                    .or_default()
                    .read
                    .push((*version, at, *timed));
            }
        }
        for (word, of) in words {
            let before = self.latest.get(&word).copied().unwrap_or(0);
            let old = of.read.iter().find(|(version, ..)| *version < before);
            if let Some((_, at, _)) = old {
                let what = format!(
                    "{} read what had been overwritten before it came",
                    named(nodes, *at)
                );
                faults.push((who(*at), Kind::Cycle, what));
            }
            let mut link = |from: usize, to: usize| {
                let (Some(a), Some(b)) = (nodes.get(from), nodes.get(to)) else {
                    return;
                };
                if from == to {
                    return;
                }
                self.seen.dependencies += u64::from(a.worker != b.worker);
                if let Some(next) = edges.get_mut(from) {
                    next.push(to);
                }
            };
            let mut last = None;
            for at in of.wrote.values() {
                if let Some(last) = last {
                    link(last, *at);
                }
                last = Some(*at);
            }
            for (version, at, timed) in &of.read {
                if let Some((_, wrote)) = of.wrote.range(..=version).next_back() {
                    link(*wrote, *at);
                }
                let mut later = of.wrote.range(version + 1..).map(|(_, at)| *at);
                if let Some(next) = later.find(|next| next != at) {
                    link(*at, next);
                }
                if let Some(wrote) = of.wrote.get(version).filter(|_| *timed)
                    && let (Some(a), Some(b)) = (nodes.get(*wrote), nodes.get(*at))
                    && a.time > b.time
                {
                    let what = format!(
                        "{} had a time {} ns before that of {}, whose value it read",
                        named(nodes, *at),
                        a.time - b.time,
                        named(nodes, *wrote)
                    );
                    faults.push((who(*at), Kind::Time, what));
                }
            }
            let latest = of.wrote.keys().next_back().copied().unwrap_or(0);
            let read = of.read.iter().map(|(version, ..)| *version).max();
            let latest = latest.max(read.unwrap_or(0)).max(before);
            self.latest.insert(word, latest);
        }
        self.barriers(nodes, &mut edges);
        edges
    }

    /// A worker's packets are in their order, and packets that ran alone behind and before all others.
    fn barriers(&self, nodes: &[Node], edges: &mut [Vec<usize>]) {
        let mut link = |from: usize, to: usize| {
            if let Some(next) = edges.get_mut(from) {
                next.push(to);
            }
        };
        for (at, pair) in nodes.windows(2).enumerate() {
            if let [a, b] = pair
                && a.worker == b.worker
            {
                link(at, at + 1);
            }
        }
        let alone: BTreeMap<u64, usize> = { nodes.iter().enumerate() }
            .filter(|(_, n)| n.itself)
            .map(|(at, n)| (n.alone, at))
            .collect();
        let all: Vec<usize> = alone.values().copied().collect();
        for pair in all.windows(2) {
            if let [a, b] = pair {
                link(*a, *b);
            }
        }
        for (at, node) in nodes.iter().enumerate().filter(|(_, n)| !n.itself) {
            if let Some((_, before)) = alone.range(..=node.alone).next_back() {
                link(*before, at);
            }
            if let Some((_, behind)) = alone.range(node.alone + 1..).next() {
                link(at, *behind);
            }
        }
    }
}

/// A topological order, of all that may come next the earliest packet first. What lies on cycles is put where its time says, and is
/// a fault.
fn sorted(
    nodes: &[Node],
    edges: &[Vec<usize>],
    faults: &mut Vec<(Option<u64>, Kind, String)>,
) -> Vec<usize> {
    let mut before = vec![0_usize; nodes.len()];
    for to in edges.iter().flatten() {
        if let Some(count) = before.get_mut(*to) {
            *count += 1;
        }
    }
    let key = |at: usize| {
        let node = nodes.get(at);
        let number = node.and_then(|n| n.packet).unwrap_or(0);
        (node.map_or(0, |n| n.time), number, at)
    };
    let mut done = vec![false; nodes.len()];
    let mut ready: BinaryHeap<Reverse<(u64, u64, usize)>> = (0..nodes.len())
        .filter(|at| before.get(*at) == Some(&0))
        .map(|at| Reverse(key(at)))
        .collect();
    let mut sorted = Vec::with_capacity(nodes.len());
    loop {
        while let Some(Reverse((.., at))) = ready.pop() {
            if done.get(at).copied().unwrap_or(true) {
                continue;
            }
            if let Some(done) = done.get_mut(at) {
                *done = true;
            }
            sorted.push(at);
            for to in edges.get(at).into_iter().flatten() {
                if let Some(count) = before.get_mut(*to) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        ready.push(Reverse(key(*to)));
                    }
                }
            }
        }
        let left = (0..nodes.len()).filter(|at| done.get(*at) == Some(&false));
        let Some(next) = left.min_by_key(|at| key(*at)) else {
            return sorted;
        };
        let cycle = cycle(next, edges, &done);
        let all: Vec<String> = cycle.iter().map(|at| named(nodes, *at)).collect();
        let what = format!(
            "no order of one core gives what these saw, each of which comes before the next and the last before the first: {}",
            all.join(", ")
        );
        let first = cycle.iter().find_map(|at| nodes.get(*at)?.packet);
        faults.push((first, Kind::Cycle, what));
        // One of the cycle goes first.
        let first = cycle.first().copied().unwrap_or(next);
        ready.push(Reverse(key(first)));
    }
}

/// A cycle among what is left, behind `from`.
fn cycle(from: usize, edges: &[Vec<usize>], done: &[bool]) -> Vec<usize> {
    // Everything that is left has somebody before it that is left, too: against the edges one comes to a cycle.
    let mut before: HashMap<usize, usize> = HashMap::new();
    for (at, next) in edges.iter().enumerate() {
        if done.get(at) == Some(&false) {
            for to in next {
                before.entry(*to).or_insert(at);
            }
        }
    }
    let (mut met, mut path, mut at) = (HashMap::new(), Vec::new(), from);
    loop {
        if let Some(begin) = met.insert(at, path.len()) {
            let mut cycle: Vec<usize> = path.split_off(begin);
            cycle.reverse();
            return cycle;
        }
        path.push(at);
        match before.get(&at) {
            Some(earlier) => at = *earlier,
            None => return vec![from],
        }
    }
}

/// A node in words.
fn named(nodes: &[Node], at: usize) -> String {
    let Some(node) = nodes.get(at) else {
        return "a packet".to_owned();
    };
    match node.packet {
        Some(number) => format!("packet {number} (worker {})", node.worker),
        None => format!("an entry's expiry (worker {})", node.worker),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: u64, version: u64) -> Access {
        Access::Read {
            word,
            version,
            timed: true,
        }
    }

    fn write(word: u64, version: u64) -> Access {
        Access::Write { word, version }
    }

    fn end(number: u64, time: u64) -> Access {
        Access::End {
            packet: Some(number),
            alone: 0,
            itself: false,
            time,
        }
    }

    fn numbers(order: &Order) -> Vec<u64> {
        order.places.iter().filter_map(|p| p.packet).collect()
    }

    #[test]
    fn the_order_is_that_of_versions_and_not_of_arrival() {
        let mut history = History::default();
        // Packet 0 read what packet 1 wrote, and packet 2 overwrote what packet 0 read.
        let order = history.order(vec![
            vec![read(8, 2), end(0, 10)],
            vec![read(8, 1), write(8, 2), end(1, 5), write(8, 3), end(2, 5)],
        ]);
        assert_eq!(numbers(&order), [1, 0, 2]);
        assert!(order.faults.is_empty(), "{:?}", order.faults);
        // Of one window behind the other.
        let order = history.order(vec![vec![read(8, 3), end(3, 20)]]);
        assert_eq!((order.first, order.faults.len()), (3, 0));
        let order = history.order(vec![vec![read(8, 2), end(4, 20)]]);
        assert!(order.faults[0].2.contains("overwritten"), "{order:?}");
    }

    #[test]
    fn write_skew_is_a_cycle() {
        let order = History::default().order(vec![
            vec![read(8, 1), write(16, 2), end(0, 1)],
            vec![read(16, 1), write(8, 2), end(1, 1)],
        ]);
        assert_eq!(order.faults.len(), 1, "{order:?}");
        assert!(order.faults[0].2.contains("packet 0") && order.faults[0].2.contains("packet 1"));
        assert_eq!(order.faults[0].1, Kind::Cycle);
        // Both are repeated all the same.
        assert_eq!(order.places.len(), 2);
    }

    #[test]
    fn a_lost_write_and_a_time_that_goes_back_are_faults() {
        let order = History::default().order(vec![
            vec![read(8, 1), write(8, 2), end(0, 1)],
            vec![read(8, 1), write(8, 2), end(1, 1)],
        ]);
        assert!(
            order.faults.iter().any(|f| f.2.contains("lost")),
            "{order:?}"
        );
        let order = History::default().order(vec![
            vec![write(8, 2), end(0, 9)],
            vec![read(8, 2), end(1, 7)],
        ]);
        let fault = &order.faults[0];
        assert_eq!((fault.0, fault.1), (Some(1), Kind::Time));
        assert!(fault.2.contains("2 ns before"), "{order:?}");
    }

    #[test]
    fn who_ran_alone_is_behind_and_before_all_others() {
        let alone = Access::End {
            packet: Some(1),
            alone: 1,
            itself: true,
            time: 1,
        };
        let after = Access::End {
            packet: Some(2),
            alone: 1,
            itself: false,
            time: 0,
        };
        let order = History::default().order(vec![vec![alone], vec![end(0, 5), after]]);
        assert_eq!(numbers(&order), [0, 1, 2]);
        // Reading an old version behind it is a cycle.
        let after = Access::End {
            packet: Some(2),
            alone: 1,
            itself: false,
            time: 0,
        };
        let alone = Access::End {
            packet: Some(1),
            alone: 1,
            itself: true,
            time: 1,
        };
        let order =
            History::default().order(vec![vec![write(8, 5), alone], vec![read(8, 4), after]]);
        assert_eq!(order.faults.len(), 1, "{order:?}");
    }
}
