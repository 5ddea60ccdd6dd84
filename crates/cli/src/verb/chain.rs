//! `millrace chain`: traffic classes of a Click configuration, and the function that it becomes.

use std::path::PathBuf;

use clap::Args;
use millrace::Make;
use millrace::click::compare::{Both, Given};
use millrace_synth::operations::{self, Cost};
use millrace_synth::slow::Slow;
use millrace_synth::{Options, Synthesis, classes, emit, picture, redundant, reference};
use millrace_traffic::capture::Reader;
use millrace_traffic::split::{Side, Split};
use serde_json::json;

use crate::failure::{DONE, Failure, NO};
use crate::{function, screen};

mod mixed;
mod openflow;

pub use openflow::refused;

/// Show the traffic classes of a Click configuration: which packets are treated alike, what is written, where they leave. Of a chain file
/// (.toml) which elements are synthesised as one or linked, and which stay apart.
/// `check`, `model`, `plan`, `run` and `verify` take the file as a function; FILE.click:early-discard is the one of
/// --early-discard, FILE.click:whole that of --whole.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("uses").args(["compare", "target"])))]
#[command(after_help = "\
Exit status: 0 done, 1 the target has no word for what the chain does, 2 the configuration is wrong or cannot be synthesised.")]
pub struct Chain {
    /// The configuration (.click), or a chain file (.toml)
    file: PathBuf,

    /// Print the function's C instead
    #[arg(long, conflicts_with_all = ["json", "compare"])]
    emit_c: bool,

    /// Drop a packet that will be dropped behind a rewriter before it opens a flow there, or keeps one alive
    #[arg(long)]
    early_discard: bool,

    /// Pass no packet to the host for its flow's sake: rewriters are on the slow path, too, where packets of it need their flows
    #[arg(long)]
    whole: bool,

    /// Tell drops by different elements apart, each with the element's name as its reason; otherwise a packet is dropped at
    /// the first test that says that some element will drop it
    #[arg(long, conflicts_with = "compare")]
    reasons: bool,

    /// Compare the function with the reference interpreter of the configuration, packet by packet: packets of every class,
    /// random ones, and those of --in
    #[arg(long)]
    compare: bool,

    /// Random packets that are compared
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "compare")]
    random: usize,

    /// Compare on the packets of this capture, too; several: one for each port. With --target openflow: count which of its
    /// packets the switch decides on
    #[arg(long = "in", value_name = "FILE", requires = "uses")]
    input: Vec<PathBuf>,

    /// Let packets of the only capture enter at two ports: PORT=ADDRESSES, as for `run`
    #[arg(long, value_name = "PORT=CIDR", requires = "input")]
    split: Option<String>,

    /// Write a page that shows it before and after, with operations a packet; it needs nothing but a browser
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    html: Option<PathBuf>,

    /// Write the same as a graph in the DOT language
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    dot: Option<PathBuf>,

    /// Print the chain for something else that runs it: openflow, rules of a switch in front of servers that run the chain;
    /// click, a configuration with one classifier, and a write for each class
    #[arg(long, value_enum)]
    target: Option<Target>,

    #[command(flatten)]
    openflow: openflow::Options,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What a chain is printed for.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// rules of a switch
    Openflow,
    /// a configuration of Click
    Click,
}

