//! The figures as tables of text, sorted.

use millrace_steer::named;

use super::view::View;

named! {
    /// Sort order of rows; a table without such a column keeps its order.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Key {
        /// in the order of the run
        #[default]
        Order = "order",
        Packets = "packets",
        Losses = "losses",
        Cost = "ns a packet",
        Bursts = "bursts",
    }
}

impl Key {
    /// The one so many places further, round and round.
    pub fn step(self, places: usize) -> Self {
        let at = Self::ALL.iter().position(|k| *k == self).unwrap_or(0);
        let next = Self::ALL.get((at + places) % Self::ALL.len());
        next.copied().unwrap_or_default()
    }

    /// The one before.
    pub fn back(self) -> Self {
        self.step(Self::ALL.len() - 1)
    }
}

/// How rows are sorted: most first, unless reversed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    pub key: Key,
    pub reversed: bool,
}

/// A column: what stands above it, and what it is sorted as.
type Column = (String, Key);

/// A table: the first columns are text and left-aligned, all others are numbers.
pub struct Table {
    pub title: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// columns of text behind the first one
    words: usize,
}

struct Row {
    name: String,
    cells: Vec<(f64, String)>,
}

/// Packets or bursts a second.
pub(super) fn rate(value: f64) -> (f64, String) {
    let text = match value {
        v if v >= 99.95e6 => format!("{:.0} M", v / 1e6),
        v if v >= 999.5e3 => format!("{:.2} M", v / 1e6),
        v if v >= 99.95e3 => format!("{:.0} k", v / 1e3),
        v if v >= 999.5 => format!("{:.1} k", v / 1e3),
        v if v > 0.0 && v < 9.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    (value, text)
}

fn ns(value: f64) -> (f64, String) {
    (value, format!("{value:.1}"))
}

fn gbit(value: f64) -> (f64, String) {
    (value, format!("{:.3}", value / 1e9))
}

impl Table {
    pub(super) fn new(title: &'static str, columns: &[(&str, Key)]) -> Self {
        let columns = columns.iter().map(|(head, key)| ((*head).to_owned(), *key));
        Self::titled(title, columns.collect())
    }

    /// With columns that are named after something.
    pub(super) fn titled(title: &'static str, columns: Vec<Column>) -> Self {
        Self {
            title,
            columns,
            rows: Vec::new(),
            words: 0,
        }
    }

    /// As many columns behind the first one are text.
    pub(super) fn with_words(mut self, columns: usize) -> Self {
        self.words = columns;
        self
    }

    pub(super) fn row(&mut self, name: impl Into<String>, cells: Vec<(f64, String)>) {
        self.rows.push(Row {
            name: name.into(),
            cells,
        });
    }

    pub(super) fn sort(&mut self, sort: Sort) {
        let wanted = |c: &Column| c.1 == sort.key && sort.key != Key::Order;
        let column = self.columns.iter().skip(1).position(wanted);
        let value = |row: &Row| column.and_then(|c| row.cells.get(c)).map_or(0.0, |c| c.0);
        // Stable: rows of the same figure keep the run's order and do not jump about.
        self.rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
        if sort.reversed {
            self.rows.reverse();
        }
    }

    /// The line above the columns, then one line a row; empty where there are no rows.
    pub fn lines(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let widths = self.widths(WIDTH);
        self.block(&widths, 0..self.columns.len().saturating_sub(1))
    }

    /// The same for a screen of so many columns: where a line is longer, columns come closer, then in several blocks, each with the first column.
    pub fn blocks(&self, width: usize) -> Vec<Vec<String>> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let fits = |widths: &[usize]| widths.iter().sum::<usize>() <= width;
        let widths = Some(self.widths(WIDTH)).filter(|w| fits(w));
        let widths = widths.unwrap_or_else(|| self.widths(0));
        let (first, rest) = widths.split_first().map_or((0, &[][..]), |(f, r)| (*f, r));
        let (mut blocks, mut from, mut taken) = (Vec::new(), 0, first);
        for (at, of) in rest.iter().enumerate() {
            // A column that is wider than the screen is cut off.
            if at > from && taken + of > width {
                blocks.push(self.block(&widths, from..at));
                (from, taken) = (at, first);
            }
            taken += of;
        }
        blocks.push(self.block(&widths, from..rest.len()));
        blocks
    }

    /// Widths of all columns, those of numbers `least` at least; with the two spaces that part a column from the one before.
    fn widths(&self, least: usize) -> Vec<usize> {
        let longest = |name: &str, cells: &mut dyn Iterator<Item = &String>| {
            let cells = cells.map(|c| c.chars().count()).max();
            cells.unwrap_or(0).max(name.chars().count())
        };
        let names = &mut self.rows.iter().map(|r| &r.name);
        let first = self.columns.first().map_or("", |c| &c.0);
        let mut widths = vec![longest(first, names).max(FIRST.min(least + 1))];
        for (at, (head, _)) in self.columns.iter().skip(1).enumerate() {
            let cells = &mut self.rows.iter().filter_map(|r| Some(&r.cells.get(at)?.1));
            let own = longest(head, cells) + 2;
            widths.push(if at < self.words { own } else { own.max(least) });
        }
        widths
    }

    /// Lines of the first column and of these of the others.
    fn block(&self, widths: &[usize], columns: std::ops::Range<usize>) -> Vec<String> {
        let width = |at: usize| widths.get(at).copied().unwrap_or(0);
        let line = |name: &str, cell: &dyn Fn(usize) -> String| {
            let mut line = format!("{name:<0$}", width(0));
            for at in columns.clone() {
                let (text, width) = (cell(at), width(at + 1));
                line.push_str(&match at < self.words {
                    true => format!("  {text:<0$}", width.saturating_sub(2)),
                    false => format!("{text:>width$}"),
                });
            }
            line.trim_end().to_owned()
        };
        let head = |at: usize| {
            self.columns
                .get(at)
                .map_or_else(String::new, |c| c.0.clone())
        };
        let mut lines = vec![line(&head(0), &|at| head(at + 1))];
        for row in &self.rows {
            let cell = |at: usize| row.cells.get(at).map_or_else(String::new, |c| c.1.clone());
            let mut text = line(&row.name, &cell);
            // Behind the last column stands what has none.
            if columns.end + 1 >= self.columns.len() {
                let more = row.cells.iter().skip(columns.end);
                more.for_each(|(_, more)| text.push_str(more));
            }
            lines.push(text);
        }
        lines
    }
}

