//! A profile as people read it.

use std::fmt::Write;

use crate::document::{Recipe, Report, Tried};

/// The most members of each list that are shown.
const SHOWN: usize = 8;

/// The least prediction with which a recipe is recommended: what is printed as 1.00 gains nothing.
const GAINS: f64 = 1.005;

/// The text; its first line is the costliest cause with what would help most against it.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let of_object = |object: &str| {
        report
            .recipes
            .iter()
            .find(|r| r.gain >= GAINS && r.object.as_deref().is_none_or(|of| of == object))
    };
    match report.causes.first() {
        Some(first) => {
            let helps = of_object(&first.object);
            let helps = helps.map_or(String::new(), |r| format!("; try {}", named(r)));
            let _ = writeln!(out, "{}: {}{helps}", first.line, first.cause);
        }
        None => {
            let _ = writeln!(out, "{}: no conflict costs anything", report.name);
        }
    }
    let _ = writeln!(
        out,
        "\n{}, {} on {} workers: {} packets, {:.0} ns each, of which conflicts take {:.0} %",
        report.name,
        report.strategy,
        report.cores,
        report.packets,
        report.ns_per_packet,
        report.lost * 100.0
    );
    if !report.aborts.is_empty() {
        let _ = writeln!(out, "\n  share     count  line                     met");
    }
    for abort in report.aborts.iter().take(SHOWN) {
        let with = match &abort.with {
            Some(with) => format!(", met {} ({})", with.line, with.operation),
            None => String::new(),
        };
        let key = abort
            .key
            .as_ref()
            .map_or(String::new(), |k| format!(", key {k}"));
        let _ = writeln!(
            out,
            "  {:>4.0} % {:>9}  {:<24} {} {} at {}{with}{key}",
            abort.share * 100.0,
            abort.count,
            abort.line,
            abort.operation,
            abort.object,
            abort.at
        );
    }
    if !report.causes.is_empty() {
        let _ = writeln!(out, "\nCauses");
    }
    for cause in report.causes.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {:>4.0} %  {}: {}",
            cause.share * 100.0,
            cause.line,
            cause.cause
        );
    }
    if !report.recipes.is_empty() {
        let _ = writeln!(out, "\nRecipes (throughput over what it is; predicted)");
    }
    for recipe in report.recipes.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {:>5.2}  {}: {}{}\n         {}",
            recipe.gain,
            placed(recipe),
            named(recipe),
            recipe.tried.as_ref().map_or(String::new(), tried),
            recipe.why
        );
    }
    let shares: Vec<String> = (report.imbalance.workers.iter())
        .map(|w| format!("{:.0} %", w.share * 100.0))
        .collect();
    let _ = writeln!(
        out,
        "\nWorkers have {}; the busiest over the mean: {:.2}",
        shares.join(", "),
        report.imbalance.factor
    );
    if let Some(cause) = &report.imbalance.cause {
        let _ = writeln!(out, "  {cause}");
    }
    if let Some(remedy) = &report.imbalance.remedy {
        let _ = writeln!(out, "  {remedy}");
    }
    if !report.elements.is_empty() {
        let _ = writeln!(out, "\nTime inside elements");
    }
    for e in &report.elements {
        let _ = writeln!(
            out,
            "  {:>4.0} %  {}: {} packets, {:.0} ns each",
            e.share * 100.0,
            e.name,
            e.packets,
            e.ns_per_packet
        );
    }
    if !report.times.is_empty() {
        let seen: u64 = report.times.iter().map(|t| t.samples).sum();
        let _ = writeln!(out, "\nTime by line ({seen} looks)");
    }
    for t in report.times.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {:>4.0} %  {:<24} {}",
            t.share * 100.0,
            t.line,
            t.handler
        );
    }
    if let Some(caches) = &report.caches {
        let _ = writeln!(
            out,
            "Cache misses: {:.2} a packet, of {:.0} instructions, with receiving and sending",
            caches.misses_per_packet, caches.instructions_per_packet
        );
    }
    if let Some(prefetch) = &report.prefetch {
        let _ = writeln!(
            out,
            "Prefetch passes: {:.2} of the throughput without ({} turns)",
            prefetch.gain, prefetch.turns
        );
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn placed(recipe: &Recipe) -> String {
    match recipe.line {
        0 => recipe.file.clone(),
        line => format!("{}:{line}", recipe.file),
    }
}

/// What a recipe changes.
pub(crate) fn named(recipe: &Recipe) -> String {
    let object = recipe
        .object
        .as_ref()
        .map_or(String::new(), |o| format!("{o}: "));
    format!("{object}{} → {}", recipe.from, recipe.to)
}

fn tried(tried: &Tried) -> String {
    match (tried.gain, tried.low, tried.high, &tried.refused) {
        (Some(gain), Some(low), Some(high), _) => {
            format!(
                "; measured {gain:.2} ({low:.2} to {high:.2}, {} turns)",
                tried.turns
            )
        }
        (_, _, _, Some(why)) => format!("; not possible: {}", why.lines().next().unwrap_or("")),
        _ => String::new(),
    }
}
