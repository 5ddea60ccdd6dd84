//! What a new element of a chain that runs on several workers has to be: one whose packets come to their workers as they do already.
//!
//! In a row any worker gets any packet, so that what packets write is under a lock, as at the start. Where the state of a function is divided,
//! the ports bring packets to workers by its fields and its key, and that stays: a new element is divided by the same, or needs no owner. It
//! has to find what it asks for in packets as they arrived, so nothing beside it may change them or send them back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use millrace::{Arrangement, Asked, Function, Make};
use millrace_check::alters::alters;
use millrace_check::egress::egress;
use millrace_check::{Options, check};
use millrace_dataplane::classes::Classes;
use millrace_dataplane::worker::Behaviour;
use millrace_object::program::Program;
use millrace_place::Placement;

use super::Run;
use crate::failure::Failure;
use crate::function;
use crate::strategy::Wished;

/// The workers of a run, at least two or those of a machine of a cluster, as they were arranged at its start.
pub struct Several {
    cores: usize,
    copied: bool,
    nic: String,
    steer: Vec<String>,
    strategy: Wished,
    /// it began as several elements
    row: bool,
    secret: Option<[u8; 32]>,
    /// who gets which packet, where that follows from the state of the only function
    placement: Option<Arc<Placement>>,
    /// packet classes, where there are guests
    classes: Option<Arc<Classes>>,
    /// by number: the programs that were there at the start, and which of their entries run
    started: Vec<Option<(Program, usize)>>,
    /// what was found out of them
    alone: Mutex<BTreeMap<u64, Option<String>>>,
}

impl Run {
    /// The workers of this run; none where there is one, and no other machine has any. `only` is its function, where it is one.
    pub(super) fn several(
        &self,
        only: Option<&Function>,
        classes: Option<&Arc<Classes>>,
    ) -> Option<Arc<Several>> {
        let placement = only.and_then(|f| f.placement.clone());
        let divided = placement.filter(|p| p.divides());
        let program = |f: &Function| f.program.clone().map(|program| (program, f.entry));
        let several = self.cores > 1 || self.cluster.described.is_some();
        several.then(|| {
            Arc::new(Several {
                cores: self.cores,
                copied: self.cluster.is_copied(),
                nic: self.nic.clone(),
                steer: self.steer.clone(),
                strategy: self.strategy,
                row: only.is_none(),
                secret: self.drawn,
                started: match &divided {
                    Some(_) => only.map(program).into_iter().collect(),
                    None => Vec::new(),
                },
                placement: divided,
                classes: classes.cloned(),
                alone: Mutex::default(),
            })
        })
    }
}

impl Several {
    /// The packet classes that guests have instances for.
    ///
    /// # Errors
    /// There are none: the run was started without guests.
    pub fn classes(&self, word: &str) -> Result<&Arc<Classes>, Failure> {
        self.classes.as_ref().ok_or_else(|| {
            Failure::no(format!(
                "{word}: a guest on {} workers has an instance for each packet class, and this run deals packets out in none",
                self.cores
            ))
            .help("start the chain with a guest in it, or with --cores 1")
        })
    }

    /// How a function runs beside what is there.
    ///
    /// # Errors
    /// It would need other packets than its workers would get.
    pub fn arranged(&self, nf: &str, make: &Make) -> Result<Make, Failure> {
        let asked = Asked {
            cores: self.cores,
            nic: &self.nic,
            secret: self.secret,
            copied: self.copied,
            ..Asked::default()
        };
        let attempt = |strategies: &[Wished]| {
            let strategies: Vec<_> = strategies.iter().map(|w| w.0).collect();
            let found = function::arrange(nf, make, &self.steer, &asked, (&strategies, None))?;
            self.fits(nf, &found)?;
            Ok(found.divided(make))
        };
        // As at the start: another version of what runs is arranged as that was.
        let own = match self.row && self.strategy == Wished::default() {
            true => Err(None),
            false => attempt(&[self.strategy]).map_err(Some),
        };
        match (own, &self.placement) {
            (Ok(make), _) => Ok(make),
            (Err(why), Some(_)) => attempt(&[Wished::SPREAD]).map_err(|e| why.unwrap_or(e)),
            (Err(_), None) => attempt(&[Wished::SPREAD, Wished::LOCK]),
        }
    }

    /// Whether workers get the packets that they need for an arrangement.
    ///
    /// # Errors
    /// They do not: why.
    pub fn fits(&self, nf: &str, found: &Arrangement) -> Result<(), Failure> {
        let now = found.placement.as_ref();
        let stays = "nothing was changed; restart the run with --state FOLDER, which keeps all of its state, or run it with --strategy lock";
        let refused = |what: String| {
            Err(Failure {
                detail: Some(found.reasons.join("\n")).filter(|text| !text.is_empty()),
                ..Failure::no(what).help(stays)
            })
        };
        let Some(placement) = self.placement.as_deref() else {
            return match now.divides() {
                true => refused(format!(
                    "{nf}: in this chain any worker gets any packet, and its state would be divided"
                )),
                false => Ok(()),
            };
        };
        let free =
            |o: &millrace_place::Place| !o.held.shared() && o.held != millrace_place::Held::Alone;
        // Packets say under which index of the table they came where numbers come home by that, from the start on.
        let alike = now.steers_as(placement) && now.indexes == placement.indexes;
        let locks = placement.objects.iter().any(|o| !free(o));
        match (now.divides(), locks || now.objects.iter().all(free)) {
            (true, _) if !alike => refused(format!(
                "{nf} cannot be divided as what runs is: its packets would have to come to workers by other fields, or under another key"
            )),
            (_, false) => refused(format!(
                "{nf} cannot be divided over the workers as what runs is: some of its state would be one for all, under a lock"
            )),
            _ => Ok(()),
        }
    }

    /// As [`millrace_control::chain::Maker::alone`].
    pub fn alone(&self, element: u64) -> Option<String> {
        let of = usize::try_from(element).ok();
        let started = of.and_then(|at| self.started.get(at))?;
        let mut known = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let own = || match started {
            Some((program, entry)) => why_alone(program, *entry),
            None => Some(UNKNOWN.to_owned()),
        };
        known.entry(element).or_insert_with(own).clone()
    }

    /// The same of a function that was made.
    pub fn alone_of(&self, function: &Function) -> Option<String> {
        // Nothing is divided by what packets are.
        self.placement.as_ref()?;
        match &function.program {
            Some(program) => why_alone(program, function.entry),
            None => Some(UNKNOWN.to_owned()),
        }
    }
}

/// Of a module alone.
const UNKNOWN: &str = "a module alone does not tell what it does to packets";

/// Why no function whose state is divided can be beside this program, of two ports.
fn why_alone(program: &Program, entry: usize) -> Option<String> {
    let Ok(checked) = check(program, &Options::default()) else {
        return Some("it is not known what it does to packets".to_owned());
    };
    if let Some(step) = alters(&checked, program) {
        let place = step.line.as_ref().map_or_else(String::new, |line| {
            let file = Path::new(&*line.file).file_name();
            let file = file.map_or_else(|| line.file.to_string(), |f| f.display().to_string());
            format!("{file}:{}: ", line.line)
        });
        return Some(format!("{place}it changes packets"));
    }
    let behaviour = Behaviour {
        egress: egress(program, entry, 2),
        ..Behaviour::default()
    };
    let back = behaviour.leads(0, 0) || behaviour.leads(1, 1);
    back.then(|| "it may send packets back to where they came from".to_owned())
}
