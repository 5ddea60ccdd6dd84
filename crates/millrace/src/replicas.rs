//! Replicas of a function between live ports: the sequencer that numbers packets before workers have them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use millrace_dataplane::replica::{Elephant, Group, Sequencing};
use millrace_dataplane::worker::keep::Keep;
use millrace_dataplane::worker::{Code, Link};
use millrace_dataplane::{clock, port};

use millrace_place::Placement;
use millrace_topology::{End, Topology};

use crate::{Error, place};

/// The scheme of the ports that have a sequencer.
const SEQUENCED: &str = "vnic:";

/// Makes what numbers the packets of a chain between ports on this many workers, with a ring of `rows` rows, and lets
/// the function know the other replicas whose state is replicated; none where none is. `placement`: how the objects of an only function
/// live, which says who gets packets where workers have parts of some. `keep`: the state that it goes on with, if any.
///
/// # Errors
/// Packets come to the function from other elements, so that a sequencer does not know its rows; or there is no memory.
pub fn sequencing(
    chain: &mut [Link],
    workers: usize,
    stands: &Stands<'_>,
    (rows, placement): (usize, Option<&Placement>),
    keep: Option<&Keep>,
) -> Result<Option<Arc<Mutex<Sequencing>>>, Error> {
    let replicated = |link: &Link| match &link.code {
        Code::Module(code) => code.module.row_bytes().is_some() || code.small.is_some(),
        Code::Foreign(_) | Code::Classed(_) => false,
    };
    if workers < 2 || !chain.iter().any(replicated) {
        return Ok(None);
    }
    let (ports, enters) = match chain.len() {
        1 => (stands.ports, Vec::new()),
        _ => entered(chain, stands)?,
    };
    let Some(Link {
        code: Code::Module(code),
        ..
    }) = chain.first_mut()
    else {
        return Ok(None);
    };
    let parts = placement.filter(|p| p.replicates() && p.divides());
    let owners = match parts {
        Some(placement) => place::owners(placement, ports, workers)?,
        None => Vec::new(),
    };
    let small = code.small.as_ref();
    let (module, config) = small.map_or((&code.module, &code.config), |s| (&s.module, &s.config));
    let group = match small {
        Some(small) => Group::of_heavies(small, workers, rows, clock::now()),
        None => Group::of_parts(module, (workers, rows), clock::now(), owners),
    };
    let mut group = group.map_err(Error::wrong)?;
    if let Some(keep) = keep {
        Group::go_on(&mut group, &keep.begin, false, module.timers());
    }
    let of = (code.program, ports as u32);
    let made = Sequencing::new(&group, module, config, of).map_err(|e| {
        Error::wrong(e).help("declare a smaller capacity, or free memory on this machine")
    })?;
    let made = made.entering(enters);
    code.replicas = Some(group);
    Ok(Some(Arc::new(Mutex::new(made))))
}

/// Where the elements of a run stand.
pub struct Stands<'a> {
    /// ports of the chain
    pub ports: usize,
    /// how its elements are connected; none: one has the ports, or they stand in a row
    pub topology: Option<&'a Topology>,
    /// whether packets may enter at each port of the chain
    pub receives: Vec<bool>,
}

impl Stands<'_> {
    /// Of a function that has these ports alone.
    #[must_use]
    pub fn alone(ports: usize) -> Self {
        Self {
            ports,
            topology: None,
            receives: vec![true; ports],
        }
    }
}

