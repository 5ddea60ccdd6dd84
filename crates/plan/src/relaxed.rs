//! Ways in which a run under a plan may differ from the sequential program, by name.

use millrace_model::Model;
use millrace_model::model::Use;
use millrace_model::observe::surroundings;
use millrace_object::contract::Relaxed;
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::{Program, StateObject};

use crate::plan::{HomePlan, ObjectPlan, Relaxation};
use crate::room;
use crate::solved::Solved;
use millrace_place::Treatment;

/// All of it, on this many cores.
pub(crate) fn relaxations(
    (program, model): (&Program, &mut Model),
    (objects, homes): (&[ObjectPlan], &[HomePlan]),
    cores: u32,
    solved: &Solved,
) -> Vec<Relaxation> {
    let mut out = Vec::new();
    // As even as the table can be.
    let indexes = 1_u32 << solved.space.index_bits().min(31);
    let largest = f64::from(indexes.div_ceil(cores.max(1))) / f64::from(indexes);
    for o in objects {
        let Some(declared) = program.objects.get(o.id.0) else {
            continue;
        };
        let means = match o.treatment {
            Treatment::Shard | Treatment::Hybrid => {
                let part = room::part(declared, largest, cores as usize);
                sharded(o, declared, part, homes)
            }
            Treatment::Merge | Treatment::Spread => parted(model, o, declared),
            Treatment::Transact if declared.kind.leases() => vec![(
                Relaxed::Lease.name(),
                "which free number is leased: each core takes those of its own pool first"
                    .to_owned(),
            )],
            // Every replica has the whole, and does what one would.
            Treatment::Alone | Treatment::Lock | Treatment::Transact | Treatment::Replicate => {
                Vec::new()
            }
        };
        let named = |(name, meaning): (&'static str, String)| Relaxation {
            name,
            object: o.name.clone(),
            meaning,
        };
        out.extend(means.into_iter().map(named));
    }
    if cores > 1 && objects.iter().any(|o| o.treatment == Treatment::Replicate) {
        let of_packets = [
            (
                "order",
                "packets of one flow are on all cores and leave by several queues, so they may leave in another order than they came",
            ),
            (
                "lost",
                "where rows come with packets and not by a ring, a packet whose row no core received has no effect on any, and no output",
            ),
        ];
        out.extend(of_packets.map(|(name, meaning)| Relaxation {
            name,
            object: "packets".to_owned(),
            meaning: meaning.to_owned(),
        }));
    }
    if cores > 1 {
        out.extend(of_the_core(program, model, cores));
    }
    out
}

/// Of what each core has a part of this many entries.
fn sharded(
    o: &ObjectPlan,
    declared: &StateObject,
    part: u64,
    homes: &[HomePlan],
) -> Vec<(&'static str, String)> {
    let home = homes.iter().any(|h| h.id == o.id);
    let relaxed = declared.kind.relaxed().iter();
    let means = |relaxed: &Relaxed| {
        match relaxed {
        Relaxed::Capacity if declared.kind.leases() && home => {
            "the numbers of a table index can be used up while others have some: the flow that \
             needs one is refused as if none were left"
                .to_owned()
        }
        Relaxed::Capacity if declared.kind.leases() => {
            "a core's share of the numbers can be used up while others have some".to_owned()
        }
        Relaxed::Capacity if part == declared.capacity => format!(
            "each core has room for all {part} entries: nothing is refused that one core would \
             take, and all cores together take more"
        ),
        Relaxed::Capacity => format!(
            "a core's part, {part} of {} entries, can be full while others have room",
            declared.capacity
        ),
        Relaxed::Lease => {
            match home {
                true => "which free number is leased: each core has its own to choose from",
                false => {
                    "which free number is leased: each core has all to choose from, and what reads entries by number tells \
                     those of two cores apart"
                }
            }
            .to_owned()
        }
        Relaxed::Eviction => format!(
            "each core evicts what it used longest ago itself, when its own part is full, of \
             {part} entries"
        ),
        Relaxed::Collision => "keys share counters only with keys of the same core".to_owned(),
    }
    };
    relaxed.map(|r| (r.name(), means(r))).collect()
}

/// Of what each core has one of its own of the full size.
fn parted(model: &Model, o: &ObjectPlan, declared: &StateObject) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if o.treatment == Treatment::Merge && declared.kind.holds_records() {
        out.push((
            "capacity",
            "each core has a ring of the full size: a record is lost, and the packet that brings it goes the way of \
             those that find no room, where its core's ring is full, which is counted, whether or not one core's would \
             be; that one core's would be full where no core's is depends on when its records are taken, and is not \
             counted"
                .to_owned(),
        ));
    }
    let found = model.objects.get(o.id.0);
    let read = found.is_some_and(|o| o.usage == Use::ReadWrite);
    if o.treatment == Treatment::Merge && declared.staleness > 0 && read {
        out.push((
            "staleness",
            format!(
                "a packet may read it as it was up to {} ns of its core's packets before, as far as other cores' packets go",
                declared.staleness
            ),
        ));
    }
    let Some(parts) = found.and_then(|o| o.parts.as_ref()) else {
        return out;
    };
    if declared.kind.evicts {
        out.push((
            "eviction",
            "each core has a table of the full size, and evicts what it used longest ago itself"
                .to_owned(),
        ));
    } else if parts.inserts {
        out.push((
            "capacity",
            "each core has a table of the full size: one core's would be full earlier, when all keys together are too \
             many for it"
                .to_owned(),
        ));
    }
    if parts.latest {
        out.push((
            "latest",
            "each core keeps what its own packets stored last, and who reads it from outside sees one core's; entries of \
             which cores hold something else are counted at the end"
                .to_owned(),
        ));
    }
    out
}

/// Ways in which packets can observe the core that runs them.
fn of_the_core(program: &Program, model: &mut Model, cores: u32) -> Vec<Relaxation> {
    let mut processor = !model.covers() && calls(program, "get_smp_processor_id");
    let mut queue = false;
    for entry in &mut model.entries {
        let seen = surroundings(entry, cores);
        processor |= seen.processor;
        queue |= seen.queue;
    }
    let mut out = Vec::new();
    let mut add = |name, meaning: &str| {
        out.push(Relaxation {
            name,
            object: "packets".to_owned(),
            meaning: meaning.to_owned(),
        });
    };
    if processor {
        add(
            "cpu",
            "results depend on the number of the core that runs a packet, which on one core is always the same; not \
             counted: a run does not know what another number would have shown, and verify gives both sides the number \
             that the packet had",
        );
    }
    if queue {
        add(
            "queue",
            "results depend on the receive queue that a packet comes in by, which on one core is always the same; not \
             counted, as cpu is not",
        );
    }
    out
}

/// Whether a program calls a helper anywhere.
fn calls(program: &Program, name: &str) -> bool {
    let insns = program.functions.iter().flat_map(|f| &f.insns);
    let number = |insn: &Insn| match insn {
        Insn::Call { helper } => Some(*helper),
        _ => None,
    };
    { insns }
        .filter_map(number)
        .any(|n| helper::by_number(n).is_some_and(|h| h.name == name))
}
