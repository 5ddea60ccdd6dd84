//! A plan for people: objects with their reasons, as a compiler tells them, then ports.

use std::fmt::Write;

use crate::plan::{By, Degenerate, Grounds, KindPlan, Plan, Rule};
use crate::words::{listed, spaced};
use millrace_place::{Strategy, Treatment};

/// Writes it down.
#[must_use]
pub fn text(plan: &Plan) -> String {
    let mut out = format!(
        "{}: {} on {} core{} ({})\n",
        plan.name,
        plan.strategy.name(),
        plan.cores,
        if plan.cores == 1 { "" } else { "s" },
        plan.nic
    );
    if !plan.objects.is_empty() {
        out.push_str("\nstate\n");
    }
    for o in &plan.objects {
        let rule = match o.rule {
            Rule::Nothing => String::new(),
            rule => format!(" ({rule:?})"),
        };
        let line = o.line.as_ref().map_or(String::new(), |l| format!("{l}: "));
        let treatment = o.treatment.name();
        let _ = writeln!(out, "  {}: {treatment}{rule}", o.name);
        let _ = writeln!(out, "    {line}{}", o.reason);
        if let Some(set) = &o.set {
            let said = match &set.prevents {
                None if set.fields.is_empty() => "on one core".to_owned(),
                None => format!("steered by {}", listed(&set.fields)),
                Some(why) => format!("not steered by its fields: {why}"),
            };
            let _ = writeln!(out, "    packet set: {said}");
        }
        if let Some(remedy) = &o.remedy {
            let _ = writeln!(out, "    help: {remedy}");
        }
    }
    if plan.strategy == Strategy::Replicate {
        out.push_str("\nany packet goes to any core; a sequencer, which is part of the NIC (vnic:), gives each core the rows of all \
             packets; in software it is a core more, which receives every packet\n");
    }
    let by_object = { plan.objects.iter() }.any(|o| o.treatment == Treatment::Replicate);
    if plan.strategy == Strategy::Hybrid && by_object {
        out.push_str("\npackets go to the core that has their part of what is sharded; a sequencer, which is part of the NIC (vnic:), gives \
             the others their rows, if what is replicated depends on them\n");
    } else if plan.strategy == Strategy::Hybrid {
        out.push_str("\na few heavy keys are on all cores, whose packets go to any of them; others go to the core of their hash; a \
             sequencer, which is part of the NIC (vnic:), chooses these keys as packets come and moves them\n");
    }
    if let Some(history) = plan.history.as_ref().filter(|_| !plan.objects.is_empty()) {
        let _ = match history.refusals.first() {
            Some(refusal) => writeln!(
                out,
                "\nno replication: {}",
                crate::rules::replication::refused(refusal)
            ),
            None if history.bytes == 0 => Ok(()),
            None => writeln!(
                out,
                "\nreplication: {}",
                crate::rules::replication::row(history)
            ),
        };
    }
    for port in &plan.ports {
        let _ = writeln!(
            out,
            "\nport {}: a key from a space of {} dimensions",
            port.name, port.key_space
        );
        let width = port.kinds.iter().map(|k| k.kind.len()).max().unwrap_or(0);
        for k in &port.kinds {
            let _ = writeln!(out, "  {:width$}  {}", k.kind, kind(k));
        }
        for line in degenerate(&port.kinds) {
            let _ = writeln!(out, "  {line}");
        }
        if port.echoes {
            out.push_str(
                "  ICMP echoes go by their identifier, a request as UDP from that port, a reply as UDP to it: the \
                 core that receives them looks inside\n",
            );
        }
        if port.odd.is_some() {
            out.push_str(
                "  odd packets are those that a NIC reads otherwise than the program, which does not check their \
                 headers: the core that receives them takes the bytes that the program takes\n",
            );
        }
        if port.inside {
            out.push_str(
                "  ICMP errors go where the answer to the packet that they carry would go, and first fragments \
                 where the whole packet would: the core that receives them looks inside\n",
            );
        }
    }
    for h in &plan.homes {
        let by = match &h.carried {
            Some(by) => format!(
                "packets on {} come home by their {}",
                by.port,
                spaced(&by.field)
            ),
            None => "cores lease different numbers".to_owned(),
        };
        let (object, numbers, indexes) = (&h.object, h.numbers, h.indexes);
        let _ = writeln!(
            out,
            "\n{object}: {by}: {numbers} numbers for each of {indexes} indexes of the table"
        );
    }
    if !plan.relaxations.is_empty() {
        out.push_str("\nmay differ from the sequential program, counted when it does\n");
    }
    for r in &plan.relaxations {
        let _ = writeln!(out, "  {} of {}: {}", r.name, r.object, r.meaning);
    }
    for a in &plan.assumptions {
        let _ = writeln!(
            out,
            "\nholds for {} = {}: {}",
            a.parameter, a.value, a.because
        );
    }
    out.push('\n');
    match &plan.measured {
        Some(measured) => {
            out.push_str(&crate::cost::text(measured, &plan.predicted, plan.strategy));
        }
        None if plan.grounds == Grounds::Order => out.push_str(
            "nothing was measured, so no rate is predicted: what shards is sharded, and only what does not is \
             locked (--in FILE measures)\n",
        ),
        None => {}
    }
    out
}

/// Traffic that the port's key does not spread, with the kinds that it is of. A single flow goes without saying.
fn degenerate(kinds: &[KindPlan]) -> Vec<String> {
    let mut all: Vec<(&str, u32, Vec<String>)> = Vec::new();
    for k in kinds {
        let few = |d: &&Degenerate| d.fields.len() < 4;
        for d in k.degenerate.iter().filter(few) {
            let known = all
                .iter_mut()
                .find(|(t, n, _)| *t == d.traffic && *n == d.cores);
            match known {
                Some((_, _, of)) => of.push(k.kind.clone()),
                None => all.push((&d.traffic, d.cores, vec![k.kind.clone()])),
            }
        }
    }
    let line = |(traffic, cores, of): (&str, u32, Vec<String>)| {
        let kinds = listed(&of);
        match cores {
            1 => format!("not spread: {traffic} are all on one core ({kinds})"),
            n => format!("not spread: {traffic} reach {n} cores at most ({kinds})"),
        }
    };
    all.into_iter().map(line).collect()
}

fn kind(k: &KindPlan) -> String {
    let named = |fields: &[String]| {
        let words: Vec<String> = fields.iter().map(|f| spaced(f)).collect();
        listed(&words)
    };
    let mut text = match (k.fields.is_empty(), k.bound) {
        (true, true) => "all on one core".to_owned(),
        (true, false) => "anywhere".to_owned(),
        (false, _) => format!("by {}", named(&k.fields)),
    };
    if !k.cancelled.is_empty() {
        let _ = write!(text, "; the key cancels {}", named(&k.cancelled));
    }
    if !k.fields.is_empty() {
        let probable = if k.certified { "" } else { ", probable" };
        let _ = write!(
            text,
            "; rank {} of the table's index{probable}, {} of the whole hash",
            k.table_rank, k.rank
        );
    }
    if let Some(g) = k.guess {
        let some = if g.entry_bits == 1 { "" } else { "s" };
        let (entry, core) = (g.entry_bits, g.core_bits);
        let _ = write!(
            text,
            "; {entry} bit{some} to guess for an entry, {core:.1} for a core"
        );
    }
    if let Some(because) = &k.because {
        let _ = write!(text, ": {because}");
    }
    if k.by == By::Software {
        text.push_str("; in software");
    }
    if !k.bound && !k.fields.is_empty() {
        text.push_str("; reaches no state that is sharded");
    }
    text
}