/// Ports of the function of a chain whose state is replicated, and by port of the chain at which of them packets come to it. A row is
/// made of a packet as it enters: so the function has to be the first that all of its packets meet.
///
/// # Errors
/// It is not, or another function is replicated: with its name.
fn entered(chain: &[Link], stands: &Stands<'_>) -> Result<(usize, Vec<Option<u32>>), Error> {
    let line;
    let topology = match stands.topology {
        Some(topology) => topology,
        None => {
            line = Topology::line(chain.len());
            &line
        }
    };
    let name = |element: usize| chain.get(element).map_or("", |l| l.name.as_str());
    let refused = |element: usize, why: &str| {
        Error::no(format!(
            "--strategy replicate: {} cannot be replicated in this chain: {why}",
            name(element)
        ))
        .help(
            "let packets come to it first, and to no other element before it (one direction, --in and --out); or leave --strategy out: \
             state that packets write is under a lock then",
        )
    };
    let replicated = |link: &Link| match &link.code {
        Code::Module(code) => code.module.row_bytes().is_some(),
        Code::Foreign(_) | Code::Classed(_) => false,
    };
    if let Some(other) = chain.iter().skip(1).position(replicated) {
        return Err(refused(other + 1, "only the first function can be"));
    }
    // Ports of elements at which packets may come, from the outside inwards.
    let mut came = BTreeSet::new();
    let mut next = Vec::new();
    let mut enters = Vec::new();
    for (end, receives) in topology.entries().iter().zip(&stands.receives) {
        let End::Element { element, port } = *end else {
            enters.push(None);
            continue;
        };
        enters.push((element == 0).then_some(port));
        if *receives {
            next.push((element, port));
        }
    }
    while let Some((element, port)) = next.pop() {
        if !came.insert((element, port)) {
            continue;
        }
        let behaviour = chain.get(element).and_then(|link| match &link.code {
            Code::Module(code) => Some(&code.behaviour),
            Code::Foreign(_) | Code::Classed(_) => None,
        });
        for (out, end) in topology.ports(element).iter().enumerate() {
            let End::Element {
                element: to,
                port: at,
            } = *end
            else {
                continue;
            };
            if behaviour.is_some_and(|b| !b.leads(port as usize, out)) {
                continue;
            }
            if to == 0 {
                let why = format!(
                    "packets come to it through {}, and what that makes of them a row cannot say",
                    name(element)
                );
                return Err(refused(0, &why));
            }
            next.push((to, at));
        }
    }
    Ok((topology.ports(0).len(), enters))
}

/// Whether a core ahead of the workers has to number the packets of these ports; a `vnic:` does by itself.
///
/// # Errors
/// There is a port whose packets nobody can number, or a `vnic:` beside another port: one sequencer orders all packets of a function.
pub(crate) fn ahead<'a>(receiving: impl Iterator<Item = &'a String>) -> Result<bool, Error> {
    let words: Vec<&String> = receiving.collect();
    if let Some(other) = words.iter().find(|w| !port::is_live(w)) {
        return Err(Error::wrong(format!(
            "--strategy replicate and hybrid: {other} has no sequencer between it and live ports"
        ))
        .help("use captures or live ports alone, or another strategy"));
    }
    let numbers = |word: &&&String| word.starts_with(SEQUENCED);
    match (words.iter().find(numbers), words.as_slice()) {
        (None, _) => Ok(true),
        (Some(_), [_]) => Ok(false),
        (Some(_), _) => {
            let second = words.get(1).map_or("", |w| w.as_str());
            Err(Error::wrong(format!(
                "--strategy replicate and hybrid: {second} is a second device, and two devices cannot number packets together"
            ))
            .help("let one device have both ports: vnic:FILE?split=lan=CIDR"))
        }
    }
}

/// Bytes of a sequencer.
pub(crate) fn bytes(sequencing: &Mutex<Sequencing>) -> u64 {
    let sequencing = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
    sequencing.bytes()
}

/// What became of heavy keys; none where all are replicated.
pub(crate) fn elephants(sequencing: &Mutex<Sequencing>) -> Option<Vec<Elephant>> {
    let sequencing = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
    sequencing.elephants().map(<[_]>::to_vec)
}

/// Whether packets go to their owners, and none is sprayed.
pub(crate) fn directed(sequencing: &Mutex<Sequencing>) -> bool {
    let sequencing = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
    sequencing.group().directs() && sequencing.elephants().is_none()
}

/// Ends a sequencer: edits that no replica has made are dropped.
pub(crate) fn close(sequencing: &Mutex<Sequencing>) {
    let sequencing = sequencing.lock().unwrap_or_else(PoisonError::into_inner);
    sequencing.group().end();
}
