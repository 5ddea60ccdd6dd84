//! A row of functions, or those of a chain file, as one program.

use millrace_chain::connect::{Connected, Named, connect};
use millrace_link::{Element, link};
use millrace_topology::Topology;

use crate::find::{Found, Row, Source};
use crate::written::{Proved, Types, Written};
use crate::{Error, Make};

impl Row {
    /// What to do where they cannot be linked.
    fn instead(&self) -> &'static str {
        match self.file {
            Some(_) => "`millrace run` runs its elements one after the other",
            None => "run them as a row: `--link no`",
        }
    }

    /// How they are connected; `elements` are their names, with the names of their ports.
    pub(crate) fn connected(&self, elements: &[(&str, &[String])]) -> Result<Connected, Error> {
        if let Some(file) = &self.file {
            let named: Vec<Named> = { elements.iter() }
                .map(|(_, ports)| Named {
                    ports: ports.to_vec(),
                    guest: false,
                })
                .collect();
            let connected = connect(file, &named).map_err(|e| Error::wrong(&e).help(&e.help))?;
            if let Some(connected) = connected {
                return Ok(connected);
            }
        }
        for (name, ports) in elements {
            if elements.len() > 1 && !ports.is_empty() && ports.len() != 2 {
                return Err(Error::no(format!(
                    "{name} has {} ports ({}); functions in a row have two each",
                    ports.len(),
                    ports.join(", ")
                ))
                .help("run it alone, or say in a chain file how its ports are connected"));
            }
        }
        let names = |element: Option<&(&str, &[String])>| {
            element.map_or(Vec::new(), |(_, ports)| ports.to_vec())
        };
        let ports = match elements {
            [(_, ports)] if !ports.is_empty() => ports.to_vec(),
            _ => {
                let (first, last) = (names(elements.first()), names(elements.last()));
                [(first.first(), "0"), (last.get(1), "1")]
                    .map(|(name, number)| name.map_or_else(|| number.to_owned(), Clone::clone))
                    .to_vec()
            }
        };
        Ok(Connected {
            topology: match elements {
                [_] => Topology::alone(ports.len()),
                _ => Topology::line(elements.len()),
            },
            order: (0..elements.len()).collect(),
            ports,
        })
    }
}

impl Found {
    /// Elements of Click configurations whose packets are handed over, and why.
    #[must_use]
    pub fn handed(&self) -> Vec<(String, String)> {
        let own = { self.slow.iter() }.flat_map(|slow| slow.elements().iter());
        let passed = { self.one.iter() }.flat_map(|one| &one.passed);
        let Source::Linked(row) = &self.source else {
            let mut all: Vec<(String, String)> = own.cloned().collect();
            // Those that are passed have no number in a slow path, but are among its elements.
            for (element, why) in passed {
                match all.iter_mut().find(|a| a.0 == *element) {
                    Some(there) => there.1.clone_from(why),
                    None => all.push((element.clone(), why.clone())),
                }
            }
            return all;
        };
        let of = |member: &crate::find::Member| {
            let name = member.name.clone();
            let handed = member.found.handed().into_iter();
            handed.map(move |(element, why)| (format!("{name}:{element}"), why))
        };
        row.members.iter().flat_map(of).collect()
    }

    /// Entries of maps from files that a chain file names, `ELEMENT:OBJECT=FILE`.
    #[must_use]
    pub fn maps(&self) -> Vec<String> {
        let Source::Linked(row) = &self.source else {
            return Vec::new();
        };
        let members = row.members.iter();
        members
            .flat_map(|m| m.maps.iter().map(|map| format!("{}:{map}", m.name)))
            .collect()
    }

    /// Reads, proves and links the functions of a row. Settings and capacities are those of the linked program, `NAME:…`.
    pub(crate) fn linked(&self, row: &Row, make: &Make) -> Result<Written, Error> {
        let members = &row.members;
        let mut written = Vec::new();
        for member in members {
            // Of a chain file only its functions are looked at here: what they hand over is passed.
            if member.found.slow.is_some() && row.file.is_none() {
                let what = format!("{} hands packets over to its slow path", member.name);
                return Err(Error::no(what).help(row.instead()));
            }
            // What a loader has to be told, it is told here; all else is set in the linked program.
            let own = |(name, n): &(String, u64)| {
                let own = name.strip_prefix(&member.name)?.strip_prefix(':')?;
                Some((own.to_owned(), *n))
            };
            let all = make.capacities.iter().filter(|(name, _)| name == "*");
            let capacities = member.capacities.iter().chain(all).cloned();
            let capacities = capacities.chain(make.capacities.iter().filter_map(own));
            let plain = Make {
                capacities: capacities.collect(),
                settings: member.settings.clone(),
                budget: Some(make.begin()),
                budgets: make.budgets,
                ..Make::default()
            };
            written.push(member.found.read(&plain)?);
        }
        let proved = written
            .iter()
            .map(|w| Proved::new(&w.program, &w.folder, make.begin()));
        let proved = proved.collect::<Result<Vec<_>, _>>()?;
        let elements = members.iter().zip(&proved).map(|(member, proved)| Element {
            name: &member.name,
            program: proved.program,
            checked: &proved.checked,
        });
        let elements: Vec<_> = elements.collect();
        let ports: Vec<_> = { elements.iter() }
            .map(|element| (element.name, element.program.ports.as_slice()))
            .collect();
        let connected = row.connected(&ports)?;
        let ordered: Vec<_> = { connected.order.iter() }
            .filter_map(|at| elements.get(*at).copied())
            .collect();
        let program = link(&ordered, &connected.topology, &connected.ports)
            .map_err(|e| Error::no(e.to_string()).help(row.instead()))?;
        let mut types = Types::new();
        let mut warnings = String::new();
        let mut objects = millrace_link::VERSION.to_le_bytes().to_vec();
        if let Some(file) = &row.file {
            // Connections, settings and capacities make another program.
            objects.extend((file.text.len() as u64).to_le_bytes());
            objects.extend(file.text.as_bytes());
        }
        for (member, written) in members.iter().zip(&written) {
            let own = written.types.iter();
            types.extend(own.map(|(name, of)| (format!("{}:{name}", member.name), of.clone())));
            warnings.push_str(&written.warnings);
            objects.extend((written.objects.len() as u64).to_le_bytes());
            objects.extend(&written.objects);
            objects.extend(member.name.as_bytes());
        }
        Ok(Written {
            program,
            types,
            warnings,
            folder: self.folder.clone(),
            built: false,
            objects,
        })
    }
}
