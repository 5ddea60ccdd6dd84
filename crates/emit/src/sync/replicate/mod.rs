//! Treatment `replicate`: every worker has all state, and repeats what the packets of others do to it from rows
//! (`millrace_history`). A packet program has three bodies: `extract` fills a packet's row, without state; `process` is the
//! program on a packet whose row is at hand; `replay` does to state what `process` does, from the row alone.
//!
//! A packet's own row is the order: `process` computes the row anew where it first touches state, and goes on only if it is
//! the one that the others have. Where it is not, because somebody changed the packet meanwhile, state is replayed from the
//! row like everywhere else, and the packet is aborted.
//!
//! Rows come in bursts, and are replayed in passes like packets are run (`codegen/prefetch.rs`): the first finds the
//! token of the key with which each row's site looks, the second fetches the entry, the third changes state. The own
//! packets of a burst go the same way, with the tokens of their rows. A token is a hint: what it says is compared
//! with the table where it is used, so the passes leave the state that row by row leaves.
//!
//! Objects of which each worker has a part (`Held::Divided`) may stand beside: rows say nothing of them, packets come to the
//! worker whose part they need, and what is replicated depends on none of them. They age with their worker's own packets.
//!
//! Ageing and timers happen at row numbers, at the row's time: each row first fires what is due, and every
//! [`AGE`]th reclaims what has expired. So all replicas do the same at the same place of their order.

mod expression;
mod hooks;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use millrace_check::facts::{Op, StepId};
use millrace_history::effects::replicated;
use millrace_history::{History, Refusal, Steps};
use millrace_object::program::ObjectId;
use millrace_place::Held;

use super::{Bodies, Input, Treatment};
use crate::codegen::{
    self, Body, Burst, Cut, OUTLINED, PARAMETERS, Role, Slice, Text, Unit, key_words, prefetched,
    slot, takes_packets,
};
use crate::error::Error;
use crate::sync::{Hooks, Plain};
use crate::target::unsupported;
use hooks::{Cell, Extract, Head, Process, Replay};

/// How many rows lie between two reclaimings of what has expired.
pub const AGE: u32 = 32;

/// Up to this many steps a site's replay is written into the loops over rows.
const INLINED: usize = 500;

/// Every worker has a replica.
struct Replicate {
    head: Head,
    /// by entry of the program
    entries: Vec<Option<Process>>,
    /// by entry: its number among those for packets
    packets: Vec<usize>,
    /// objects of which each worker has a part
    parted: BTreeSet<ObjectId>,
}

/// For placements that replicate an object.
pub(super) fn make(input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    let places = &input.sharing.placement.objects;
    if !places.iter().any(|p| p.held == Held::Replicated) {
        return Ok(None);
    }
    let unsupported = |what: String| Error::Unsupported {
        place: input.program.name.clone(),
        what,
    };
    let other = |(at, place): &(usize, &millrace_place::Place)| match place.held {
        Held::Replicated | Held::Copied | Held::Own { .. } | Held::Divided => false,
        // Records, and what is per CPU, each core has for itself.
        Held::Merged { .. } => replicated(input.program, ObjectId(*at)),
        _ => true,
    };
    if let Some((_, place)) = places.iter().enumerate().find(other) {
        return Err(unsupported(format!(
            "replicating some objects while workers hold {} otherwise; replicate it too",
            place.name
        )));
    }
    let parted = places.iter().enumerate();
    let parted: BTreeSet<ObjectId> = parted
        .filter(|(_, place)| place.held == Held::Divided)
        .map(|(at, _)| ObjectId(at))
        .collect();
    let history = History::beside(input.program, input.checked, &parted);
    if let Some(refusal) = history.refusals.first() {
        return Err(refused(input, refusal));
    }
    let head = Head::of(&history);
    let mut first = 0;
    let mut entries = Vec::new();
    for part in &history.flows {
        let entry = entries.len();
        entries.push(part.as_ref().map(|part| {
            let mut keys = BTreeMap::new();
            for (number, site) in (first as u32 + 1..).zip(&part.sites) {
                let step = input.wholes.get(entry).map(|w| w.step(site.step));
                if let Some(object) = step.and_then(|s| prefetched(input.program, s)) {
                    keys.insert(site.step, (number, object));
                }
            }
            let cell = Cell {
                head,
                part: part.clone(),
                first,
                numbers: keys.iter().map(|(step, key)| (*step, key.0)).collect(),
                keys,
            };
            first += part.sites.len();
            Process(cell)
        }));
    }
    let mut packets = Vec::new();
    let mut count = 0;
    for entry in &input.program.entries {
        packets.push(count);
        count += usize::from(takes_packets(entry.role));
    }
    Ok(Some(Box::new(Replicate {
        head,
        entries,
        packets,
        parted,
    })))
}

fn refused(input: &Input, refusal: &Refusal) -> Error {
    unsupported(
        input.program,
        refusal.line.as_ref(),
        format!(
            "replicating {}: {}",
            refusal.object.as_deref().unwrap_or("its state"),
            refusal.reason
        ),
    )
}

impl Replicate {
    /// Entries for packets with their numbers among these.
    fn cells(&self) -> impl Iterator<Item = (usize, usize, &Cell)> {
        let all = self.entries.iter().enumerate();
        all.filter_map(|(at, p)| Some((at, *self.packets.get(at)?, &p.as_ref()?.0)))
    }
}

/// Whether control comes back to a step of a slice.
fn again(slice: &Slice, step: StepId) -> bool {
    let mut all = slice.layout().into_iter();
    all.any(|id| slice.successors(id).contains(&step))
}

