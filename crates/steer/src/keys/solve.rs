//! From classes and constraints to the space of keys: how many index bits are asked for.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::case::Constraint;
use super::class::Class;
use super::equations::{self, Layout, Shape};
use super::generic::bounds;
use super::space::Space;
use super::spans::{self, Remembered, Span};
use super::unsolved::{Barred, Infeasible, Invalid, No, Unsolved};
use crate::nic::{Choice, Nic};

/// More than eight ports with every kind of packet.
const MAX_CLASSES: usize = 96;
/// Word operations that the elimination takes at worst, about half a minute; what programs ask for takes a
/// thousandth.
const MAX_WORK: u128 = 1 << 35;

/// Purpose of the keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// bytes of the NIC's key
    pub key_bytes: usize,
    /// entries of its indirection table, a power of two
    pub entries: usize,
    /// the cores to spread over
    pub cores: u32,
}

impl Target {
    /// This NIC with its usual table.
    #[must_use]
    pub fn of(nic: &Nic, cores: u32) -> Self {
        Self {
            key_bytes: nic.key_bytes,
            entries: nic.table_sizes.first().copied().unwrap_or(1),
            cores,
        }
    }

    /// Index bits of the whole table.
    fn most(&self) -> usize {
        self.entries.checked_ilog2().unwrap_or(0) as usize
    }

    /// Bits that name a core.
    #[must_use]
    pub fn needed(&self) -> usize {
        (u32::BITS - self.cores.saturating_sub(1).leading_zeros()) as usize
    }
}

/// All keys for a NIC with its usual table under which the packets meet that the constraints name, and
/// every class that shall reaches all cores.
///
/// As many index bits of the table are used as possible: fewer leave more keys, so that they are taken
/// only where more leave some class short. With `q` of them the table is to repeat after 2^q entries.
///
/// # Errors
/// [`Unsolved::Infeasible`] when there are no such keys, for no number of index bits, which is proved up
/// to the errors of two random points of GF(2^64) (2^-100); [`Unsolved::Invalid`] when the question is none.
pub fn solve(
    classes: &[Class],
    constraints: &[Constraint],
    nic: &Nic,
    cores: u32,
) -> Result<Space, Unsolved> {
    offered(classes, nic)?;
    solve_for(classes, constraints, Target::of(nic, cores))
}

/// The same for any device that hashes these classes: one that is not modelled, or another table.
///
/// # Errors
/// As [`solve`].
pub fn solve_for(
    classes: &[Class],
    constraints: &[Constraint],
    target: Target,
) -> Result<Space, Unsolved> {
    solve_again(classes, constraints, target, &mut Remembered::default())
}

/// The same for whoever asks about the same cases time and again.
///
/// # Errors
/// As [`solve`].
pub fn solve_again(
    classes: &[Class],
    constraints: &[Constraint],
    target: Target,
    known: &mut Remembered,
) -> Result<Space, Unsolved> {
    fits(classes, target)?;
    let pairs = spans::all(classes, constraints, known)?;
    let spans: Vec<Span> = pairs.iter().map(spans::Pairs::span).collect();
    from_spans(classes, &spans, target)
}

/// The same for whoever has been told already why there are none, of other classes: none if there are none of these
/// either.
///
/// # Errors
/// [`Invalid`]: the question makes no sense.
pub fn solve_otherwise(
    classes: &[Class],
    constraints: &[Constraint],
    target: Target,
    known: &mut Remembered,
) -> Result<Option<Space>, Invalid> {
    fits(classes, target)?;
    let pairs = spans::all(classes, constraints, known)?;
    let spans: Vec<Span> = pairs.iter().map(spans::Pairs::span).collect();
    Ok(best(classes, &spans, target)?.ok())
}

/// Facts about a search that found no space.
struct Searched {
    /// every space was tried
    proved: bool,
    /// the invariants, if they were asked for
    invariants: Option<Vec<usize>>,
    /// by class the greatest bound
    most: Vec<usize>,
}

