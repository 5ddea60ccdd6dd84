//! The result, for people and as JSON.

use std::fmt::Write;

use serde::Serialize;

/// A path that was not driven, or not reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rest {
    /// the entry's function
    pub entry: String,
    /// its number in the report of the model, from 1
    pub path: usize,
    /// conditions, all of which hold
    pub guard: Vec<String>,
    /// why, where more is to be said than that it did not happen
    pub why: Option<String>,
}

/// Something that the model says and that is not so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// the entry's function
    pub entry: String,
    /// the path whose guard holds, by its number in the report of the model; none where none holds, or several
    pub path: Option<usize>,
    /// its conditions
    pub guard: Vec<String>,
    /// what is not so: `verdict`, `tail call`, `rewrite`, `access`, `state`,
    /// `eviction`, `guards`, `execution`
    pub what: &'static str,
    /// what the model says
    pub predicted: String,
    /// what happened
    pub happened: String,
    /// `seeded` or `packets`: how the state came about
    pub from: &'static str,
    /// the frame, in hexadecimal
    pub packet: String,
    /// ingress port
    pub port: u32,
    /// ns since the epoch
    pub time: u64,
}

/// Result of comparing a model with executions.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Findings {
    /// the program
    pub name: String,
    /// whether the paths are all
    pub exhaustive: bool,
    /// whether every execution takes one of them
    pub covers: bool,
    /// paths of all entries
    pub paths: usize,
    /// paths that an execution took from state that the solver named
    pub driven: usize,
    /// paths that nobody asked for, as [`crate::Options::most`] says
    pub left_out: usize,
    /// the others
    pub not_driven: Vec<Rest>,
    /// executions that looked for tables which lead to paths through loops
    pub searched: u64,
    /// packets that were sent one after another, state being what those before left
    pub packets: u64,
    /// packets besides that only filled tables
    pub flooded: u64,
    /// the generator's seed
    pub seed: u64,
    /// paths that these took
    pub reached: usize,
    /// the others
    pub not_reached: Vec<Rest>,
    /// packets of either kind that no path is of; possible only where the paths are not all
    pub outside: u64,
    /// what is not so; the first ones
    pub differences: Vec<Difference>,
    /// how many there are
    pub differing: u64,
}

/// Most of a packet that is shown to people, bytes.
const SHOWN: usize = 64;

impl Findings {
    /// Whether everything was as the model says.
    #[must_use]
    pub fn agree(&self) -> bool {
        self.differing == 0
    }
}

/// Conditions of a guard that people are shown: its last ones, which tell it from others that begin alike.
const CONDITIONS: usize = 4;
/// Characters of a condition.
const LONG: usize = 120;

/// A guard in one line.
fn short(guard: &[String]) -> String {
    if guard.is_empty() {
        return "always".to_owned();
    }
    let skipped = guard.len().saturating_sub(CONDITIONS);
    let cut = |text: &String| match text.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.clone(),
    };
    let mut all: Vec<String> = guard.iter().skip(skipped).map(cut).collect();
    if skipped > 0 {
        all.insert(0, "…".to_owned());
    }
    all.join(" and ")
}

/// The findings for people.
#[must_use]
pub fn text(f: &Findings) -> String {
    let mut out = String::new();
    let all = if f.exhaustive {
        ""
    } else if f.covers {
        ", some of which may be impossible"
    } else {
        " of a model that is not exhaustive"
    };
    let _ = writeln!(out, "{}: {} paths{all}", f.name, f.paths);
    let _ = writeln!(
        out,
        "  driven from seeded state{}: {} of {}",
        match f.searched {
            0 => String::new(),
            n => format!(", {n} executions having looked for it"),
        },
        f.driven,
        f.paths
    );
    for rest in &f.not_driven {
        let why = rest.why.as_deref().unwrap_or("it was not taken");
        let _ = writeln!(out, "    not path {} of {}: {why}", rest.path, rest.entry);
        let _ = writeln!(out, "      if {}", short(&rest.guard));
    }
    let _ = writeln!(
        out,
        "  reached by {} packets alone{} (seed {}): {} of {}",
        f.packets,
        match f.flooded {
            0 => String::new(),
            n => format!(", after {n} that filled tables"),
        },
        f.seed,
        f.reached,
        f.paths
    );
    for rest in &f.not_reached {
        let _ = writeln!(out, "    not path {} of {}", rest.path, rest.entry);
        let _ = writeln!(out, "      if {}", short(&rest.guard));
    }
    if f.outside > 0 {
        let _ = writeln!(
            out,
            "  outside the paths that were followed: {} packets",
            f.outside
        );
    }
    let _ = match f.differing {
        0 => writeln!(out, "  differences: none"),
        n => writeln!(out, "  differences: {n}"),
    };
    for d in &f.differences {
        let path = d.path.map_or_else(String::new, |n| format!("path {n} of "));
        let _ = writeln!(out, "\n{path}{}: {}", d.entry, d.what);
        if d.path.is_some() {
            let _ = writeln!(out, "  if {}", short(&d.guard));
        }
        let _ = writeln!(out, "  predicted: {}", d.predicted);
        let _ = writeln!(out, "  happened:  {}", d.happened);
        let bytes = d.packet.len() / 2;
        let shown = d.packet.get(..2 * SHOWN.min(bytes)).unwrap_or_default();
        let more = if bytes > SHOWN { "…" } else { "" };
        let _ = writeln!(
            out,
            "  {} state, port {}, time {} ns, {bytes} bytes {shown}{more}",
            d.from, d.port, d.time
        );
    }
    if f.differing > f.differences.len() as u64 {
        let more = f.differing - f.differences.len() as u64;
        let _ = writeln!(out, "\nand {more} more");
    }
    out
}
