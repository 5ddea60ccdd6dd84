//! An account as families of metrics: the run, its ports and its workers.

use std::fmt::Error;
use std::sync::Arc;

use millrace_dataplane::account::{Account, EntryAccount, PortAccount};
use millrace_dataplane::classes::away::CopyCounts;
use millrace_export::Counts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::{Registry, Unit};

use super::family::{Labels, counts, gauges};
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
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (latest, encoder) = (&self.0, &mut encoder);
        run(encoder, latest)?;
        ports(encoder, &latest.account.ports)?;
        workers(encoder, &latest.account)?;
        replayed(encoder, &latest.account)?;
        transactions(encoder, &latest.account)?;
        moved(encoder, &latest.account)?;
        peers(encoder, &latest.account)?;
        entries(encoder, &latest.account)?;
        queues(encoder, &latest.account)?;
        exported(encoder, latest.export)?;
        elements::encode(encoder, latest)
    }
}

/// Which program this is, and since when it runs.
fn run(encoder: &mut DescriptorEncoder<'_>, latest: &Latest) -> Result<(), Error> {
    let build = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("architecture", std::env::consts::ARCH),
    ];
    // A gauge and no info: promtool knows the types of the older format alone.
    gauges(
        encoder,
        (
            "build_info",
            "The release of millrace that runs, and what it was built for: always 1",
        ),
        None,
        [(build.map(|(name, value)| (name, value.to_owned())), 1.0)],
    )?;
    gauges(
        encoder,
        ("start_time", "When the run began, since the epoch"),
        Some(&Unit::Seconds),
        [([], latest.start)],
    )?;
    gauges(
        encoder,
        ("uptime", "How long the run has lasted"),
        Some(&Unit::Seconds),
        [([], latest.account.seconds)],
    )
}

/// What replicas of a function have applied.
fn replayed(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let Some(replayed) = account.replayed else {
        return Ok(());
    };
    counts(
        encoder,
        (
            "replayed_rows",
            "Rows of other workers' packets that workers applied to their replicas of the state",
        ),
        None,
        [([], replayed)],
    )?;
    counts(
        encoder,
        (
            "sequenced_rows",
            "Rows that the sequencer made for replicas, heartbeats among them",
        ),
        None,
        account.rows.map(|rows| ([], rows)),
    )?;
    let behind = account.workers.iter();
    let behind =
        behind.filter_map(|w| Some(([("worker", w.worker.to_string())], w.behind? as f64)));
    gauges(
        encoder,
        (
            "worker_behind_rows",
            "Rows that a worker has not applied to its replica yet; when the ring has gone round, the run ends",
        ),
        None,
        behind,
    )?;
    let Some(elephants) = &account.elephants else {
        return Ok(());
    };
    // Keys are no labels: each would make a new series.
    let now = elephants.iter().filter(|e| e.demoted.is_none()).count();
    gauges(
        encoder,
        (
            "elephants",
            "Keys that are replicated while others are sharded",
        ),
        None,
        [([], now as f64)],
    )?;
    let moves = [
        ("promotion", elephants.len() as u64),
        ("demotion", (elephants.len() - now) as u64),
    ];
    counts(
        encoder,
        (
            "elephant_moves",
            "Moves of keys between their owners and all workers",
        ),
        None,
        moves.map(|(what, count)| ([("move", what.to_owned())], count)),
    )?;
    counts(
        encoder,
        (
            "elephant_packets",
            "Packets of keys while these were replicated",
        ),
        None,
        [([], elephants.iter().map(|e| e.packets).sum())],
    )
}

/// What packets did as transactions.
fn transactions(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let Some(of) = &account.transactions else {
        return Ok(());
    };
    let ends = [
        ("commit", of.commits),
        ("abort", of.aborts),
        ("alone", of.alone),
    ];
    counts(
        encoder,
        (
            "transactions",
            "Packets as transactions: those that committed beside others, attempts that did not commit, and packets that ran alone",
        ),
        None,
        ends.map(|(end, count)| ([("end", end.to_owned())], count)),
    )
}