/// The same from the vectors that must meet.
fn from_spans(classes: &[Class], spans: &[Span], target: Target) -> Result<Space, Unsolved> {
    let searched = match best(classes, spans, target)? {
        Ok(space) => return Ok(space),
        Err(searched) => searched,
    };
    if !searched.proved {
        return Err(Unsolved::NotFound);
    }
    let invariants = searched.invariants;
    let invariants = invariants.unwrap_or_else(|| equations::invariants(classes, spans));
    let infeasible = infeasible(classes, invariants, &searched.most, target.needed());
    match infeasible.barred.is_empty() {
        true => Err(Unsolved::Together),
        false => Err(infeasible.into()),
    }
}

/// The best of the spaces in which every class reaches all cores.
fn best(
    classes: &[Class],
    spans: &[Span],
    target: Target,
) -> Result<Result<Space, Searched>, Invalid> {
    let shapes = equations::shapes(classes, spans);
    let needed = target.needed();
    let mut most = vec![0; classes.len()];
    // With the largest shortfall of a class from what its invariants allow.
    let mut best: Option<(usize, Space)> = None;
    let mut proved = true;
    let mut at_most = None;
    for index in (needed.max(1)..=target.most()).rev() {
        let layout = Layout::new(classes, index);
        let basis = null_space(&layout, &shapes)?;
        // Most of what is tried fails for those that have to reach all cores.
        let least = bounds(classes, &layout, &basis, |c| c.spread);
        for (most, bound) in most.iter_mut().zip(&least) {
            *most = (*most).max(*bound);
        }
        let short = |(class, bound): (&Class, &usize)| class.spread && *bound < needed;
        if classes.iter().zip(&least).any(short) {
            continue;
        }
        let bounds = bounds(classes, &layout, &basis, |_| true);
        let spread = || {
            (0..)
                .zip(classes.iter().zip(&bounds))
                .filter(|(_, (c, _))| c.spread)
        };
        // What any hash of this many bits could reach.
        let lost = if spread().all(|(_, (_, bound))| *bound == index) {
            0
        } else {
            let all = at_most.get_or_insert_with(|| equations::invariants(classes, spans));
            let lost = spread().map(|(id, (_, bound))| {
                let reach = all.get(id).copied().unwrap_or(index).min(index);
                reach.saturating_sub(*bound)
            });
            lost.max().unwrap_or(0)
        };
        if best.as_ref().is_some_and(|(other, _)| *other <= lost) {
            continue;
        }
        let space = Space::new(classes, layout, basis, bounds, target, spans);
        match space.reaches_all() {
            Reaches::Yes => {
                best = Some((lost, space));
                if lost == 0 {
                    break;
                }
            }
            Reaches::No => {}
            Reaches::Unknown => proved = false,
        }
    }
    Ok(match best {
        Some((_, space)) => Ok(space),
        None => Err(Searched {
            proved,
            invariants: at_most,
            most,
        }),
    })
}

/// Whether some key of a space reaches all cores with every class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reaches {
    /// one that was drawn does
    Yes,
    /// none does: all were tried
    No,
    /// none of those drawn does
    Unknown,
}

fn null_space(layout: &Layout, shapes: &[Shape]) -> Result<Vec<crate::gf2::Row>, Invalid> {
    let wide = |count: usize| count as u128;
    let rows = wide(shapes.len()) * wide(layout.index);
    let words = wide(layout.unknowns / 64 + 1);
    if rows * rows.min(wide(layout.unknowns)) * words > MAX_WORK {
        return Err(Invalid::TooMany);
    }
    Ok(equations::keys(layout, shapes))
}

/// The classes whose rank is too low whatever the number of index bits.
fn infeasible(
    classes: &[Class],
    invariants: Vec<usize>,
    most: &[usize],
    needed: usize,
) -> Infeasible {
    let judge = |(id, class): (usize, &Class)| {
        let at = |list: &[usize]| list.get(id).copied().unwrap_or(0);
        (class.spread && at(most) < needed).then(|| Barred {
            class: id,
            why: match (at(&invariants), at(most)) {
                (0, _) => No::Connected,
                (_, 0) => No::Overlap,
                _ => No::Narrow,
            },
            invariants: at(&invariants),
            rank: at(most),
            needed,
        })
    };
    Infeasible {
        barred: classes.iter().enumerate().filter_map(judge).collect(),
        invariants,
    }
}

