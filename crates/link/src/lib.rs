//! Linking: the programs of a chain's elements become one [`Program`], which has one model and one plan.
//!
//! The linked program does with each packet what the chain does with it, one packet after the other ("Order" in
//! docs/chains.md): its packet handler calls the handler of the element that the packet enters, and the verdict
//! of each call decides whether another element is called or the packet's fate is known.
//!
//! - A function is copied once for each pair of an element and a port at which packets enter it. In the copy the fields
//!   `port` and `ports` of the context are constants (`functions`), so that no instruction has to set them between two calls,
//!   and branches on them fold when the linked program is checked.
//! - Objects, parameters and drop reasons are called `ELEMENT:NAME`, as the account of a chain calls them. (`ELEMENT.NAME` would be
//!   ambiguous: `--set OBJECT.OPTION=VALUE` sets an option of an object.)
//! - Connections have no cycle, so what leads from (element, port) to (element, port) is a graph without cycles, unless an element sends
//!   packets back to one that sends them to it again. [`millrace_check::egress`] says where an element sends packets of a port; a
//!   cycle is refused (`graph`).
//! - What each element does beside packets (`ON_START`, `ON_STOP`, `EVERY`, `ON_EXPIRY`) is copied once, as it is.
//!
//! Instructions keep their source lines; those of the handler that calls the elements have none.

mod functions;
mod graph;
mod handler;
mod names;
mod refuse;
mod verdicts;

use millrace_check::facts::Checked;
use millrace_object::program::{Dialect, Entry, FunctionId, ObjectId, Program, Role};
use millrace_topology::{End, Topology};

pub use refuse::{Reason, Unlinkable};

/// Version of what linking gives, for caches: another number whenever the same elements give another program.
pub const VERSION: u32 = 4;

/// One element of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// its name, unique in the chain
    pub name: &'a str,
    /// its program
    pub program: &'a Program,
    /// the proof of it, which says which loads read the context
    pub checked: &'a Checked,
}

/// Makes one program of a chain's elements, which are in the topology's order. `ports` are the names of the chain's ports.
///
/// # Errors
/// [`Unlinkable`]: the element that cannot be linked, and why. The chain then runs element by element.
pub fn link(
    elements: &[Element<'_>],
    topology: &Topology,
    ports: &[String],
) -> Result<Program, Unlinkable> {
    refuse::elements(elements, topology)?;
    let graph = graph::Graph::of(elements, topology)?;
    for (at, element) in elements.iter().enumerate() {
        if refuse::draws(element) && graph.comes_again(topology, at) {
            return Err(element.refused(Reason::DrawsAgain));
        }
    }
    let mut out = Program {
        name: elements
            .iter()
            .map(|e| e.name)
            .collect::<Vec<_>>()
            .join("+"),
        dialect: Dialect::Handlers,
        functions: Vec::new(),
        entries: Vec::new(),
        objects: Vec::new(),
        ports: names::ports(topology, ports),
        params: Vec::new(),
        reasons: vec!["dropped".to_owned()],
        license: refuse::license(elements.iter()).unwrap_or_default(),
    };
    // Which numbers objects and reasons of each element begin with.
    let mut begins = Vec::new();
    for element in elements {
        begins.push(Begins {
            object: out.objects.len(),
            reason: out.reasons.len() as u32,
        });
        names::add(&mut out, element);
    }
    let mut calls = Vec::new();
    for node in &graph.order {
        let (Some(element), Some(begin)) = (elements.get(node.element), begins.get(node.element))
        else {
            continue;
        };
        let seen = functions::Seen {
            port: node.port,
            ports: topology.ports(node.element).len() as u32,
        };
        let entry = refuse::packets(element)?;
        let mut copy = functions::Copy::new(&mut out, *element, begin.object, Some(seen))?;
        calls.push(copy.function(entry)?);
    }
    let handler = handler::make(elements, topology, &graph, &calls, &begins);
    out.functions.push(handler);
    let function = FunctionId(out.functions.len() - 1);
    out.entries.push(Entry {
        role: Role::OnPacket,
        function,
    });
    beside(&mut out, elements, &begins)?;
    Ok(out)
}

/// First numbers of an element in the linked program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begins {
    /// of its objects
    object: usize,
    /// of its drop reasons
    reason: u32,
}

/// What elements do beside packets.
fn beside(
    out: &mut Program,
    elements: &[Element<'_>],
    begins: &[Begins],
) -> Result<(), Unlinkable> {
    let (mut starts, mut stops, mut timers) = (Vec::new(), Vec::new(), Vec::new());
    for (element, begin) in elements.iter().zip(begins) {
        let mut expiries = Vec::new();
        let mut copy = functions::Copy::new(out, *element, begin.object, None)?;
        for entry in &element.program.entries {
            match entry.role {
                Role::OnStart => starts.push(copy.function(entry.function)?),
                Role::OnStop => stops.push(copy.function(entry.function)?),
                Role::Every { .. } => timers.push((entry.role, copy.function(entry.function)?)),
                Role::Xdp | Role::OnPacket | Role::Timer | Role::Expiry => {}
            }
        }
        for (id, object) in element.program.objects.iter().enumerate() {
            if let Some(function) = object.expiry {
                expiries.push((ObjectId(begin.object + id), copy.function(function)?));
            }
        }
        for (id, function) in expiries {
            if let Some(object) = out.objects.get_mut(id.0) {
                object.expiry = Some(function);
            }
        }
    }
    for (role, all) in [(Role::OnStart, starts), (Role::OnStop, stops)] {
        let function = match all.as_slice() {
            [] => continue,
            [one] => *one,
            several => {
                out.functions
                    .push(handler::one_after_the_other(role, several));
                FunctionId(out.functions.len() - 1)
            }
        };
        out.entries.push(Entry { role, function });
    }
    let timers = timers.into_iter();
    out.entries
        .extend(timers.map(|(role, function)| Entry { role, function }));
    Ok(())
}

/// Port of the chain or of an element, as the graph has them.
pub(crate) fn leads(topology: &Topology, element: usize, port: u32) -> Option<End> {
    topology.ports(element).get(port as usize).copied()
}
