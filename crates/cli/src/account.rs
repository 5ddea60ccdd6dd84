//! The account of a run as people read it.

use std::fmt::Write;
use std::time::Duration;

use millrace::Function;
use millrace_dataplane::account::{Account, LostAccount, StageAccount};
use millrace_export::Counts;
use millrace_object::state;
use millrace_plan::cost::Prediction;

use crate::quantity::{bytes, duration, grouped, percent};

/// Keys that were replicated of which a line is written; `--json` has all.
const ELEPHANTS: usize = 8;

/// A short readable account, with the rate that was expected beside the one that was measured.
pub fn text(
    name: &str,
    function: Option<&Function>,
    (account, predicted): (&Account, Option<Prediction>),
) -> String {
    let how = match function {
        Some(function) if function.from_cache => "from the cache",
        Some(_) => "from its source",
        None => "nothing to build",
    };
    let prepared = function.map_or(Duration::ZERO, |f| f.prepared);
    let mut text = written(name, account, prepared, how);
    if let Some(p) = predicted {
        let simulated = match p.simulated {
            true => ", more than this machine has: simulated",
            false => "",
        };
        text.push_str(&format!(
            "\n  predicted {:.2} Mpps by {} on {} cores{simulated}; {:.2} with input and output\n",
            p.mpps,
            p.strategy.name(),
            p.cores,
            account.mpps
        ));
    }
    text
}

/// What was exported of it.
pub fn export(c: Counts) -> String {
    let mut text = format!(
        "\nexported {} flow records of {} packets, one in {}\n",
        grouped(c.records),
        grouped(c.sampled),
        grouped(c.every.into())
    );
    if c.missed + c.lost > 0 {
        text.push_str(&format!(
            "  lost: {} packets that had no room, {} records that the collector has not got\n",
            grouped(c.missed),
            grouped(c.lost)
        ));
    }
    text
}

fn written(name: &str, account: &Account, prepared: Duration, how: &str) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = fates(&mut text, name, account);
    let _ = ports(&mut text, account);
    let _ = queues(&mut text, account);
    let _ = elements(&mut text, account);
    let _ = slow(&mut text, account);
    let _ = state(&mut text, account);
    let _ = outputs(&mut text, account);
    let _ = costs(&mut text, account, prepared, how);
    if account.interrupted {
        text.push_str(
            "\nstopped before its inputs ended; everything read until then is accounted\n",
        );
    }
    text
}

fn fates(text: &mut String, name: &str, a: &Account) -> std::fmt::Result {
    writeln!(
        text,
        "{name}: {} packets, each with one fate",
        grouped(a.read)
    )?;
    writeln!(text)?;
    let fates = [
        ("forwarded", a.forwarded, true),
        ("dropped", a.dropped, true),
        ("passed", a.passed, false),
        ("consumed", a.consumed, false),
        ("aborted", a.aborted, false),
    ];
    for (fate, packets, always) in fates {
        if always || packets > 0 {
            let share = percent(packets, a.read);
            writeln!(text, "  {fate:<22}{:>14}  {share:5.1} %", grouped(packets))?;
        }
        if fate == "forwarded" {
            for line in lost(a.lost.unwrap_or_default(), a.read) {
                writeln!(text, "{line}")?;
            }
        }
    }
    if !a.reasons.is_empty() {
        writeln!(text)?;
        let mut reasons: Vec<_> = a.reasons.iter().collect();
        reasons.sort_by_key(|(name, packets)| (std::cmp::Reverse(**packets), *name));
        for (reason, packets) in reasons {
            let share = percent(*packets, a.read);
            writeln!(
                text,
                "  because {reason:<14}{:>14}  {share:5.1} %",
                grouped(*packets)
            )?;
        }
    }
    if a.created > 0 {
        let what = match a.stages.iter().any(|s| s.slow.is_some()) {
            true => "packets made",
            false => "copies made by floods",
        };
        writeln!(text, "\n  {what}: {}", grouped(a.created))?;
    }
    Ok(())
}

/// What ports lost, to stand beside what was forwarded: a line for each kind of which there is any.
pub fn lost(lost: LostAccount, read: u64) -> Vec<String> {
    let kinds = [
        ("  of these not sent", lost.failed, read),
        ("lost: came too fast", lost.missed, read + lost.missed),
        ("lost: did not fit", lost.unfit, read + lost.unfit),
    ];
    let some = kinds.into_iter().filter(|(_, packets, _)| *packets > 0);
    some.map(|(what, packets, all)| {
        let share = percent(packets, all);
        format!("  {what:<22}{:>14}  {share:5.1} %", grouped(packets))
    })
    .collect()
}

fn ports(text: &mut String, a: &Account) -> std::fmt::Result {
    let width = a
        .ports
        .iter()
        .map(|p| p.name.len())
        .max()
        .unwrap_or(0)
        .max(4);
    writeln!(
        text,
        "\n  {:<width$}{:>14}{:>14}{:>14}",
        "port", "read", "dropped", "sent"
    )?;
    for port in &a.ports {
        let [read, dropped, sent] =
            [port.read, port.dropped + port.aborted, port.sent].map(grouped);
        writeln!(
            text,
            "  {:<width$}{read:>14}{dropped:>14}{sent:>14}",
            port.name
        )?;
    }
    Ok(())
}