/// The classes are few, each port's of different kinds, and the key and the table are long enough.
fn fits(classes: &[Class], target: Target) -> Result<(), Invalid> {
    if classes.len() > MAX_CLASSES {
        return Err(Invalid::TooMany);
    }
    for (id, class) in classes.iter().enumerate() {
        let wrong = |what: &str| Invalid::Fields {
            class: id,
            what: what.to_owned(),
        };
        let (before, _) = classes.split_at(id);
        for other in before.iter().filter(|other| other.port == class.port) {
            if other.kind == class.kind {
                return Err(wrong("the port has two classes of this kind"));
            }
            if other.hashed == class.hashed && other.fields != class.fields {
                return Err(wrong(
                    "the NIC takes two kinds of packets for the same, and other fields are asked of each",
                ));
            }
        }
        let twice = |(place, field)| class.fields.iter().skip(place + 1).any(|f| f == field);
        if class.fields.iter().enumerate().any(twice) {
            return Err(wrong("a field is hashed twice"));
        }
        if class.hashed.is_none() && !class.fields.is_empty() {
            return Err(wrong("fields are hashed of what is not hashed"));
        }
        // The hash has 32 bits; the last input bit uses the key bits from its own place on.
        if class.bits() + 31 > 8 * target.key_bytes.min(1 << 16) {
            return Err(wrong("the key is too short for its fields"));
        }
    }
    let entries = target.entries;
    let sane = entries.is_power_of_two() && entries <= 1 << 16;
    if !sane || target.cores == 0 || target.needed() > target.most() {
        return Err(Invalid::Cores {
            cores: target.cores,
            entries,
        });
    }
    Ok(())
}

/// The NIC can hash every class as it stands, all at once.
fn offered(classes: &[Class], nic: &Nic) -> Result<(), Invalid> {
    for (id, class) in classes.iter().enumerate() {
        let wrong = |what: &str| Invalid::Fields {
            class: id,
            what: format!("{} {what} of {}", nic.title, class.kind.name()),
        };
        let Some(hashed) = class.hashed else {
            continue;
        };
        let rule = nic.kinds.get(&hashed).ok_or_else(|| wrong("has no rule"))?;
        let mut chosen = rule.fields.iter().filter(|f| class.fields.contains(f));
        let ordered = class
            .fields
            .iter()
            .all(|field| chosen.next() == Some(field));
        let whole = class.fields.len() == rule.fields.len();
        if class.fields.is_empty() || !ordered || (rule.choice == Choice::All && !whole) {
            return Err(wrong("cannot hash these fields"));
        }
        // Taken for a coarser kind only while the rules of the kinds on the way are off.
        let mut finer = Some(class.kind);
        while let Some(kind) = finer.filter(|kind| *kind != hashed) {
            let used = |c: &Class| c.port == class.port && c.hashed == Some(kind);
            if classes.iter().any(used) {
                return Err(wrong("has another rule in use"));
            }
            finer = kind.coarser();
        }
        if finer.is_none() {
            return Err(wrong("has no coarser rule"));
        }
    }
    Ok(())
}

/// The same points every time, so that a plan says the same every time. The constraints do not depend on
/// them.
pub(super) fn fixed() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0x6d69_6c6c_7261_6365)
}

/// The space at this many index bits, whatever it reaches.
#[cfg(test)]
pub(super) fn space_at(
    classes: &[Class],
    constraints: &[Constraint],
    index: usize,
) -> Result<Space, Unsolved> {
    let target = Target {
        key_bytes: 52,
        entries: 1 << 16,
        cores: 1,
    };
    fits(classes, target)?;
    let pairs = spans::all(classes, constraints, &mut Remembered::default())?;
    let spans: Vec<Span> = pairs.iter().map(spans::Pairs::span).collect();
    let layout = Layout::new(classes, index);
    let basis = null_space(&layout, &equations::shapes(classes, &spans))?;
    let bounds = bounds(classes, &layout, &basis, |_| true);
    Ok(Space::new(classes, layout, basis, bounds, target, &spans))
}