/// A count of something, by the label `what`.
fn of(what: &str, count: u64) -> ([(&'static str, String); 1], u64) {
    ([("what", what.to_owned())], count)
}

/// Buckets of the indirection table that changed their workers.
fn moved(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let Some(moved) = &account.moved else {
        return Ok(());
    };
    counts(
        encoder,
        (
            "moves",
            "Moves of buckets of the indirection table between workers: buckets that moved, changes of the key of the hash, moves after which all \
             was as before, entries of state that went along, and entries that found room nowhere",
        ),
        None,
        [
            of("bucket", moved.moves),
            of("key", moved.keys),
            of("refused", moved.refused),
            of("entry", moved.entries),
            of("lost", moved.lost),
        ],
    )?;
    gauges(
        encoder,
        (
            "moves_waited",
            "How long packets of what moved waited at most: all moves together, and the longest",
        ),
        Some(&Unit::Seconds),
        [
            ([("which", "all".to_owned())], moved.waited_ns as f64 / 1e9),
            (
                [("which", "longest".to_owned())],
                moved.longest_ns as f64 / 1e9,
            ),
        ],
    )
}

/// What went between this machine and others of its cluster; packets that it dropped are among the drops, by reason.
fn peers(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let Some(peers) = &account.peers else {
        return Ok(());
    };
    counts(
        encoder,
        (
            "peer_packets",
            "Packets between machines of a cluster: sent to their bucket's machine, received from others, of these under an older table, that \
             were no packets of a machine, that found the socket full, that waited; marks, and those that were not waited for",
        ),
        None,
        [
            of("sent", peers.sent),
            of("received", peers.received),
            of("older", peers.older),
            of("malformed", peers.malformed),
            of("missed", peers.missed),
            of("parked", peers.parked),
            of("mark", peers.marks),
            of("unmarked", peers.unmarked),
        ],
    )?;
    counts(
        encoder,
        (
            "peer_moves",
            "Moves of buckets between machines of a cluster: buckets that left, that came, entries in both, and hand-overs that were refused",
        ),
        None,
        [
            of("given", peers.given),
            of("taken", peers.taken),
            of("entry", peers.entries),
            of("refused", peers.refused),
        ],
    )?;
    if let Some(copies) = peers.copies {
        copied(encoder, &copies)?;
    }
    gauges(
        encoder,
        (
            "peer_buckets",
            "Buckets of the cluster that this machine has",
        ),
        None,
        [([], peers.buckets as f64)],
    )
}

fn copied(encoder: &mut DescriptorEncoder<'_>, copies: &CopyCounts) -> Result<(), Error> {
    let of = |what: &str, count: u64| ([("what", what.to_owned())], count);
    counts(
        encoder,
        (
            "peer_copies",
            "Copies of buckets on other machines: rows that were told and their bytes, changes that were told later for want of room, connections over \
             which a copy began, that ended since the machine took nothing; rows of others that were filed, that found no room, streams that were refused; buckets of dead machines with which this one went on, \
             of these those of which the copy was not whole, entries that were put in, that found no room",
        ),
        None,
        [
            of("row", copies.rows),
            of("byte", copies.bytes),
            of("deferred", copies.deferred),
            of("begun", copies.begun),
            of("slow", copies.slow),
            of("filed", copies.filed),
            of("full", copies.full),
            of("refused", copies.refused),
            of("inherited", copies.inherited),
            of("partial", copies.partial),
            of("entry", copies.inherited_entries),
            of("lost", copies.lost),
        ],
    )?;
    gauges(
        encoder,
        (
            "peer_copies_behind",
            "Rows that were told and are not acknowledged: lost where this machine dies now",
        ),
        None,
        [([], copies.behind as f64)],
    )?;
    gauges(
        encoder,
        (
            "peer_copies_delay",
            "From telling a row to its acknowledgement",
        ),
        Some(&Unit::Seconds),
        [([], copies.delay_ns as f64 / 1e9)],
    )?;
    gauges(
        encoder,
        (
            "peer_copies_entries",
            "Entries of other machines' buckets of which this machine keeps copies",
        ),
        None,
        [([], copies.entries as f64)],
    )
}

fn port(port: &PortAccount) -> Labels<1> {
    [("port", port.name.clone())]
}

fn ports(encoder: &mut DescriptorEncoder<'_>, ports: &[PortAccount]) -> Result<(), Error> {
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
    counts(
        encoder,
        ("packets", "Packets that came in, by port and fate"),
        None,
        fates,
    )?;
    let by = |what: fn(&PortAccount) -> u64| ports.iter().map(move |p| (port(p), what(p)));
    let bytes = Some(&Unit::Bytes);
    counts(
        encoder,
        ("received_packets", "Packets that came in"),
        None,
        by(|p| p.read),
    )?;
    counts(
        encoder,
        ("received", "Bytes that came in"),
        bytes,
        by(|p| p.read_bytes),
    )?;
    counts(
        encoder,
        ("sent_packets", "Packets that left"),
        None,
        by(|p| p.sent),
    )?;
    counts(
        encoder,
        ("sent", "Bytes that left"),
        bytes,
        by(|p| p.sent_bytes),
    )
}

fn workers(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let label = |worker: u32| [("worker", worker.to_string())];
    let workers = || account.workers.iter();
    counts(
        encoder,
        ("worker_packets", "Packets that a worker ran over"),
        None,
        workers().map(|w| (label(w.worker), w.packets)),
    )?;
    counts(
        encoder,
        ("worker_bursts", "Bursts that a worker ran"),
        None,
        workers().map(|w| (label(w.worker), w.bursts)),
    )?;
    let missed = |worker: u32| -> u64 {
        let own = account.queues.iter().filter(|q| q.worker == worker);
        own.map(|q| q.missed).sum()
    };
    counts(
        encoder,
        (
            "worker_offered_packets",
            "Packets that came to a worker, whether it ran over them or its ports lost them",
        ),
        None,
        workers().map(|w| (label(w.worker), w.packets + missed(w.worker))),
    )?;
    counts(
        encoder,
        (
            "worker_full_insertions",
            "Insertions that found a worker's part of a divided object full",
        ),
        None,
        workers().map(|w| (label(w.worker), w.full)),
    )
}

/// The entry itself is a value and no label: a label that changes makes a new series each time.
fn entries(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
    let of = |value: fn(&EntryAccount) -> f64| {
        account.entries.iter().map(move |e| {
            let labels = [("worker", e.worker.to_string()), ("port", e.port.clone())];
            (labels, value(e))
        })
    };
    gauges(
        encoder,
        (
            "worker_heaviest_entry",
            "The entry of the port's indirection table under which most packets of a worker came in the last second",
        ),
        None,
        of(|e| f64::from(e.entry)),
    )?;
    gauges(
        encoder,
        (
            "worker_heaviest_entry_share",
            "Its part of the worker's packets, 0 to 1, by sampling",
        ),
        None,
        of(|e| e.share),
    )
}

fn queues(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
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
    counts(
        encoder,
        (
            "queue_losses",
            "Packets that a port lost before a worker saw them, or that did not leave",
        ),
        None,
        samples,
    )
}

/// Flow records of sampled packets.
fn exported(encoder: &mut DescriptorEncoder<'_>, export: Option<Counts>) -> Result<(), Error> {
    let Some(c) = export else {
        return Ok(());
    };
    let ends = [
        ("taken", c.sampled.saturating_sub(c.missed)),
        ("missed", c.missed),
    ];
    counts(
        encoder,
        (
            "export_samples",
            "Packets that were sampled for flow records: taken, or missed for want of room",
        ),
        None,
        ends.map(|(end, count)| ([("end", end.to_owned())], count)),
    )?;
    let ends = [("sent", c.records), ("lost", c.lost)];
    counts(
        encoder,
        (
            "export_records",
            "Flow records: sent, or lost because the collector was away",
        ),
        None,
        ends.map(|(end, count)| ([("end", end.to_owned())], count)),
    )
}