impl Chain {
    /// Does it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if millrace_chain::file::is_file(&self.file.to_string_lossy()) {
            return mixed::perform(self);
        }
        let mut synthesis = millrace::click::read(&self.file, false, self.options())?;
        if self.emit_c {
            screen::out(emit::c(&synthesis).trim_end());
            return Ok(DONE);
        }
        if self.compare {
            let again = || millrace::click::read(&self.file, false, self.options());
            return self.compare(&synthesis, again);
        }
        match self.target {
            Some(Target::Openflow) => return self.openflow(&synthesis),
            Some(Target::Click) => return self.click(&mut synthesis),
            None => {}
        }
        let classes = classes::classes(&synthesis);
        let (_, paths) = classes::paths(&synthesis, synthesis.root, 0);
        let nodes = synthesis.store.reachable(synthesis.root).len();
        let costs = operations::costs(&synthesis);
        self.pictures(&synthesis, &costs)?;
        if self.json {
            screen::document(&json!({
                "name": synthesis.name,
                "elements": synthesis.router.graph().elements.len(),
                "ports": synthesis.ports,
                "nodes": nodes,
                "paths": paths,
                "classes": classes,
                "operations": costs,
                "filters": redundant::filters(&synthesis),
                "slow_path": slow_path(&synthesis),
                "quiet": quiet(&synthesis).collect::<Vec<_>>(),
                "relaxations": synthesis.flows.relaxations().iter().map(|(what, when)| {
                    json!({ "kind": what, "reason": when })
                }).collect::<Vec<_>>(),
            }));
            return Ok(DONE);
        }
        screen::out(text(&synthesis, &classes, &costs, nodes, paths).trim_end());
        Ok(DONE)
    }

    /// Prints a configuration of Click.
    fn click(&self, of: &mut Synthesis) -> Result<u8, Failure> {
        let name = of.name.clone();
        let text = millrace_synth::click::configuration(of).map_err(|e| {
            let place = e.place.as_ref().map_or(String::new(), |p| format!("{p}: "));
            Failure::no(format!("{name}: {place}{}", e.what)).help(&e.help)
        })?;
        match self.json {
            true => screen::document(&json!({ "name": name, "configuration": text })),
            false => screen::out(text.trim_end()),
        }
        Ok(DONE)
    }

    /// Writes the pictures that are asked for.
    fn pictures(&self, of: &Synthesis, costs: &[Cost]) -> Result<(), Failure> {
        if self.html.is_none() && self.dot.is_none() {
            return Ok(());
        }
        let both = [picture::before(of), picture::after(of)];
        let write = |path: &PathBuf, text: &str| {
            std::fs::write(path, text).map_err(|e| {
                Failure::wrong(format!("{}: cannot be written: {e}", path.display()))
                    .help("choose another file")
            })
        };
        if let Some(path) = &self.html {
            write(path, &picture::html(&of.name, &both, costs))?;
        }
        if let Some(path) = &self.dot {
            write(path, &picture::dot(&both, &operations::table(costs)))?;
        }
        Ok(())
    }

    fn options(&self) -> Options {
        Options {
            reasons: self.reasons,
            early_discard: self.early_discard,
            whole: self.whole,
            ..Options::default()
        }
    }

    /// Compares the function with the interpreter. `again` synthesises anew.
    fn compare(
        &self,
        of: &Synthesis,
        again: impl Fn() -> Result<Synthesis, Failure>,
    ) -> Result<u8, Failure> {
        let mut word = self.file.to_string_lossy().into_owned();
        if self.early_discard {
            word.push_str(":early-discard");
        }
        if self.whole {
            word.push_str(":whole");
        }
        let function = function::load(&word, &Make::default())?;
        let spread = |(number, (port, bytes)): (usize, (u8, Vec<u8>))| Given {
            port,
            time: number as u64 * 1_000_000,
            bytes,
        };
        let mut both = Both::new(&function, of)?;
        let mut all = Vec::new();
        if of.flows.any() {
            // Packets of all kinds would get ports that are drawn, so that all that comes later differs: sessions do not.
            both.sessions(1, self.random);
            all.push(("sessions and answers".to_owned(), both.found));
        } else {
            let made = reference::witnesses(of, MOST_PATHS).into_iter();
            let random = reference::random(of, 1).take(self.random);
            both.all(made.chain(random).enumerate().map(spread));
            all.push(("classes and random packets".to_owned(), both.found));
        }
        if !self.input.is_empty() {
            // A configuration of its own: that of the first packets has seen them.
            let again = again()?;
            let mut both = Both::new(&function, &again)?;
            both.all(self.given(&again)?.into_iter());
            all.push(("captures".to_owned(), both.found));
        }
        let equal = all.iter().all(|a| a.1.difference.is_none());
        if self.json {
            let list: Vec<_> = all
                .iter()
                .map(|(what, found)| {
                    let [forwarded, dropped, handed] = found.fates;
                    json!({
                        "on": what,
                        "packets": found.packets,
                        "forwarded": forwarded,
                        "dropped": dropped,
                        "handed_over": handed,
                        "made": found.made,
                        "difference": found.difference,
                    })
                })
                .collect();
            screen::document(&json!({ "name": of.name, "equal": equal, "compared": list }));
        } else {
            for (what, found) in &all {
                let [forwarded, dropped, handed] = found.fates;
                match &found.difference {
                    Some(difference) => {
                        screen::out(&format!("{}: not equal on {what}:\n{difference}", of.name));
                    }
                    None => screen::out(&format!(
                        "{}: equal on {what}: {} packets ({forwarded} forwarded, {dropped} dropped, {handed} handed over{})",
                        of.name,
                        found.packets,
                        match found.made {
                            0 => String::new(),
                            made => format!(", from which {made} came"),
                        }
                    )),
                }
            }
        }
        Ok(if equal { DONE } else { NO })
    }

    /// Packets of the captures, by the ports of the configuration.
    fn given(&self, of: &Synthesis) -> Result<Vec<Given>, Failure> {
        let split: Option<Split> = match &self.split {
            Some(text) => Some(text.parse().map_err(Failure::wrong)?),
            None => None,
        };
        let mut all = Vec::new();
        for (number, path) in self.input.iter().enumerate() {
            let mut reader = Reader::open(path).map_err(Failure::wrong)?;
            while let Some(record) = reader.next().map_err(Failure::wrong)? {
                let port = match &split {
                    None => number,
                    Some(split) => {
                        let named = of
                            .ports
                            .iter()
                            .position(|p| p.eq_ignore_ascii_case(split.port()));
                        let named = named.unwrap_or(0);
                        match split.side(record.data) {
                            Side::Named => named,
                            Side::Other => 1 - named.min(1),
                        }
                    }
                };
                all.push((record.time_ns, port as u8, record.data.to_vec()));
            }
        }
        all.sort_by_key(|a| a.0);
        let first = all.first().map_or(0, |a| a.0);
        Ok(all
            .into_iter()
            .map(|(time, port, bytes)| Given {
                port,
                time: time - first,
                bytes,
            })
            .collect())
    }
}

