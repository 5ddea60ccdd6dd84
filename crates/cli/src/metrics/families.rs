//! An account as families of metrics: the run, its ports and its workers.

use std::fmt::Error;
use std::sync::Arc;

use millrace_dataplane::account::{Account, EntryAccount, PortAccount};
use millrace_dataplane::classes::away::CopyCounts;
use millrace_export::Counts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use super::family::{Families, Labels, by, one};
use super::{Latest, elements};

/// The account in the text format of OpenMetrics.
pub fn text(latest: &Arc<Latest>) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("millrace");
    registry.register_collector(Box::new(Counted(latest.clone())));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Counted(Arc<Latest>);

impl Collector for Counted {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (latest, to) = (&self.0, &mut Families(encoder));
        run(to, latest)?;
        ports(to, &latest.account.ports)?;
        workers(to, &latest.account)?;
        replayed(to, &latest.account)?;
        transactions(to, &latest.account)?;
        moved(to, &latest.account)?;
        peers(to, &latest.account)?;
        entries(to, &latest.account)?;
        queues(to, &latest.account)?;
        exported(to, latest.export)?;
        elements::encode(to, latest)
    }
}

/// Which program this is, and since when it runs.
fn run(to: &mut Families<'_>, latest: &Latest) -> Result<(), Error> {
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("architecture", std::env::consts::ARCH),
    ];
    // A gauge and no info: promtool knows the types of the older format alone.
    to.gauges(
        "build_info",
        "The release of millrace that runs, and what it was built for: always 1",
        [(build.map(|(name, value)| (name, value.to_owned())), 1.0)],
    )?;
    to.seconds(
        "start_time",
        "When the run began, since the epoch",
        one(latest.start),
    )?;
    to.seconds(
        "uptime",
        "How long the run has lasted",
        one(latest.account.seconds),
    )
}

/// What replicas of a function have applied.
fn replayed(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let Some(replayed) = account.replayed else {
        return Ok(());
    };
    to.counts(
        "replayed_rows",
        "Rows of other workers' packets that workers applied to their replicas of the state",
        one(replayed),
    )?;
    to.counts(
        "sequenced_rows",
        "Rows that the sequencer made for replicas, heartbeats among them",
        account.rows.map(|rows| ([], rows)),
    )?;
    let behind = account.workers.iter();
    let behind =
        behind.filter_map(|w| Some(([("worker", w.worker.to_string())], w.behind? as f64)));
    to.gauges(
        "worker_behind_rows",
        "Rows that a worker has not applied to its replica yet; when the ring has gone round, the run ends",
        behind,
    )?;
    let Some(elephants) = &account.elephants else {
        return Ok(());
    };
    // Keys are no labels: each would make a new series.
    let now = elephants.iter().filter(|e| e.demoted.is_none()).count();
    to.gauges(
        "elephants",
        "Keys that are replicated while others are sharded",
        one(now as f64),
    )?;
    let moves = [
        ("promotion", elephants.len() as u64),
        ("demotion", (elephants.len() - now) as u64),
    ];
    to.counts(
        "elephant_moves",
        "Moves of keys between their owners and all workers",
        by("move", moves),
    )?;
    to.counts(
        "elephant_packets",
        "Packets of keys while these were replicated",
        one(elephants.iter().map(|e| e.packets).sum()),
    )
}

/// What packets did as transactions.
fn transactions(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let Some(of) = &account.transactions else {
        return Ok(());
    };
    let ends = [
        ("commit", of.commits),
        ("abort", of.aborts),
        ("alone", of.alone),
    ];
    to.counts(
        "transactions",
        "Packets as transactions: those that committed beside others, attempts that did not commit, and packets that ran alone",
        by("end", ends),
    )
}

/// Buckets of the indirection table that changed their workers.
fn moved(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let Some(moved) = &account.moved else {
        return Ok(());
    };
    to.counts(
        "moves",
        "Moves of buckets of the indirection table between workers: buckets that moved, changes of the key of the hash, moves after which all \
             was as before, entries of state that went along, and entries that found room nowhere",
        by("what", [
            ("bucket", moved.moves),
            ("key", moved.keys),
            ("refused", moved.refused),
            ("entry", moved.entries),
            ("lost", moved.lost),
        ]),
    )?;
    to.seconds(
        "moves_waited",
        "How long packets of what moved waited at most: all moves together, and the longest",
        by(
            "which",
            [
                ("all", moved.waited_ns as f64 / 1e9),
                ("longest", moved.longest_ns as f64 / 1e9),
            ],
        ),
    )
}

/// What went between this machine and others of its cluster; packets that it dropped are among the drops, by reason.
fn peers(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let Some(peers) = &account.peers else {
        return Ok(());
    };
    to.counts(
        "peer_packets",
        "Packets between machines of a cluster: sent to their bucket's machine, received from others, of these under an older table, that \
             were no packets of a machine, that found the socket full, that waited; marks, and those that were not waited for",
        by("what", [
            ("sent", peers.sent),
            ("received", peers.received),
            ("older", peers.older),
            ("malformed", peers.malformed),
            ("missed", peers.missed),
            ("parked", peers.parked),
            ("mark", peers.marks),
            ("unmarked", peers.unmarked),
        ]),
    )?;
    to.counts(
        "peer_moves",
        "Moves of buckets between machines of a cluster: buckets that left, that came, entries in both, and hand-overs that were refused",
        by("what", [
            ("given", peers.given),
            ("taken", peers.taken),
            ("entry", peers.entries),
            ("refused", peers.refused),
        ]),
    )?;
    if let Some(copies) = peers.copies {
        copied(to, &copies)?;
    }
    to.gauges(
        "peer_buckets",
        "Buckets of the cluster that this machine has",
        one(peers.buckets as f64),
    )
}

