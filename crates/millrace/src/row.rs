//! Is it what its elements do one after the other? A linked program against its elements, on one worker, over the same packets: every
//! packet that leaves, what became of the others, and how many entries there are at the end.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use millrace_chain::Connected;
use millrace_control::contents;
use millrace_dataplane::Account;
use millrace_traffic::capture::{Reader, Writer};
use millrace_verify::{Trace, TraceError};
use serde::Serialize;

use crate::click::compare::but_for_drawn;
use crate::click::joined::One;
use crate::find::{Found, Member, Row, Source};
use crate::ports::NEVER;
use crate::{Error, Function, Job, Make, Ports};

/// The most differences that are told.
const TOLD: usize = 8;

/// What the comparison found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AsRow {
    /// nothing differs
    pub equal: bool,
    /// packets that entered
    pub packets: u64,
    /// packets that left
    pub left: u64,
    /// what differs, the first of it
    pub differences: Vec<String>,
}

/// What `--set`, `--capacity` and `--map` say of one of the functions: the rest behind `NAME:`.
fn own<'a>(member: &Member, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(&member.name)?.strip_prefix(':')
}

/// The elements of what is one function, as a row.
fn apart(one: &One) -> Result<Row, Error> {
    let elements = one.part.elements.iter().zip(&one.words);
    let members = elements.map(|(element, word)| {
        Ok(Member {
            name: element.name.clone(),
            found: crate::find(word)?,
            settings: Vec::new(),
            capacities: Vec::new(),
            maps: Vec::new(),
        })
    });
    Ok(Row {
        members: members.collect::<Result<_, Error>>()?,
        file: Some(Arc::new(one.part.clone())),
    })
}

impl Found {
    /// Compares a function that is several, linked or synthesised as one, made as `make` says, with its elements over a trace. `maps` are
    /// files of entries, `OBJECT=FILE`, besides those of a chain file. None where it is not of several.
    ///
    /// # Errors
    /// An element cannot be made, or the trace cannot be read.
    pub fn as_row(
        &self,
        function: &Function,
        make: &Make,
        (maps, seed): (&[String], u64),
        (trace, ports): (&mut dyn Trace, usize),
    ) -> Result<Option<AsRow>, Error> {
        let apart;
        let row = match (&self.source, &self.one) {
            (Source::Linked(row), _) if row.members.len() > 1 => row,
            (Source::C(_), Some(one)) => {
                apart = self::apart(one)?;
                &apart
            }
            _ => return Ok(None),
        };
        let folder = tempfile::tempdir().map_err(|e| {
            Error::wrong(format!("a folder for packets cannot be made: {e}"))
                .help("set TMPDIR to a folder with room")
        })?;
        let inputs = captured(trace, ports, folder.path())?;
        let all = [self.maps(), maps.to_vec()].concat();
        let entries = contents::entries(&all, &function.exposed)?;
        let mut alone = function.link(function.seed(seed, &mut 0), entries, true)?;
        // What it hands over is passed on both sides.
        alone.slow = None;
        let names = match function.ports.as_slice() {
            [] => (0..ports).map(|port| port.to_string()).collect(),
            names => names.to_vec(),
        };
        let (one, other) = (
            folder.path().join("linked.pcapng"),
            folder.path().join("row.pcapng"),
        );
        let linked = Job {
            serve: true,
            ..Job::new(vec![alone], names.clone())
        };
        let linked = ran(linked, &inputs, &one)?;
        let apart = Job {
            serve: true,
            ..row.job((make, seed), maps, names)?
        };
        let apart = ran(apart, &inputs, &other)?;
        let mut found = AsRow {
            packets: linked.read,
            left: linked.written,
            ..AsRow::default()
        };
        found.accounts(&linked, &apart, self.one.is_none());
        let drawn = self.one.as_ref().is_some_and(|one| one.draws);
        found.packets((&one, &other), drawn)?;
        found.equal = found.differences.is_empty();
        found.differences.truncate(TOLD);
        Ok(Some(found))
    }
}