/// What live ports lost, where they lost anything, and what they say of themselves.
fn queues(text: &mut String, a: &Account) -> std::fmt::Result {
    if !a.facts.is_empty() {
        writeln!(text)?;
    }
    for fact in &a.facts {
        writeln!(text, "  {fact}")?;
    }
    for queue in &a.queues {
        let counts = [
            ("missed", queue.missed),
            ("unfit", queue.unfit),
            ("failed", queue.failed),
            ("discarded", queue.discarded),
            ("duplicated", queue.duplicated),
            ("altered", queue.altered),
        ];
        let seen: Vec<_> = counts
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(what, n)| format!("{} {what}", grouped(*n)))
            .collect();
        if !seen.is_empty() {
            let (name, worker) = (&queue.name, queue.worker);
            writeln!(text, "\n  {name}, worker {worker}: {}", seen.join(", "))?;
        }
    }
    if a.workers.len() > 1 {
        writeln!(text)?;
        for worker in &a.workers {
            let (packets, bursts) = (grouped(worker.packets), grouped(worker.bursts));
            writeln!(
                text,
                "  worker {}: {packets} packets in {bursts} bursts",
                worker.worker
            )?;
        }
    }
    Ok(())
}

/// What each element of a chain saw and took. A cycle is one of the time stamp counter.
fn elements(text: &mut String, a: &Account) -> std::fmt::Result {
    if a.stages.len() < 2 {
        return Ok(());
    }
    let name = |s: &StageAccount| match s.left {
        true => format!("{} (left)", s.name),
        false => s.name.clone(),
    };
    let widths = a.stages.iter().map(|s| name(s).chars().count());
    let width = widths.max().unwrap_or(0).max(7);
    let head = "element";
    writeln!(
        text,
        "\n  {head:<width$}{:>14}{:>14}{:>14}{:>16}{:>9}",
        "packets", "bursts", "ns a packet", "cycles a packet", "share"
    )?;
    for stage in &a.stages {
        let (packets, bursts) = (grouped(stage.packets), grouped(stage.bursts));
        let ns = stage.seconds * 1e9 / (stage.packets.max(1) as f64);
        let (cycles, share) = (stage.cycles_per_packet, stage.share * 100.0);
        let name = name(stage);
        writeln!(
            text,
            "  {name:<width$}{packets:>14}{bursts:>14}{ns:>14.1}{cycles:>16.1}{share:>7.1} %"
        )?;
    }
    Ok(())
}

/// Packets that functions handed over to their slow paths, by element: those that had some.
fn slow(text: &mut String, a: &Account) -> std::fmt::Result {
    let stages = a.stages.iter();
    for (stage, slow) in stages.filter_map(|s| Some((s, s.slow.as_ref()?))) {
        let name = match a.stages.len() {
            1 => String::new(),
            _ => format!(" of {}", stage.name),
        };
        writeln!(
            text,
            "\n  slow path{name}: {} packets handed over, {} left it",
            grouped(slow.handed),
            grouped(slow.left)
        )?;
        let more = [
            ("refused, their element's queue was full", slow.refused),
            ("led to more packets than one may", slow.bounded),
        ];
        for (what, packets) in more.into_iter().filter(|m| m.1 > 0) {
            writeln!(text, "    {:>14}  {what}", grouped(packets))?;
        }
        let had = slow.elements.iter().filter(|e| e.handed + e.refused > 0);
        for element in had {
            let packets = grouped(element.handed + element.refused);
            writeln!(
                text,
                "    {packets:>14}  {}: {}",
                element.element, element.why
            )?;
        }
    }
    Ok(())
}

fn state(text: &mut String, a: &Account) -> std::fmt::Result {
    // Globals are one value each; there is nothing to say of how full they are.
    let tables = a
        .objects
        .iter()
        .filter(|o| state::by_name(&o.kind).is_none_or(|k| !k.is_global()));
    let tables: Vec<_> = tables.filter_map(|o| Some((o, o.entries?))).collect();
    let width = tables
        .iter()
        .map(|(o, _)| o.name.len())
        .max()
        .unwrap_or(0)
        .max(5);
    if !tables.is_empty() {
        writeln!(
            text,
            "\n  {:<width$}{:>14}{:>14}",
            "state", "entries", "capacity"
        )?;
    }
    for (object, entries) in tables {
        let (entries, capacity) = (grouped(entries), grouped(object.capacity));
        writeln!(text, "  {:<width$}{entries:>14}{capacity:>14}", object.name)?;
    }
    Ok(())
}

