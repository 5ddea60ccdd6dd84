//! Every path from its assignment.

use millrace_object::program::ObjectId;
use millrace_object::state::ringbuf;

use crate::pair::{Happened, Pair};
use crate::run::Validation;
use crate::search::{AllMissed, Missed};
use crate::trial::{Case, Seed, with_contents};
use crate::witness::case;

impl Validation<'_> {
    /// Every path from its assignment, or this many of each entry, spread over all. The cases, and what was not driven.
    pub(crate) fn seeded(&mut self, most: Option<usize>) -> (Vec<Case>, AllMissed) {
        let mut cases = Vec::new();
        let mut missed = AllMissed::new();
        for entry in 0..self.charts.len() {
            let paths = self.charts.get(entry).map_or(0, |c| c.entry.paths.len());
            let each = most.map_or(1, |most| paths.div_ceil(most.max(1)).max(1));
            let asked = |path: usize| path.is_multiple_of(each);
            let made: Vec<_> = match self.charts.get(entry) {
                Some(chart) => (0..paths)
                    .map(|p| match asked(p) {
                        true => case(self.program, entry, chart, p),
                        false => Err("nobody asked".to_owned()),
                    })
                    .collect(),
                None => continue,
            };
            self.findings.left_out += (0..paths).filter(|p| !asked(*p)).count();
            for (path, case) in made.iter().enumerate().filter(|(p, _)| asked(*p)) {
                let why = match case {
                    Err(why) => Some(why.clone()),
                    Ok(case) => self.drive(entry, path, case, &made),
                };
                match why {
                    None => self.findings.driven += 1,
                    Some(why) => {
                        let case = case.as_ref().ok().cloned();
                        missed.insert((entry, path), Missed { why, case });
                    }
                }
            }
            cases.extend(made.into_iter().flatten());
        }
        let took = std::mem::take(&mut self.took);
        for other in took {
            if missed.remove(&other).is_some() {
                self.findings.driven += 1;
            }
        }
        (cases, missed)
    }

    /// Tells of the paths that nothing led to.
    pub(crate) fn not_driven(&mut self, missed: AllMissed) {
        for ((entry, path), Missed { why, .. }) in missed {
            let chart = self.charts.get(entry);
            let loose = chart.and_then(|c| c.entry.paths.get(path)?.loose);
            let why = match loose {
                Some(loose) => format!("it may be impossible ({loose}): {why}"),
                None if chart.is_some_and(|c| c.other_room(path)) => {
                    format!("it is of a frame with other room around it than these have: {why}")
                }
                None => why,
            };
            let rest = self.rest(entry, path, Some(why));
            self.findings.not_driven.push(rest);
        }
    }

    /// Runs a case; why it did not take the path.
    fn drive(
        &mut self,
        entry: usize,
        path: usize,
        case: &Case,
        others: &[Result<Case, String>],
    ) -> Option<String> {
        let program = with_contents(self.program, &case.contents);
        let mut seeds = case.seeds.clone();
        let mut last = None;
        // A sum that an addition answers is known only when it has been added to.
        for attempt in 0..2 {
            let mut pair = match Pair::new(&program, self.module, case.trial.time) {
                Ok(pair) => pair,
                Err(why) => return Some(why),
            };
            if let Some(why) = self.prepare(&mut pair, entry, case, &seeds, others) {
                return Some(why);
            }
            let Some((judged, happened)) = self.run("seeded", &program, &mut pair, &case.trial)
            else {
                return Some("emitted code and interpreter differ".to_owned());
            };
            let took = judged.path;
            let again = attempt == 0 && took != Some(path) && lowered(&mut seeds, &happened);
            if !again {
                self.tell("seeded", &case.trial, &judged);
                if took == Some(path) || judged.others.contains(&path) {
                    return None;
                }
                // It leads to another one, which may be led to by no assignment of its own.
                let all = took.into_iter().chain(judged.others);
                self.took.extend(all.map(|p| (entry, p)));
                last = Some(match took {
                    Some(other) => {
                        format!("its assignment leads to path {}", self.number(entry, other))
                    }
                    None => "its assignment leads to no path".to_owned(),
                });
                break;
            }
        }
        last
    }

    /// Puts the state of a case there; why that cannot be done.
    fn prepare(
        &self,
        pair: &mut Pair<'_>,
        entry: usize,
        case: &Case,
        seeds: &[Seed],
        others: &[Result<Case, String>],
    ) -> Option<String> {
        let is_ring = |object: ObjectId| {
            let o = self.program.objects.get(object.0);
            o.is_some_and(|o| *o.kind == ringbuf::KIND)
        };
        let rings = seeds.iter().filter_map(|s| match s {
            Seed::Full { object, .. } if is_ring(*object) => Some(*object),
            _ => None,
        });
        let rings: Vec<ObjectId> = rings.collect();
        for ring in &rings {
            // Nobody outside writes to a ring: another path of the program does.
            let chart = self.charts.get(entry);
            let paths = chart.into_iter().flat_map(|c| &c.entry.paths).zip(others);
            let by = paths.filter_map(|(p, other)| {
                let appends = p.accesses.iter().any(|a| {
                    a.object == *ring && matches!(a.outcome, Some("reserved" | "appended"))
                });
                let other = other.as_ref().ok()?;
                (appends && other.contents == case.contents).then_some(other)
            });
            let Some(by) = by.into_iter().next() else {
                return Some("no other path fills the ring".to_owned());
            };
            if let Err(why) = pair.fill(*ring, by) {
                return Some(why);
            }
        }
        let rest = |s: &&Seed| !matches!(s, Seed::Full { object, .. } if is_ring(*object));
        seeds.iter().filter(rest).find_map(|s| pair.seed(s).err())
    }
}

/// Lowers the sums that were seeded by what was added to them; whether any was.
fn lowered(seeds: &mut [Seed], happened: &Happened) -> bool {
    let mut any = false;
    for seed in seeds {
        let Seed::Estimate { object, key, sum } = seed else {
            continue;
        };
        let touches = happened.log.touches.iter();
        let mut of = touches.filter(|t| t.object == *object && t.key == *key);
        if let Some(touch) = of.find(|t| t.operation == "sketch_add") {
            let added = touch.result.saturating_sub(u64::from(*sum));
            let lower = u64::from(*sum).saturating_sub(added);
            any |= added > 0;
            *sum = u32::try_from(lower).unwrap_or(0);
        }
    }
    any
}