impl Row {
    /// The elements, connected.
    fn job(
        &self,
        (make, seed): (&Make, u64),
        maps: &[String],
        names: Vec<String>,
    ) -> Result<Job, Error> {
        let mut functions = Vec::new();
        for member in &self.members {
            let settings = make.settings.iter();
            let settings =
                settings.filter_map(|(n, v)| Some((own(member, n)?.to_owned(), v.clone())));
            let of_all = make.capacities.iter().filter(|(name, _)| name == "*");
            let capacities = make.capacities.iter();
            let capacities = capacities.filter_map(|(n, v)| Some((own(member, n)?.to_owned(), *v)));
            let plain = Make {
                settings: member.settings.iter().cloned().chain(settings).collect(),
                capacities: { member.capacities.iter().cloned() }
                    .chain(of_all.cloned())
                    .chain(capacities)
                    .collect(),
                budgets: make.budgets,
                ..Make::default()
            };
            let mut function = member.found.load(&plain, &mut |_| {})?;
            // The linked program passes what is handed over.
            function.slow = None;
            functions.push(function);
        }
        let ports: Vec<_> = { self.members.iter().zip(&functions) }
            .map(|(member, function)| (member.name.as_str(), function.ports.as_slice()))
            .collect();
        let Connected {
            topology, order, ..
        } = self.connected(&ports)?;
        let mut chain = Vec::new();
        let mut drawing = 0;
        for at in order {
            let (Some(member), Some(function)) = (self.members.get(at), functions.get(at)) else {
                continue;
            };
            let line = maps
                .iter()
                .filter_map(|map| own(member, map))
                .map(str::to_owned);
            let all: Vec<_> = member.maps.iter().cloned().chain(line).collect();
            let entries = contents::entries(&all, &function.exposed)?;
            let seed = function.seed(seed, &mut drawing);
            let mut link = function.link(seed, entries, true)?;
            link.name.clone_from(&member.name);
            chain.push(link);
        }
        Ok(Job {
            topology: Some(topology),
            ..Job::new(chain, names)
        })
    }
}

/// The packets of a trace, as a capture a port.
fn captured(trace: &mut dyn Trace, ports: usize, folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |e: TraceError| Error::wrong(e.what).help(e.help);
    let written = |e: millrace_traffic::capture::WriteError| {
        Error::wrong(e).help("set TMPDIR to a folder with room")
    };
    let paths = (0..ports.max(1)).map(|port| folder.join(format!("{port}.pcap")));
    let paths: Vec<_> = paths.collect();
    let writers = paths
        .iter()
        .map(|path| Writer::create(path, &["0"]).map_err(written));
    let mut writers = writers.collect::<Result<Vec<_>, Error>>()?;
    let mut pass = trace.open().map_err(failed)?;
    // Inputs are merged by time, and a packet of a lower port comes first where two have the same.
    let mut latest = 0;
    let mut before = 0;
    while let Some((port, time, length, bytes)) = pass.next().map_err(failed)? {
        let now = time.max(latest) + u64::from(time.max(latest) == latest && port < before);
        (latest, before) = (now, port);
        if let Some(writer) = writers.get_mut(port as usize) {
            writer.write(now, 0, length, bytes).map_err(written)?;
        }
    }
    for writer in writers {
        writer.finish().map_err(written)?;
    }
    Ok(paths
        .iter()
        .map(|path| path.display().to_string())
        .collect())
}

fn ran(job: Job, inputs: &[String], out: &Path) -> Result<Account, Error> {
    let ports = Ports {
        inputs: inputs.to_vec(),
        outputs: vec![out.display().to_string()],
        ..Ports::default()
    };
    job.open(&ports, &NEVER)?.run(&NEVER, &mut |_| {})
}

impl AsRow {
    fn differs<T: PartialEq + Display>(&mut self, what: &str, linked: &T, row: &T) {
        if linked != row {
            self.differences.push(format!(
                "{what}: {linked} linked, {row} one after the other"
            ));
        }
    }

    /// What became of packets. `named`: both have the same objects and reasons.
    fn accounts(&mut self, linked: &Account, row: &Account, named: bool) {
        let fates = |a: &Account| {
            [
                ("read", a.read),
                ("forwarded", a.forwarded),
                ("dropped", a.dropped),
                ("passed", a.passed),
                ("consumed", a.consumed),
                ("aborted", a.aborted),
                ("timers", a.timers_fired),
            ]
        };
        for ((what, one), (_, other)) in fates(linked).into_iter().zip(fates(row)) {
            self.differs(what, &one, &other);
        }
        if !named {
            return;
        }
        let reasons = linked.reasons.keys().chain(row.reasons.keys());
        let reasons: std::collections::BTreeSet<_> = reasons.collect();
        for reason in reasons {
            let of = |a: &Account| a.reasons.get(reason).copied().unwrap_or(0);
            self.differs(&format!("dropped because {reason}"), &of(linked), &of(row));
        }
        for object in &linked.objects {
            let other = row.objects.iter().find(|o| o.name == object.name);
            let entries = |e: Option<u64>| e.map_or("none".to_owned(), |n| n.to_string());
            let (one, other) = (object.entries, other.and_then(|o| o.entries));
            self.differs(
                &format!("entries of {}", object.name),
                &entries(one),
                &entries(other),
            );
        }
    }

