//! A benchmark as people read it in a terminal.

use std::fmt::Write;

use super::figures::{Conditions, Document, Run};

/// The table, what was left out, and the conditions.
pub fn text(document: &Document) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, document);
    text.trim_end().to_owned()
}

fn write(text: &mut String, document: &Document) -> std::fmt::Result {
    let width = document
        .all()
        .map(|run| run.nf.len())
        .max()
        .unwrap_or(0)
        .max(8);
    writeln!(
        text,
        "{:<width$}  cores  charged      Mpps  range              of limit  function     at  50 %      99 %      99.9 %",
        "function"
    )?;
    for run in document.all() {
        row(text, run, width)?;
    }
    for run in document.all() {
        let [all, inside] = run.of_first.as_slice() else {
            continue;
        };
        let first = document.runs.first().map_or("", |r| r.nf.as_str());
        write!(
            text,
            "\n{} takes {:.2} of {first} ({:.2} to {:.2})",
            run.nf, all.median, all.spread.low, all.spread.high
        )?;
        if run.functions_ns < 0.95 * run.function_ns {
            write!(
                text,
                "; its functions alone {:.1} ns, {:.2} ({:.2} to {:.2})",
                run.functions_ns, inside.median, inside.spread.low, inside.spread.high
            )?;
        }
        writeln!(text)?;
    }
    if document.all().any(|run| run.limited_by_nic) {
        writeln!(
            text,
            "\n>  the software NIC could not offer more; the function's own rate may be higher"
        )?;
    }
    if document.all().any(|run| run.charged_ns > 0.0) {
        writeln!(
            text,
            "\nSIMULATION where nanoseconds are charged: the worker waits that long for every packet"
        )?;
    }
    for doubt in document.doubts() {
        writeln!(text, "\nwarning: {doubt}")?;
    }
    for skipped in &document.skipped {
        writeln!(
            text,
            "\nskipped: {} on {} cores: {}",
            skipped.nf, skipped.cores, skipped.why
        )?;
    }
    writeln!(text)?;
    for (name, value) in conditions(&document.conditions) {
        writeln!(text, "{name:<10} {value}")?;
    }
    Ok(())
}

fn row(text: &mut String, run: &Run, width: usize) -> std::fmt::Result {
    let more = if run.limited_by_nic { ">" } else { " " };
    let range = format!("{:.2} to {:.2}", run.spread.low, run.spread.high);
    let of_limit = run.of_limit.map_or(String::new(), |r| format!("{r:.2}"));
    write!(
        text,
        "{:<width$}  {:>5}  {:>4} ns  {more}{:>7.2}  {range:<18} {of_limit:>8}  {:>5.1} ns",
        run.nf, run.cores, run.charged_ns, run.mpps, run.function_ns
    )?;
    for (index, l) in run.latency.iter().enumerate() {
        if index > 0 {
            // As wide as what stands before the first.
            write!(text, "\n{:1$}", "", width + 63)?;
        }
        write!(text, "  {:>3.0} %", l.fraction * 100.0)?;
        for time in [l.p50_ns, l.p99_ns, l.p999_ns] {
            match time {
                Some(ns) => write!(text, "  {:>5.1} µs", ns / 1e3)?,
                None => write!(text, "  {:>8}", "-")?,
            }
        }
        if l.lost > 0.0 {
            write!(text, "  {:.3} % lost", l.lost * 100.0)?;
        }
    }
    writeln!(text)
}

/// Names and values of the conditions.
pub fn conditions(c: &Conditions) -> Vec<(&'static str, String)> {
    let machine = format!(
        "{}, processors {:?}, {}",
        c.processor, c.processors, c.system
    );
    let mut all = vec![
        ("machine", machine),
        ("trace", c.trace.clone()),
        ("port", c.nic.join("; ")),
    ];
    if c.memory {
        let method = format!(
            "the trace's second half over the time of the worker that is done last, on fresh state; medians of {} \
             repetitions in turns; on one core times are those of a whole burst",
            c.repetitions
        );
        all.push(("method", method));
    } else {
        all.push((
            "dispatch",
            format!(
                "{:.1} ns a packet, measured at start (receive, transmit, buffers; nothing done to the packet)",
                c.dispatch_ns
            ),
        ));
        all.push((
            "method",
            format!(
                "highest rate with at most {} % lost, by bisection to 1 %, trials of {} s, best of three where one loses; medians of {} repetitions in turns; bursts of {}",
                c.loss * 100.0,
                c.trial_seconds,
                c.repetitions,
                c.burst
            ),
        ));
    }
    all.push(("version", format!("millrace {}", c.version)));
    all
}
