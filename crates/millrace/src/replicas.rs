//! Replicas of a function between live ports: the sequencer that numbers packets before workers have them.

use std::sync::{Arc, Mutex, PoisonError};

use millrace_dataplane::replica::{Elephant, Group, Sequencing};
use millrace_dataplane::worker::{Code, Link};
use millrace_dataplane::{clock, port};

use millrace_place::Placement;

use crate::{Error, place};

/// The scheme of the ports that have a sequencer.
const SEQUENCED: &str = "vnic:";

/// Makes what numbers the packets of a chain between `ports` ports on this many workers, with a ring of `rows` rows, and lets
/// its function know the other replicas; none where no state is replicated. `placement`: how its objects
/// live, which says who gets packets where workers have parts of some.
///
/// # Errors
/// The function stands in a row with others, or there is no memory.
pub fn sequencing(
    chain: &mut [Link],
    workers: usize,
    ports: usize,
    (rows, placement): (usize, Option<&Placement>),
) -> Result<Option<Arc<Mutex<Sequencing>>>, Error> {
    let replicated = |link: &Link| match &link.code {
        Code::Module(code) => code.module.row_bytes().is_some() || code.small.is_some(),
        Code::Foreign(_) | Code::Classed(_) => false,
    };
    if workers < 2 || !chain.iter().any(replicated) {
        return Ok(None);
    }
    let [
        Link {
            code: Code::Module(code),
            ..
        },
    ] = chain
    else {
        return Err(Error::wrong("--strategy replicate and hybrid are for one function").help(
            "leave it out: in a chain any worker gets any packet, and state that packets write is under a lock",
        ));
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
    let group = group.map_err(Error::wrong)?;
    let of = (code.program, ports as u32);
    let made = Sequencing::new(&group, module, config, of).map_err(|e| {
        Error::wrong(e).help("declare a smaller capacity, or free memory on this machine")
    })?;
    code.replicas = Some(group);
    Ok(Some(Arc::new(Mutex::new(made))))
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
