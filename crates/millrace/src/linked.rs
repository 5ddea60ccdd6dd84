//! A row of functions as one program.

use millrace_link::{Element, link};
use millrace_topology::Topology;

use crate::find::{Found, Member};
use crate::written::{Proved, Types, Written};
use crate::{Error, Make};

impl Found {
    /// Reads, proves and links the functions of a row. Settings and capacities are those of the linked program, `NAME:…`.
    pub(crate) fn linked(&self, members: &[Member], make: &Make) -> Result<Written, Error> {
        let mut written = Vec::new();
        for member in members {
            if member.found.slow.is_some() {
                let what = format!("{} hands packets over to its slow path", member.name);
                return Err(Error::no(what).help("run them as a row: `--link no`"));
            }
            // What a loader has to be told, it is told here; all else is set in the linked program.
            let own = |(name, n): &(String, u64)| {
                let own = name.strip_prefix(&member.name)?.strip_prefix(':')?;
                Some((own.to_owned(), *n))
            };
            let all = make.capacities.iter().filter(|(name, _)| name == "*");
            let capacities = all.cloned();
            let capacities = capacities.chain(make.capacities.iter().filter_map(own));
            let plain = Make {
                capacities: capacities.collect(),
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
        for (member, element) in members.iter().zip(&elements) {
            let ports = &element.program.ports;
            if !ports.is_empty() && ports.len() != 2 {
                return Err(Error::no(format!(
                    "{} has {} ports ({}); functions in a row have two each",
                    member.name,
                    ports.len(),
                    ports.join(", ")
                ))
                .help("run it alone"));
            }
        }
        let first = written.first().and_then(|w| w.program.ports.first());
        let last = written.last().and_then(|w| w.program.ports.get(1));
        let ports = [(first, "0"), (last, "1")]
            .map(|(name, number)| name.map_or_else(|| number.to_owned(), Clone::clone));
        let topology = Topology::line(members.len());
        let program = link(&elements, &topology, &ports)
            .map_err(|e| Error::no(e.to_string()).help("run them as a row: `--link no`"))?;
        let mut types = Types::new();
        let mut warnings = String::new();
        let mut objects = millrace_link::VERSION.to_le_bytes().to_vec();
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