/// Text in lines of so many characters, where a word is no longer; those behind the first one begin with two spaces.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let length = line.chars().count() + 1 + word.chars().count();
        if line.trim().is_empty() {
            line.push_str(word);
        } else if length <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// The least width of the first column, and the width of the others, characters.
const FIRST: usize = 14;
const WIDTH: usize = 13;

/// All tables, sorted.
pub fn tables(view: &View, sort: Sort) -> Vec<Table> {
    let mut all = vec![
        functions(view),
        guests(view),
        ports(view),
        reasons(view),
        queues(view),
        workers(view),
        entries(view),
        elephants(view),
    ];
    for table in &mut all {
        table.sort(sort);
    }
    all
}

fn functions(view: &View) -> Table {
    let mut table = Table::new(
        "Elements",
        &[
            ("element", Key::Order),
            ("packets/s", Key::Packets),
            ("ns/packet", Key::Cost),
            ("cycles", Key::Order),
            ("share, %", Key::Order),
            ("bursts/s", Key::Bursts),
            ("a burst", Key::Order),
        ],
    );
    for f in &view.functions {
        let (packets, bursts) = (rate(f.packets_per_second), rate(f.bursts_per_second));
        let cells = vec![
            packets,
            ns(f.ns_per_packet),
            f.cycles_per_packet.map_or((0.0, "-".into()), ns),
            ns(f.share * 100.0),
            bursts,
            ns(f.packets_per_burst),
        ];
        table.row(&f.name, cells);
    }
    table
}

