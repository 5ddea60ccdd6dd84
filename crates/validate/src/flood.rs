//! State that only many packets reach: a table that is full.
//!
//! A path that adds an entry says which bytes of the packet are the entry's key. Packets that differ in these
//! fill the table, in emitted code alone; the interpreter is then given the entries that are there.

use std::collections::BTreeSet;

use millrace_model::expr::Node;
use millrace_model::expr::walk::cone;
use millrace_object::program::{ObjectId, Role};
use millrace_object::state::{allocator, global, hash, map, ringbuf};
use rand_chacha::ChaCha8Rng;

use crate::packets::Packets;
use crate::pair::Pair;
use crate::run::Validation;
use crate::trial::{Case, Trial, takes_packets, with_contents};
use crate::witness::START;

/// Tables of more entries are not filled.
const MOST: u64 = 1 << 17;
/// Bytes that count the packets.
const DIGITS: usize = 3;
/// Packets that are judged when a table is full.
const AFTER: u64 = 400;

impl Validation<'_> {
    /// Fills each table that a path has found full and no packet yet, and sends packets then.
    pub(crate) fn floods(
        &mut self,
        cases: &[Case],
        mut packets: impl FnMut(u64) -> Packets<ChaCha8Rng>,
        reached: &mut BTreeSet<(usize, usize)>,
    ) {
        if !self.copies() {
            return;
        }
        for i in 0..self.program.objects.len() {
            let object = ObjectId(i);
            let fits = self
                .program
                .objects
                .get(i)
                .is_some_and(|o| o.capacity <= MOST);
            if fits && self.found_full(object, reached) {
                for case in cases {
                    if let Some(digits) = self.digits(object, case)
                        && self.flood(object, case, &digits, packets(i as u64), reached)
                    {
                        break;
                    }
                }
            }
        }
    }

    /// Whether the state of emitted code can be copied: all of it is entries.
    fn copies(&self) -> bool {
        let listed = [
            &map::KIND,
            &hash::KIND,
            &allocator::KIND,
            &ringbuf::KIND,
            &global::KIND,
        ];
        self.program
            .objects
            .iter()
            .all(|o| listed.contains(&o.kind))
    }

    fn found_full(&self, object: ObjectId, reached: &BTreeSet<(usize, usize)>) -> bool {
        let charts = self.charts.iter().enumerate();
        let mut paths =
            charts.flat_map(|(e, c)| c.entry.paths.iter().enumerate().map(move |p| (e, p)));
        paths.any(|(e, (i, p))| {
            let full = |a: &millrace_model::exec::Access| {
                a.object == object && matches!(a.outcome, Some("full" | "none free"))
            };
            !reached.contains(&(e, i)) && p.accesses.iter().any(full)
        })
    }

    /// The last bytes of the packet that are the key of an entry which a path adds, if the case is one of such
    /// a path.
    fn digits(&self, object: ObjectId, case: &Case) -> Option<Vec<usize>> {
        let chart = self.charts.get(case.trial.entry)?;
        let arena = &chart.entry.arena;
        let path = chart.entry.paths.get(case.path)?;
        let added = path
            .accesses
            .iter()
            .find(|a| a.object == object && matches!(a.outcome, Some("added" | "leased")))?;
        // Who leases numbers keeps them under a key of its own.
        let keyed = path.accesses.iter().find(|a| a.outcome == Some("added"));
        let key = &keyed.unwrap_or(added).key;
        let mut at: Vec<usize> = (cone(arena, key, |_| false).into_iter())
            .filter_map(|e| match arena.node(e) {
                Node::Byte { base: None, at } => usize::try_from(*at).ok(),
                _ => None,
            })
            .filter(|at| *at < case.trial.packet.len())
            .collect();
        at.sort_unstable();
        // An address: what stands alone is a protocol or a flag.
        let run = at
            .windows(DIGITS)
            .find(|w| w.last() == w.first().map(|f| f + DIGITS - 1).as_ref());
        let from = *run?.first()?;
        let last = (from..).take_while(|n| at.contains(n)).last()?;
        Some((last + 1 - DIGITS..=last).collect())
    }

    fn flood(
        &mut self,
        object: ObjectId,
        case: &Case,
        digits: &[usize],
        mut packets: Packets<ChaCha8Rng>,
        reached: &mut BTreeSet<(usize, usize)>,
    ) -> bool {
        let program = with_contents(self.program, &case.contents);
        let Ok(mut pair) = Pair::new(&program, self.module, START) else {
            return false;
        };
        for (entry, e) in program.entries.iter().enumerate() {
            if e.role == Role::OnStart
                && self
                    .run("packets", &program, &mut pair, &Trial::idle(entry, START))
                    .is_none()
            {
                return false;
            }
        }
        let trial = Trial {
            time: START,
            ..case.trial.clone()
        };
        match pair.flood(object, &trial, digits) {
            Ok(sent) => self.findings.flooded += sent,
            Err(_) => return false,
        }
        let takers: Vec<usize> = (program.entries.iter().enumerate())
            .filter(|(i, e)| takes_packets(e.role) && !program.is_tail_call_target(*i))
            .map(|(i, _)| i)
            .collect();
        let mut now = START;
        for n in 0..AFTER {
            let Some(entry) = takers.get((n % takers.len().max(1) as u64) as usize) else {
                break;
            };
            let mut trial = packets.trial(*entry, now);
            // Later, entries expire and there is room.
            trial.time = trial.time.min(now + 1_000_000);
            now = trial.time;
            let Some((judged, _)) = self.run("packets", &program, &mut pair, &trial) else {
                break;
            };
            self.tell("packets", &trial, &judged);
            reached.extend(judged.path.map(|p| (trial.entry, p)));
            self.findings.packets += 1;
        }
        true
    }
}
