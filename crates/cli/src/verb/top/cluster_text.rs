//! All machines of a cluster as tables of text.

use millrace_peer::Figures;

use super::cluster::{All, Machine};
use super::table::{Key, Sort, Table, listed, rate};
use crate::quantity::grouped;

/// Machines of which each drop reason has a column; of more only the sum is shown.
const COLUMNS: usize = 8;
/// The name of the row that has the sum.
const SUM: &str = "all";

fn count(n: u64) -> (f64, String) {
    (n as f64, grouped(n))
}

/// Without what a terminal would obey: names come from other machines.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// How a machine stands, in few words.
fn state(machine: &Machine) -> String {
    let listed = &machine.listed;
    let mut words = vec![match (listed.lease, listed.alive) {
        (true, true) => "alive",
        (true, false) => "joining",
        (false, true) => "lost",
        (false, false) => "gone",
    }];
    if listed.leader {
        words.push("leads");
    }
    if listed.drained {
        words.push("drained");
    }
    match &machine.figures {
        None if listed.lease => words.push("silent"),
        None => {}
        Some(figures) => {
            if figures.stale {
                words.push("stale");
            }
            if !figures.accepts {
                words.push("stopped");
            }
            if figures.stays.is_some() {
                words.push("buckets stay");
            }
        }
    }
    words.join(", ")
}

fn rates(all: &All) -> Table {
    let mut table = Table::new(
        "Machines",
        &[
            ("machine", Key::Order),
            ("state", Key::Order),
            ("packets/s", Key::Packets),
            ("lost/s", Key::Losses),
            ("sent/s", Key::Order),
            ("received/s", Key::Order),
            ("buckets", Key::Order),
            ("wanted", Key::Order),
            ("lease, s", Key::Order),
        ],
    )
    .with_words(1);
    let none = || (0.0, "-".to_owned());
    for machine in &all.machines {
        let figure = |of: fn(&super::cluster::Rates) -> f64| match &machine.rates {
            Some(rates) => rate(of(rates)),
            None => none(),
        };
        let figures = machine.figures.as_ref();
        let lease = figures.and_then(|f| f.lease);
        // What the machine itself says, where it does; a bucket on its way is with nobody.
        let has = figures.map(|f| f.peers.buckets);
        let has = has.or(machine.listed.buckets.map(|n| n as u64));
        let cells = vec![
            (0.0, state(machine)),
            figure(|r| r.packets_per_second),
            figure(|r| r.lost_per_second),
            figure(|r| r.sent_per_second),
            figure(|r| r.received_per_second),
            has.map_or_else(none, count),
            machine.listed.wanted.map_or_else(none, |n| count(n as u64)),
            lease.map_or_else(none, |s| (s, format!("{s:.1}"))),
        ];
        table.row(plain(&machine.listed.name), cells);
    }
    table
}

/// A count of a machine, or of all.
type Count = fn(&Figures) -> u64;

/// Rows of counts: a machine each that has answered, and their sum.
fn counts(all: &All, title: &'static str, columns: &[(&'static str, Count)]) -> Table {
    let heads = columns.iter().map(|(head, _)| (*head, Key::Order));
    let heads: Vec<_> = [("machine", Key::Order)].into_iter().chain(heads).collect();
    let mut table = Table::new(title, &heads);
    let mut row = |name: String, figures: &Figures| {
        let cells = columns.iter().map(|(_, of)| count(of(figures)));
        table.row(name, cells.collect());
    };
    for machine in &all.machines {
        if let Some(figures) = &machine.figures {
            row(plain(&machine.listed.name), figures);
        }
    }
    if all.answered > 0 {
        row(SUM.to_owned(), &all.sum);
    }
    table
}

fn fates(all: &All) -> Table {
    counts(
        all,
        "Packets so far",
        &[
            ("read", |f| f.read),
            ("forwarded", |f| f.forwarded),
            ("dropped", |f| f.dropped),
            ("passed", |f| f.passed),
            ("consumed", |f| f.consumed),
            ("aborted", |f| f.aborted),
            ("sent on", |f| f.peers.sent),
            ("received", |f| f.peers.received),
            ("missed", |f| f.peers.missed.saturating_add(f.lost.missed)),
        ],
    )
}