/// The steps of a part.
fn sliced<'a>(
    whole: &Slice<'a>,
    start: StepId,
    steps: &Steps,
    stops: &dyn Fn(StepId) -> bool,
    given: &dyn Fn(StepId) -> bool,
) -> Slice<'a> {
    let jumps: BTreeMap<StepId, StepId> = (steps.jumps.iter())
        .filter_map(|(at, to)| Some((*at, (*to)?)))
        .collect();
    let mut slice = whole.part(&[start], Arc::new(jumps), |id| {
        if whole.role(id) == Role::Absent {
            return Role::Absent;
        }
        if stops(id) {
            return Role::Stop;
        }
        if given(id) {
            return Role::Given;
        }
        match (whole.step(id).op, steps.jumps.get(&id)) {
            (Op::Branch { .. }, Some(None)) => Role::Stop,
            (Op::Branch { .. }, Some(Some(_))) => Role::Pass,
            (Op::Plain(_), _) if !steps.runs.get(id.0).copied().unwrap_or(false) => Role::Pass,
            _ => Role::Run,
        }
    });
    slice.verdict = false;
    slice
}

impl Treatment for Replicate {
    fn title(&self) -> &'static str {
        "treatment replicate (every worker has all state, and repeats what packets of others do to it)"
    }

    fn bodies(&self, entry: usize) -> Bodies<'_> {
        let process = self.entries.get(entry).and_then(Option::as_ref);
        let touches = process.filter(|p| !p.0.part.sites.is_empty());
        Bodies {
            first: touches.map_or(&Plain, |p| p as &dyn Hooks),
            fallback: None,
            hot: false,
            sites: touches.map(|p| &p.0.numbers).filter(|n| !n.is_empty()),
        }
    }

    fn includes(&self, unit: &Unit) -> String {
        let objects = self.cells().flat_map(|(.., cell)| cell.keys.values());
        let declared = objects.filter_map(|(_, o)| unit.program.objects.get(o.0));
        let words = declared.map(key_words).max().unwrap_or(1);
        format!(
            "#include \"sync/rows.h\"\n{}",
            slot(words, std::iter::empty())
        )
    }

    fn members(&self) -> Vec<&'static str> {
        vec![
            "const u8 *row; /* of the packet at hand, until that has touched state */",
            "u64 rows;      /* how many it made by itself */",
        ]
    }

    fn parts(
        &self,
        out: &mut Text,
        unit: &Unit,
        wholes: &[Slice],
        file: &str,
    ) -> Result<(), Error> {
        let none = BTreeMap::new();
        for (entry, number, cell) in self.cells() {
            let Some(whole) = wholes.get(entry) else {
                continue;
            };
            let sites: Vec<StepId> = cell.part.sites.iter().map(|s| s.step).collect();
            if sites.is_empty() {
                continue;
            }
            let stops = |id: StepId| sites.contains(&id);
            let slice = sliced(whole, StepId(0), &cell.part.extract, &stops, &|_| false);
            let hooks = Extract(cell);
            let body = Body::of_part(&slice, unit, &none, &cell.cut(&slice), &hooks)?;
            let signature = format!("{OUTLINED} u32 extract{number}_row({PARAMETERS}, u8 *row)");
            codegen::function_text(
                out,
                file,
                "Fills a packet's row; 0: it touches no state.",
                &signature,
                &body,
            )?;
            for (at, site) in cell.part.sites.iter().enumerate() {
                let given = |id: StepId| site.late.contains_key(&id);
                let steps = &cell.part.replay;
                let slice = sliced(whole, site.step, steps, &|_| false, &given);
                let mut hooks = Replay {
                    site,
                    key: cell.keys.get(&site.step).map(|key| key.0),
                    again: again(&slice, site.step),
                };
                let body = Body::of_part(&slice, unit, &none, &Cut::default(), &hooks)?;
                let linkage = match slice.runs() <= INLINED {
                    true => "MR_INLINE",
                    false => OUTLINED,
                };
                let signature = format!(
                    "{linkage} void replay{number}_{at}({PARAMETERS}, const u8 *row, const struct slot *slot)"
                );
                let title = "What a packet does to state, from its row.";
                codegen::function_text(out, file, title, &signature, &body)?;
                let Some(key) = hooks.key.take() else {
                    continue;
                };
                let slice = whole.part(&[site.step], Arc::default(), |id| match id == site.step {
                    true => Role::Site(key),
                    false => Role::Absent,
                });
                let body = Body::of_part(&slice, unit, &none, &Cut::default(), &hooks)?;
                let signature = format!(
                    "MR_INLINE void token{number}_{at}({PARAMETERS}, const u8 *row, struct slot *slot)"
                );
                let title = "The token of the key with which that begins, and its first prefetch.";
                codegen::function_text(out, file, title, &signature, &body)?;
            }
        }
        Ok(())
    }

    fn burst(&self, burst: &Burst) -> String {
        let sites = text::sites(self.cells());
        let first = match burst.index {
            0 => text::common(self.head, &sites, (burst, &self.parted)),
            _ => String::new(),
        };
        let cell = self.cells().find(|(_, number, _)| *number == burst.index);
        first + &text::burst(burst, cell.map(|(_, _, cell)| cell))
    }

    fn table(&self) -> [String; 2] {
        let programs: Vec<usize> = self.cells().map(|(_, number, _)| number).collect();
        let sites = text::sites(self.cells());
        text::table(
            self.head,
            &programs,
            (
                sites.iter().any(text::Replayed::passes),
                !self.parted.is_empty(),
            ),
        )
    }
}
