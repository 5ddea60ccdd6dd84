//! One execution against the model: the path whose guard holds, and whether what it says is what happened.

use millrace_object::program::Program;

use crate::chain;
use crate::chart::{Before, Chart};
use crate::pair::{Happened, Pair};
use crate::predict::{Disagreement, Was, compare, predict};
use crate::trial::Trial;
use crate::turns::{Seen, fits, settle};

/// Result of one execution.
#[derive(Clone, Default, Debug)]
pub struct Judged {
    /// the path that was taken; none if no guard holds, or several do
    pub path: Option<usize>,
    /// others that the execution may be of as well: through loops that are taken for any number of turns
    pub others: Vec<usize>,
    /// what is not as the path says
    pub disagreements: Vec<Disagreement>,
    /// no guard holds
    pub outside: bool,
}

/// Holds an execution against the entry's paths. `pair` is in the state after it.
#[must_use]
pub fn judge(
    program: &Program,
    chart: &Chart<'_>,
    trial: &Trial,
    happened: &Happened,
    pair: &Pair<'_>,
) -> Judged {
    let before = Before {
        value: &|object, key| pair.value(object, key),
        full: &|object| pair.is_full(object),
        log: &happened.log,
    };
    let base = chart.base(program, trial);
    if chain::is_cut(&chart.entry.paths) {
        return chain::judge(program, chart, (trial, &base), happened);
    }
    let was = Was {
        value: &|object, key| before.at(object, key),
        values: &|object| pair.values(object),
    };
    let after = |object, key: &[u8]| pair.value(object, key);
    let holding = chart.holding(program, &base, &before);
    let through_loops = |i: &usize| chart.charted.get(*i).is_some_and(|c| c.settled.is_some());
    let (loops, holding): (Vec<_>, Vec<_>) =
        holding.into_iter().partition(|(i, _)| through_loops(i));
    if holding.is_empty() && !loops.is_empty() {
        let mut judged = Judged::default();
        let seen = Seen::of(&happened.log);
        for (i, under) in loops {
            let (Some(path), Some(c)) = (chart.entry.paths.get(i), chart.charted.get(i)) else {
                continue;
            };
            let Some(settled) = &c.settled else { continue };
            let arena = &chart.entry.arena;
            let mut predicted = predict(program, chart.entry, path, trial, &under, &was);
            settle(arena, path, settled, &mut predicted, happened);
            let all = match fits(arena, path, settled, &under, &seen) {
                Some(other) => vec![other],
                None => compare(program, &predicted, happened, &after),
            };
            match (all.is_empty(), judged.path) {
                (true, None) => {
                    judged.path = Some(i);
                    judged.disagreements.clear();
                }
                (true, Some(_)) => judged.others.push(i),
                // What is nearest to it.
                (false, None) if judged.disagreements.is_empty() => judged.disagreements = all,
                (false, _) => {}
            }
        }
        return judged;
    }
    let ((path, under), others) = match holding.split_first() {
        Some((first, others)) => (first, others),
        None => {
            return Judged {
                outside: true,
                ..Judged::default()
            };
        }
    };
    if !others.is_empty() {
        let names = holding.iter().map(|(i, _)| format!("{}", i + 1));
        let names: Vec<String> = names.collect();
        return Judged {
            disagreements: vec![Disagreement {
                what: "guards",
                predicted: "one path's guard holds".to_owned(),
                happened: format!("those of paths {} hold", names.join(", ")),
            }],
            ..Judged::default()
        };
    }
    let Some(p) = chart.entry.paths.get(*path) else {
        return Judged::default();
    };
    let predicted = predict(program, chart.entry, p, trial, under, &was);
    Judged {
        path: Some(*path),
        disagreements: compare(program, &predicted, happened, &after),
        ..Judged::default()
    }
}