/// Elements on the slow path, with their places.
fn slow_path(of: &Synthesis) -> Vec<serde_json::Value> {
    let elements = &of.router.graph().elements;
    let one = |(s, title): (&Slow, String)| {
        let place = elements.get(s.element).map(|e| &e.place);
        json!({
            "element": title,
            "file": place.map_or("", |p| &*p.file),
            "line": place.map_or(0, |p| p.line),
            "why": s.why,
            "passed": !s.run,
        })
    };
    of.slow.iter().zip(of.titles()).map(one).collect()
}

/// Names of elements that print, or write files, where they are run one by one.
fn quiet(of: &Synthesis) -> impl Iterator<Item = String> {
    let elements = &of.router.graph().elements;
    let named = of.quiet().into_iter().filter_map(|id| elements.get(id));
    named.map(millrace_click::language::Element::title)
}

/// Paths of a diagram of which packets are made.
const MOST_PATHS: usize = 20_000;

fn text(
    of: &Synthesis,
    classes: &[classes::Class],
    costs: &[Cost],
    nodes: usize,
    paths: u64,
) -> String {
    let mut text = format!(
        "{}: {} elements become {} traffic classes ({nodes} nodes, {paths} paths)\nports: {}\n",
        of.name,
        of.router.graph().elements.len(),
        classes.len(),
        of.ports.join(", ")
    );
    for class in classes {
        let what = match &class.device {
            Some(device) => format!("{} to {device}", class.verdict),
            None if class.element.is_empty() => class.verdict.to_owned(),
            None => format!("{} by {}", class.verdict, class.element),
        };
        let what = match (class.behind.is_empty(), class.answer) {
            (true, _) => what,
            (false, true) => format!("{what}, answers behind {}", class.behind.join(", ")),
            (false, false) => format!("{what}, flows behind {}", class.behind.join(", ")),
        };
        let place = match class.line {
            0 => String::new(),
            line => format!("  ({}:{line})", class.file),
        };
        text.push_str(&format!("\n{what}{place}\n"));
        for write in &class.writes {
            text.push_str(&format!("    write {write}\n"));
        }
        for packets in &class.packets {
            text.push_str(&format!("    {packets}\n"));
        }
        if class.more > 0 {
            text.push_str(&format!("    … and {} more\n", class.more));
        }
    }
    text.push_str(&redundant::text(&redundant::filters(of)));
    if !costs.is_empty() {
        text.push('\n');
        text.push_str(&operations::table(costs));
    }
    if !of.slow.is_empty() {
        text.push_str("\nslow path: packets of these elements are run by the interpreter\n");
    }
    for (slow, title) in of.slow.iter().zip(of.titles()) {
        let passed = match slow.run {
            true => "",
            false => ": passed to the host",
        };
        text.push_str(&format!("    {title}: {}{passed}\n", slow.why));
    }
    let quiet: Vec<String> = quiet(of).collect();
    if !quiet.is_empty() {
        text.push_str(&format!(
            "\nprint and write nothing (`millrace ctl trace`, and captures of the ports, show packets)\n    {}\n",
            quiet.join(", ")
        ));
    }
    let relaxations = of.flows.relaxations();
    if !relaxations.is_empty() {
        text.push_str("\nmay differ from the elements one by one\n");
    }
    for (what, when) in relaxations {
        text.push_str(&format!("    {what}: {when}\n"));
    }
    text
}