/// What failed last stands at the end of a row, where the screen may cut it off.
fn guests(view: &View) -> Table {
    let mut table = Table::new(
        "Guests",
        &[
            ("element", Key::Order),
            ("state", Key::Order),
            ("failures", Key::Losses),
            ("restarts", Key::Order),
            ("passed by", Key::Order),
            ("dropped", Key::Order),
        ],
    );
    for guest in &view.guests {
        let account = &guest.account;
        let name = match account.class {
            Some(class) => format!("{}, class {class}", guest.name),
            None => guest.name.clone(),
        };
        let count = |n: u64| (n as f64, crate::quantity::grouped(n));
        let mut cells = vec![
            (0.0, account.state.clone()),
            count(account.failures),
            count(account.restarts),
            count(account.passed_by),
            count(account.dropped),
        ];
        if let Some(last) = &account.last_failure {
            cells.push((0.0, format!("  {}", last.error)));
        }
        table.row(name, cells);
    }
    table
}

fn ports(view: &View) -> Table {
    let mut table = Table::new(
        "Ports",
        &[
            ("port", Key::Order),
            ("in/s", Key::Packets),
            ("in Gbit/s", Key::Order),
            ("out/s", Key::Order),
            ("out Gbit/s", Key::Order),
            ("dropped/s", Key::Losses),
            ("aborted/s", Key::Order),
            ("passed/s", Key::Order),
            ("consumed/s", Key::Order),
        ],
    );
    for p in &view.ports {
        let cells = vec![
            rate(p.in_per_second),
            gbit(p.in_bits_per_second),
            rate(p.out_per_second),
            gbit(p.out_bits_per_second),
            rate(p.dropped_per_second),
            rate(p.aborted_per_second),
            rate(p.passed_per_second),
            rate(p.consumed_per_second),
        ];
        table.row(&p.name, cells);
    }
    table
}

fn reasons(view: &View) -> Table {
    let mut table = Table::new(
        "Dropped and aborted",
        &[
            ("reason", Key::Order),
            ("packets/s", Key::Losses),
            ("of all, %", Key::Order),
            ("so far", Key::Order),
        ],
    );
    for r in &view.reasons {
        let share = super::sample::per(r.packets_per_second * 100.0, view.packets_per_second);
        let so_far = (r.packets as f64, crate::quantity::grouped(r.packets));
        table.row(
            &r.reason,
            vec![rate(r.packets_per_second), ns(share), so_far],
        );
    }
    table
}

fn queues(view: &View) -> Table {
    let mut table = Table::new(
        "Lost by ports",
        &[
            ("port", Key::Order),
            ("missed/s", Key::Losses),
            ("unfit/s", Key::Order),
            ("failed/s", Key::Order),
            ("on purpose/s", Key::Order),
        ],
    );
    for q in &view.queues {
        let cells = vec![
            rate(q.missed_per_second),
            rate(q.unfit_per_second),
            rate(q.failed_per_second),
            rate(q.discarded_per_second),
        ];
        table.row(&q.name, cells);
    }
    table
}

fn workers(view: &View) -> Table {
    // Where every part has room there is nothing to say of it.
    let some_full = view.workers.iter().any(|w| w.full_per_second > 0.0);
    let full = some_full.then_some(("full/s", Key::Order));
    let heads = [
        ("worker", Key::Order),
        ("packets/s", Key::Packets),
        ("dropped/s", Key::Losses),
        ("missed/s", Key::Order),
        ("of all, %", Key::Order),
        ("ns/packet", Key::Cost),
        ("bursts/s", Key::Bursts),
        ("a burst", Key::Order),
        ("inside, %", Key::Order),
    ];
    let replicas = view.workers.iter().any(|w| w.behind.is_some());
    let behind = replicas.then_some(("behind", Key::Order));
    let heads: Vec<_> = heads.into_iter().chain(full).chain(behind).collect();
    let mut table = Table::new("Workers", &heads);
    for w in &view.workers {
        let mut cells = vec![
            rate(w.packets_per_second),
            rate(w.lost_per_second),
            rate(w.missed_per_second),
            ns(w.share * 100.0),
            ns(w.ns_per_packet),
            rate(w.bursts_per_second),
            ns(w.packets_per_burst),
            ns(w.inside * 100.0),
        ];
        if some_full {
            cells.push(rate(w.full_per_second));
        }
        if let Some(behind) = w.behind {
            cells.push((behind as f64, crate::quantity::grouped(behind)));
        }
        table.row(w.worker.to_string(), cells);
    }
    table
}