    /// The packets that left, in their order. `drawn`: new flows got numbers that both drew by themselves.
    fn packets(&mut self, (linked, row): (&Path, &Path), drawn: bool) -> Result<(), Error> {
        let failed = |e: millrace_traffic::capture::Error| Error::wrong(e);
        let mut one = Reader::open(linked).map_err(failed)?;
        let mut other = Reader::open(row).map_err(failed)?;
        for number in 0_u64.. {
            let (a, b) = (one.next().map_err(failed)?, other.next().map_err(failed)?);
            let what = match (a, b) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => continue,
                (Some(a), Some(b))
                    if drawn
                        && a.interface == b.interface
                        && but_for_drawn(a.data) == but_for_drawn(b.data) =>
                {
                    continue;
                }
                (Some(a), Some(b)) if a.interface != b.interface => {
                    format!(
                        "leaves at port {} linked, at {} one after the other",
                        a.interface, b.interface
                    )
                }
                (Some(a), Some(b)) => match a.data.iter().zip(b.data).position(|(x, y)| x != y) {
                    Some(at) => format!("differs at byte {at}"),
                    None => format!(
                        "has {} bytes linked, {} one after the other",
                        a.data.len(),
                        b.data.len()
                    ),
                },
                (Some(_), None) => "leaves linked only".to_owned(),
                (None, Some(_)) => "leaves one after the other only".to_owned(),
            };
            self.differences
                .push(format!("packet {number} of those that leave {what}"));
            break;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, packets: &[(u32, &[u8])]) {
        let mut writer = Writer::create(path, &["LAN", "WAN"]).unwrap();
        for (port, bytes) in packets {
            writer.write(7, *port, bytes.len() as u32, bytes).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn the_first_packet_that_differs_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            folder.path().join("a.pcapng"),
            folder.path().join("b.pcapng"),
        );
        let of = |a: &[(u32, &[u8])], b: &[(u32, &[u8])]| {
            written(&one, a);
            written(&other, b);
            let mut found = AsRow::default();
            found.packets((&one, &other), false).unwrap();
            found.differences.join("; ")
        };
        let two: [(u32, &[u8]); 2] = [(0, b"abc"), (1, b"def")];
        assert_eq!(of(&two, &two), "");
        for (row, told) in [
            (
                &[(0, &b"abc"[..]), (1, b"dxf")][..],
                "packet 1 of those that leave differs at byte 1",
            ),
            (
                &[(1, b"abc"), (1, b"def")],
                "packet 0 of those that leave leaves at port 0 linked, at 1 ",
            ),
            (&[(0, b"abc"), (1, b"defg")], "has 3 bytes linked, 4 "),
            (
                &[(0, b"abc")],
                "packet 1 of those that leave leaves linked only",
            ),
        ] {
            let said = of(&two, row);
            assert!(said.contains(told), "{said}");
        }
        assert!(of(&two[..1], &two).contains("one after the other only"));
    }

    #[test]
    fn fates_reasons_and_entries_are_compared() {
        let account = |dropped, reasons: &[(&str, u64)]| Account {
            dropped,
            reasons: reasons.iter().map(|(r, n)| ((*r).to_owned(), *n)).collect(),
            ..Account::default()
        };
        let of = |a: &Account, b: &Account| {
            let mut found = AsRow::default();
            found.accounts(a, b, true);
            found.differences
        };
        let one = account(3, &[("fw:no_flow", 3)]);
        assert_eq!(of(&one, &one), Vec::<String>::new());
        let other = account(4, &[("fw:no_flow", 2), ("nat:full", 2)]);
        assert_eq!(
            of(&one, &other),
            [
                "dropped: 3 linked, 4 one after the other",
                "dropped because fw:no_flow: 3 linked, 2 one after the other",
                "dropped because nat:full: 0 linked, 2 one after the other",
            ]
        );
    }
}