fn copied(to: &mut Families<'_>, copies: &CopyCounts) -> Result<(), Error> {
    to.counts(
        "peer_copies",
        "Copies of buckets on other machines: rows that were told and their bytes, changes that were told later for want of room, connections over \
             which a copy began, that ended since the machine took nothing; rows of others that were filed, that found no room, streams that were refused; buckets of dead machines with which this one went on, \
             of these those of which the copy was not whole, entries that were put in, that found no room",
        by("what", [
            ("row", copies.rows),
            ("byte", copies.bytes),
            ("deferred", copies.deferred),
            ("begun", copies.begun),
            ("slow", copies.slow),
            ("filed", copies.filed),
            ("full", copies.full),
            ("refused", copies.refused),
            ("inherited", copies.inherited),
            ("partial", copies.partial),
            ("entry", copies.inherited_entries),
            ("lost", copies.lost),
        ]),
    )?;
    to.gauges(
        "peer_copies_behind",
        "Rows that were told and are not acknowledged: lost where this machine dies now",
        one(copies.behind as f64),
    )?;
    to.seconds(
        "peer_copies_delay",
        "From telling a row to its acknowledgement",
        one(copies.delay_ns as f64 / 1e9),
    )?;
    to.gauges(
        "peer_copies_entries",
        "Entries of other machines' buckets of which this machine keeps copies",
        one(copies.entries as f64),
    )
}

fn port(port: &PortAccount) -> Labels<1> {
    [("port", port.name.clone())]
}

fn ports(to: &mut Families<'_>, ports: &[PortAccount]) -> Result<(), Error> {
    let fates = ports.iter().flat_map(|p| {
        let fates = [
            ("forwarded", p.forwarded),
            ("dropped", p.dropped),
            ("passed", p.passed),
            ("consumed", p.consumed),
            ("aborted", p.aborted),
        ];
        fates.map(|(fate, count)| {
            let labels = [("port", p.name.clone()), ("fate", fate.to_owned())];
            (labels, count)
        })
    });
    to.counts("packets", "Packets that came in, by port and fate", fates)?;
    let by = |what: fn(&PortAccount) -> u64| ports.iter().map(move |p| (port(p), what(p)));
    to.counts("received_packets", "Packets that came in", by(|p| p.read))?;
    to.bytes("received", "Bytes that came in", by(|p| p.read_bytes))?;
    to.counts("sent_packets", "Packets that left", by(|p| p.sent))?;
    to.bytes("sent", "Bytes that left", by(|p| p.sent_bytes))
}

fn workers(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let label = |worker: u32| [("worker", worker.to_string())];
    let workers = || account.workers.iter();
    to.counts(
        "worker_packets",
        "Packets that a worker ran over",
        workers().map(|w| (label(w.worker), w.packets)),
    )?;
    to.counts(
        "worker_bursts",
        "Bursts that a worker ran",
        workers().map(|w| (label(w.worker), w.bursts)),
    )?;
    let missed = |worker: u32| -> u64 {
        let own = account.queues.iter().filter(|q| q.worker == worker);
        own.map(|q| q.missed).sum()
    };
    to.counts(
        "worker_offered_packets",
        "Packets that came to a worker, whether it ran over them or its ports lost them",
        workers().map(|w| (label(w.worker), w.packets + missed(w.worker))),
    )?;
    to.counts(
        "worker_full_insertions",
        "Insertions that found a worker's part of a divided object full",
        workers().map(|w| (label(w.worker), w.full)),
    )
}

/// The entry itself is a value and no label: a label that changes makes a new series each time.
fn entries(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let of = |value: fn(&EntryAccount) -> f64| {
        account.entries.iter().map(move |e| {
            let labels = [("worker", e.worker.to_string()), ("port", e.port.clone())];
            (labels, value(e))
        })
    };
    to.gauges(
        "worker_heaviest_entry",
        "The entry of the port's indirection table under which most packets of a worker came in the last second",
        of(|e| f64::from(e.entry)),
    )?;
    to.gauges(
        "worker_heaviest_entry_share",
        "Its part of the worker's packets, 0 to 1, by sampling",
        of(|e| e.share),
    )
}

fn queues(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let samples = account.queues.iter().flat_map(|q| {
        let losses = [
            ("missed", q.missed),
            ("unfit", q.unfit),
            ("failed", q.failed),
            ("discarded", q.discarded),
        ];
        losses.map(|(why, count)| {
            let labels = [
                ("queue", q.name.clone()),
                ("worker", q.worker.to_string()),
                ("why", why.to_owned()),
            ];
            (labels, count)
        })
    });
    to.counts(
        "queue_losses",
        "Packets that a port lost before a worker saw them, or that did not leave",
        samples,
    )
}

/// Flow records of sampled packets.
fn exported(to: &mut Families<'_>, export: Option<Counts>) -> Result<(), Error> {
    let Some(c) = export else {
        return Ok(());
    };
    let ends = [
        ("taken", c.sampled.saturating_sub(c.missed)),
        ("missed", c.missed),
    ];
    to.counts(
        "export_samples",
        "Packets that were sampled for flow records: taken, or missed for want of room",
        by("end", ends),
    )?;
    let ends = [("sent", c.records), ("lost", c.lost)];
    to.counts(
        "export_records",
        "Flow records: sent, or lost because the collector was away",
        by("end", ends),
    )
}
