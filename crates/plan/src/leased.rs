//! Objects whose keys are numbers that the program leased itself: by which rule packets find their entries.
//!
//! Two rules can serve. R6 (homing) steers what comes back by the leased number, and what goes out by whatever the
//! program's own keys allow, down to the single flow: the program chooses the numbers, so they are spread whatever the
//! traffic is. R5 steers both by fields that the author compares, which are the peer's, and a single popular peer
//! brings all packets to one core. So R6 goes first where it serves; a trace may say otherwise ([`Carried`]).

use std::collections::BTreeSet;

use millrace_model::Model;
use millrace_object::program::Program;
use millrace_object::state::allocator;

use crate::constraints::Meeting;
use crate::make::Carried;
use crate::rules::homing::{self, Home, Homed, Unserved};
use crate::rules::{Barred, Said, incompatible, interchangeable};
use crate::solved::Device;
use crate::touch::{Source, Touch, Touches};

/// The object that serves.
pub(crate) struct Serving {
    pub meetings: Vec<Meeting>,
    pub said: Said,
    /// how packets come home, if it is by R6
    pub home: Option<Home>,
    /// ICMP echoes come home, too
    pub echoes: bool,
}

/// The rule that serves an object, the preferred one first; `own` are its touches that ask for something of their own.
/// `echoes` is set where R6 would serve if somebody looked for the identifiers of ICMP echoes.
///
/// # Errors
/// Neither serves; or R6 alone would, but has no keys: its meetings are given, for the caller to say why.
pub(crate) fn serving(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    (object, name): (usize, &str),
    (all, own): (&Touches, &[&Touch]),
    echoes: &mut bool,
) -> Result<Serving, Barred> {
    let compared = |model: &mut Model| {
        let found = interchangeable::exchanged(model, program, object, all, &device.cases)?;
        Some(Serving {
            said: interchangeable::judge(name, &found),
            meetings: found.meetings,
            home: written_under(model, program, device, object, all).then_some(Home::Dealt),
            echoes: false,
        })
    };
    if device.carried.get() == Carried::Compared
        && let Some(found) = compared(model)
    {
        return Ok(found);
    }
    let homed = homing::homed(program, object, own, &device.cases);
    let capacity = program.objects.get(object).map_or(0, |o| o.capacity);
    let serves = |homed: &Homed| {
        let solved = device.solve(&homed.meetings);
        solved.is_ok_and(|solved| homed.home.reaches_all(&solved, capacity))
    };
    if !homed.as_ref().is_ok_and(serves) {
        *echoes |= matches!(homed, Err(Unserved::Echoes));
        if device.carried.get() == Carried::Home
            && let Some(found) = compared(model)
        {
            return Ok(found);
        }
    }
    match homed {
        Ok(Homed {
            home,
            meetings,
            echoes,
        }) => Ok(Serving {
            meetings,
            echoes,
            said: homing::judge(model, name, own, &home, &program.ports),
            home: Some(Home::Carried(home)),
        }),
        Err(_) => {
            let refused = incompatible::access(model, program, name, own);
            Err(refused.unwrap_or_else(|| incompatible::kind(name, allocator::KIND.name)))
        }
    }
}

/// Whether packets write an object whose keys are leased numbers which nothing compares: there two cores must not have
/// one number, whatever serves the allocator.
fn written_under(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    allocator: usize,
    all: &Touches,
) -> bool {
    let leased = |t: &&Touch| t.object != allocator && t.any(|s| *s == Source::Leased);
    let others: BTreeSet<usize> = all.all.iter().filter(leased).map(|t| t.object).collect();
    others.into_iter().any(|object| {
        interchangeable::exchanged(model, program, object, all, &device.cases).is_none()
    })
}