fn moves(all: &All) -> Table {
    counts(
        all,
        "Buckets between machines",
        &[
            ("given", |f| f.peers.given),
            ("taken", |f| f.peers.taken),
            ("entries", |f| f.peers.entries),
            ("refused", |f| f.peers.refused),
            ("parked", |f| f.peers.parked),
            ("unmarked", |f| f.peers.unmarked),
            ("malformed", |f| f.peers.malformed),
        ],
    )
}

/// Copies; nothing where no machine keeps any.
fn copies(all: &All) -> Table {
    if all.sum.peers.copies.is_none() {
        return Table::new("Copies", &[]);
    }
    counts(
        all,
        "Copies",
        &[
            ("rows", |f| f.peers.copies.map_or(0, |c| c.rows)),
            ("behind", |f| f.peers.copies.map_or(0, |c| c.behind)),
            ("delay, us", |f| {
                f.peers.copies.map_or(0, |c| c.delay_ns / 1000)
            }),
            ("slow", |f| f.peers.copies.map_or(0, |c| c.slow)),
            ("filed", |f| f.peers.copies.map_or(0, |c| c.filed)),
            ("kept here", |f| f.peers.copies.map_or(0, |c| c.entries)),
            ("inherited", |f| f.peers.copies.map_or(0, |c| c.inherited)),
            ("refused", |f| f.peers.copies.map_or(0, |c| c.refused)),
        ],
    )
}

fn reasons(all: &All) -> Table {
    let answered: Vec<_> = { all.machines.iter() }
        .filter_map(|m| Some((plain(&m.listed.name), m.figures.as_ref()?)))
        .collect();
    let each = answered.len() <= COLUMNS;
    let mut heads = vec![
        ("reason".to_owned(), Key::Order),
        (SUM.to_owned(), Key::Losses),
    ];
    if each {
        heads.extend(answered.iter().map(|(name, _)| (name.clone(), Key::Order)));
    }
    let mut table = Table::titled("Dropped and aborted so far", heads);
    for (reason, sum) in &all.sum.reasons {
        let mut cells = vec![count(*sum)];
        if each {
            let of = |f: &Figures| f.reasons.get(reason).copied().unwrap_or(0);
            cells.extend(answered.iter().map(|(_, f)| count(of(f))));
        }
        table.row(plain(reason), cells);
    }
    table
}

/// What stands above the tables: the cluster, and its packets.
pub fn summary(all: &All) -> [String; 2] {
    let buckets = match all.buckets {
        Some(n) => format!(
            "{n} buckets, {} to move, {} without owner",
            all.moving, all.unowned
        ),
        None => format!("{} buckets with machines", all.sum.peers.buckets),
    };
    let uneven = match all.balances {
        true => "",
        false => "  SOME PACKETS HAVE NO FATE",
    };
    let cluster = format!(
        "{}  version {}  {buckets}",
        plain(&all.cluster),
        all.version
    );
    let packets = format!(
        "{} of {} machines answer  {} packets/s, {} lost/s{uneven}  (over {:.2} s)",
        all.answered,
        all.machines.len(),
        rate(all.rates.packets_per_second).1,
        rate(all.rates.lost_per_second).1,
        all.interval
    );
    [cluster, packets]
}

/// All tables, sorted.
pub fn tables(all: &All, sort: Sort) -> Vec<Table> {
    let mut tables = vec![
        rates(all),
        fates(all),
        reasons(all),
        moves(all),
        copies(all),
    ];
    // Sums stand last: only the first table and the one of reasons are sorted.
    for (at, table) in tables.iter_mut().enumerate() {
        if at == 0 || at == 2 {
            table.sort(sort);
        }
    }
    tables
}

/// Who has not answered, and why, and whose buckets stay.
pub fn notes(all: &All) -> Vec<String> {
    // One that is gone is not missing: the table says so.
    let missing = |m: &&Machine| m.listed.lease || m.listed.alive;
    let silent = all.machines.iter().filter(missing).filter_map(|m| {
        let why = m.silent.as_ref()?;
        let (name, peer) = (&m.listed.name, &m.listed.peer);
        Some(plain(&format!("{name} at {peer} does not answer: {why}")))
    });
    let stays = all.machines.iter().filter_map(|m| {
        let why = m.figures.as_ref()?.stays.as_ref()?;
        Some(plain(&format!("{}: {why}", m.listed.name)))
    });
    silent.chain(stays).collect()
}

/// All of it as text.
pub fn text(all: &All, sort: Sort) -> String {
    let mut lines = vec![summary(all).join("  ")];
    lines.extend(notes(all));
    listed(lines, tables(all, sort))
}