fn outputs(text: &mut String, a: &Account) -> std::fmt::Result {
    if !(a.outputs.is_empty() && a.records.is_empty()) {
        writeln!(text)?;
    }
    for output in &a.outputs {
        let state = if output.error.is_some() {
            "intact"
        } else {
            "written"
        };
        let (packets, size) = (grouped(output.packets), bytes(output.bytes));
        writeln!(text, "  {state} {}: {packets} packets, {size}", output.name)?;
    }
    for (object, records) in &a.records {
        writeln!(text, "  records from {object}: {}", grouped(*records))?;
    }
    Ok(())
}

fn costs(text: &mut String, a: &Account, prepared: Duration, how: &str) -> std::fmt::Result {
    let m = &a.memory;
    // In the kernel nobody has a clock around the function.
    let timed = a.function.ns_per_packet > 0.0 || a.read == 0;
    if !timed {
        writeln!(text)?;
    } else {
        writeln!(
            text,
            "\n  function  {:.1} ns a packet (median {:.1}), {:.2} Mpps on one core, without input and output",
            a.function.ns_per_packet, a.function.p50_ns, a.function.mpps
        )?;
    }
    writeln!(
        text,
        "  time      {} to prepare ({how}), {} to run ({:.2} Mpps with input and output)",
        duration(prepared),
        duration(Duration::try_from_secs_f64(a.seconds).unwrap_or_default()),
        a.mpps
    )?;
    write!(
        text,
        "  memory    {} predicted ({} state, {} buffers, {} process), {} resident",
        bytes(m.predicted),
        bytes(m.objects),
        bytes(m.runtime),
        bytes(m.base),
        bytes(m.resident)
    )?;
    for (name, times) in &a.relaxations {
        let what = match name.as_str() {
            "capacity" => "insertions or records found a worker's part full while others had room",
            "order" => {
                "packets of flows that leave by the queues of several workers, in no order between these"
            }
            "eviction" => "entries had to go from a worker's part while others had room",
            "latest" => {
                "entries show what the first worker stored last, and others stored otherwise"
            }
            _ => "times",
        };
        write!(text, "\n  {name:<9} {} {what}", grouped(*times))?;
    }
    for object in a.objects.iter().filter(|o| !o.full_by_worker.is_empty()) {
        let workers = object.full_by_worker.iter().enumerate();
        let full = workers
            .filter(|(_, times)| **times > 0)
            .map(|(worker, times)| format!("worker {worker} {} times", grouped(*times)));
        let full: Vec<_> = full.collect();
        write!(text, "\n  full      {}: {}", object.name, full.join(", "))?;
    }
    if let Some(replayed) = a.replayed {
        write!(
            text,
            "\n  replayed  {} times a row of another worker's packet, of {} rows; each of {} workers has all state, which is counted once",
            grouped(replayed),
            grouped(a.rows.unwrap_or_default()),
            a.workers.len()
        )?;
    }
    if let Some(of) = &a.transactions {
        write!(
            text,
            "\n  transact  {} packets committed, {} attempts did not, {} packets ran alone",
            grouped(of.commits),
            grouped(of.aborts),
            grouped(of.alone)
        )?;
        for (why, packets) in &of.reasons {
            write!(text, "\n            {} alone: {why}", grouped(*packets))?;
        }
    }
    if let Some(elephants) = &a.elephants {
        let kept = elephants.iter().filter(|e| e.demoted.is_none()).count();
        write!(
            text,
            "\n  elephants {} times a key was replicated, {kept} of them to the end",
            elephants.len()
        )?;
        for e in elephants.iter().take(ELEPHANTS) {
            write!(
                text,
                "\n            {}: {} packets",
                e.flow,
                grouped(e.packets)
            )?;
        }
    }
    if a.out_of_order > 0 {
        write!(
            text,
            "\n  order     {} stamped earlier than a packet before; the function saw the later time",
            grouped(a.out_of_order)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_names_what_happened() {
        let mut account = Account {
            read: 1500,
            forwarded: 1000,
            dropped: 500,
            lost: Some(LostAccount {
                missed: 500,
                failed: 750,
                ..LostAccount::default()
            }),
            ..Account::default()
        };
        account.reasons.insert("no_flow".into(), 500);
        let text = written(
            "firewall",
            &account,
            Duration::from_millis(12),
            "from the cache",
        );
        assert!(text.starts_with("firewall: 1 500 packets"), "{text}");
        assert!(text.contains("because no_flow"), "{text}");
        assert!(text.contains("33.3 %"), "{text}");
        assert!(!text.contains("consumed"), "{text}");
        // Beside what was forwarded: of those that were, and of all that came.
        let lines: Vec<Vec<_>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        let after = |word: &str| {
            let at = lines.iter().position(|l| l.first() == Some(&word));
            at.and_then(|at| lines.get(at + 1))
                .cloned()
                .unwrap_or_default()
        };
        assert_eq!(
            after("forwarded"),
            ["of", "these", "not", "sent", "750", "50.0", "%"]
        );
        assert!(text.contains("lost: came too fast"), "{text}");
        assert!(
            text.contains("25.0 %") && !text.contains("did not fit"),
            "{text}"
        );
    }
}
