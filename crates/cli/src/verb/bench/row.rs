//! Functions as they stand in a chain: a chain file is measured as one subject.

use std::path::Path;
use std::sync::Arc;

use millrace::{Function, Make};
use millrace_chain::connect::{Named, connect};
use millrace_chain::{What, file};
use millrace_dataplane::worker::Link;
use millrace_place::Placement;
use millrace_topology::Topology;

use crate::failure::Failure;
use crate::function;
use crate::verb::run::chain;

/// Connected functions on one worker.
pub struct Row {
    /// in their order
    pub links: Vec<Link>,
    /// how they are connected; none of one alone
    pub topology: Option<Topology>,
    /// names of the chain's ports
    pub ports: Vec<String>,
}

/// What is measured: a function, or those of a chain file.
pub struct Measured {
    /// its name
    pub name: String,
    /// the functions
    pub row: Row,
    /// the function, if it is one
    pub function: Option<Function>,
}

impl Measured {
    /// A function.
    ///
    /// # Errors
    /// Its state cannot be divided as its placement says.
    pub fn of(function: Function) -> Result<Self, Failure> {
        let ports = match function.ports.as_slice() {
            [] => vec!["0".to_owned(), "1".to_owned()],
            names => names.to_vec(),
        };
        Ok(Self {
            name: function.name.clone(),
            row: Row {
                links: vec![function.link(0, Vec::new(), true)?],
                topology: None,
                ports,
            },
            function: Some(function),
        })
    }

    /// How it lives on several workers.
    pub fn placement(&self) -> Option<&Arc<Placement>> {
        self.function.as_ref()?.placement.as_ref()
    }

    /// What a word names.
    ///
    /// # Errors
    /// It is no function and no chain of functions.
    pub fn read(word: &str, make: &Make) -> Result<Self, Failure> {
        if !file::is_file(word) {
            return Self::of(function::load(word, make)?);
        }
        let described = file::read(Path::new(word)).map_err(chain::wrong)?;
        let (mut functions, mut entries) = (Vec::new(), Vec::new());
        for element in &described.elements {
            let What::Function(asked) = &element.what else {
                return Err(
                    Failure::wrong(format!("{word}: {} is a guest", element.name))
                        .help("measure chains of functions, or `run` it"),
                );
            };
            let own = function::make(&asked.set, &asked.capacity, asked.program.as_ref())?;
            let function = function::load(&chain::path(&described, &asked.word), &own)?;
            entries.push(chain::entries(&described, element, &function.exposed)?);
            functions.push(function);
        }
        let named: Vec<Named> = functions
            .iter()
            .map(|function| Named {
                ports: function.ports.clone(),
                guest: false,
            })
            .collect();
        let name = chain::called(word);
        let Some(connected) = connect(&described, &named).map_err(chain::wrong)? else {
            let alone = functions.pop();
            let alone = alone.ok_or_else(|| Failure::wrong(format!("{word}: no element")))?;
            return Self::of(alone);
        };
        let mut links = Vec::new();
        for of in &connected.order {
            let (Some(function), Some(entries)) = (functions.get(*of), entries.get(*of)) else {
                continue;
            };
            links.push(function.link(0, entries.clone(), true)?);
        }
        Ok(Self {
            name,
            row: Row {
                links,
                topology: Some(connected.topology),
                ports: connected.ports,
            },
            function: None,
        })
    }
}