/// Entries that are shown: the heaviest, and what it stands beside.
const HEAVIEST: usize = 3;

fn entries(view: &View) -> Table {
    let mut table = Table::new(
        "Heaviest entries",
        &[
            ("port", Key::Order),
            ("entry", Key::Order),
            ("of", Key::Order),
            ("worker", Key::Order),
            ("of all, %", Key::Packets),
        ],
    );
    let number = |n: u32| (f64::from(n), n.to_string());
    for e in view.entries.iter().take(HEAVIEST) {
        let cells = vec![
            number(e.entry),
            number(e.entries),
            number(e.worker),
            ns(e.share * 100.0),
        ];
        table.row(&e.port, cells);
    }
    table
}

/// Keys that are replicated while others are sharded.
fn elephants(view: &View) -> Table {
    let mut table = Table::new(
        "Elephants",
        &[
            ("flow", Key::Order),
            ("packets/s", Key::Packets),
            ("packets", Key::Order),
            ("since row", Key::Order),
        ],
    );
    let count = |n: u64| (n as f64, crate::quantity::grouped(n));
    for e in &view.elephants {
        let cells = vec![
            rate(e.packets_per_second),
            count(e.packets),
            count(e.promoted),
        ];
        table.row(&e.flow, cells);
    }
    table
}

/// Keys that are drawn well leave less than this to chance with a few hundred flows a worker; a flood whose packets
/// share an index, or one flow that is most of the traffic, makes more.
const UNEVEN: f64 = 1.5;

/// Where they do: on one entry, if that has most of what the busiest worker has, else on one worker.
fn collided(view: &View) -> String {
    let busiest = view.workers.iter().map(|w| w.share).fold(0.0, f64::max);
    match view.entries.first() {
        Some(e) if e.share > busiest / 2.0 => format!(
            "entry {} of {}, worker {} ({:.0} % of all)",
            e.entry,
            e.port,
            e.worker,
            e.share * 100.0
        ),
        _ => "one worker".to_owned(),
    }
}

/// Lines above the tables.
pub fn summary(view: &View) -> String {
    let uneven = match view.workers.len() {
        0 | 1 => String::new(),
        _ if view.imbalance >= UNEVEN => {
            format!(
                ", imbalance {:.2}: packets collide on {}",
                view.imbalance,
                collided(view)
            )
        }
        _ => format!(", imbalance {:.2}", view.imbalance),
    };
    let failed = view.guests.iter().filter(|g| g.account.state == "failed");
    let failed: Vec<_> = failed.map(|g| g.name.as_str()).collect();
    let failed = match failed.as_slice() {
        [] => String::new(),
        names => format!(", failed: {}", names.join(", ")),
    };
    let lost = match view.lost_by_ports_per_second {
        0.0 => String::new(),
        lost => format!(", {} lost by ports/s", rate(lost).1),
    };
    format!(
        "{}  {:.0} s  {} packets/s, {} dropped/s{lost}{uneven}{failed}  (over {:.2} s)",
        view.name,
        view.seconds,
        rate(view.packets_per_second).1,
        rate(view.lost_per_second).1,
        view.interval
    )
}

/// All of it as text.
pub fn text(view: &View, sort: Sort) -> String {
    listed(vec![summary(view)], tables(view, sort))
}

/// Lines, and tables below them; those without rows are left out.
pub fn listed(mut lines: Vec<String>, tables: Vec<Table>) -> String {
    for table in tables {
        let rows = table.lines();
        if !rows.is_empty() {
            lines.push(String::new());
            lines.push(table.title.to_owned());
            lines.extend(rows);
        }
    }
    lines.join("\n")
}
