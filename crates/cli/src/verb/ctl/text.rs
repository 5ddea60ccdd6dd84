//! Answers as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::quantity::{grouped, percent};

/// The runs that can be asked.
pub fn names(answer: &Value) -> String {
    let runs = answer["runs"].as_array().into_iter().flatten();
    let lines: Vec<_> = runs
        .map(|r| {
            let text = |name: &str| r[name].as_str().unwrap_or_default().to_owned();
            format!("{:<30} {}", text("name"), text("socket"))
        })
        .collect();
    match lines.is_empty() {
        true => "nothing runs".to_owned(),
        false => lines.join("\n"),
    }
}

/// Parameters.
pub fn params(answer: &Value) -> String {
    let params = answer["params"].as_array().into_iter().flatten();
    let lines: Vec<_> = params
        .map(|p| {
            let text = |name: &str| p[name].as_str().unwrap_or("-").to_owned();
            format!("{:<24}{:<16}{}", text("name"), text("type"), text("value"))
        })
        .collect();
    match lines.is_empty() {
        true => "there are no parameters".to_owned(),
        false => lines.join("\n"),
    }
}

/// A parameter that was set.
pub fn changed(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or("-");
    format!(
        "{} was {}, is {}",
        text("name"),
        text("before"),
        text("now")
    )
}

/// Counts, by worker and element.
pub fn stats(answer: &Value) -> String {
    let mut lines = Vec::new();
    let name = answer["name"].as_str().unwrap_or_default();
    for account in answer["accounts"].as_array().into_iter().flatten() {
        let number = |name: &str| account[name].as_u64().unwrap_or(0);
        let read = number("read");
        let seconds = account["seconds"].as_f64().unwrap_or(0.0);
        lines.push(format!(
            "{name}: {} packets in {seconds:.1} s",
            grouped(read)
        ));
        for fate in ["forwarded", "dropped", "passed", "consumed", "aborted"] {
            let packets = number(fate);
            if packets > 0 {
                let share = percent(packets, read);
                lines.push(format!(
                    "  {fate:<22}{:>14}  {share:5.1} %",
                    grouped(packets)
                ));
            }
            if fate == "forwarded" {
                let lost = serde_json::from_value(account["lost"].clone());
                lines.extend(crate::account::lost(lost.unwrap_or_default(), read));
            }
        }
        for (reason, packets) in account["reasons"].as_object().into_iter().flatten() {
            let packets = packets.as_u64().unwrap_or(0);
            lines.push(format!("  because {reason:<14}{:>14}", grouped(packets)));
        }
        for queue in account["queues"].as_array().into_iter().flatten() {
            let name = queue["name"].as_str().unwrap_or_default();
            let kinds = ["missed", "unfit", "failed", "discarded"].map(|kind| {
                let packets = queue[kind].as_u64().unwrap_or(0);
                (packets > 0).then(|| format!("{} {kind}", grouped(packets)))
            });
            let seen: Vec<_> = kinds.into_iter().flatten().collect();
            if !seen.is_empty() {
                lines.push(format!("  port {name}: {}", seen.join(", ")));
            }
        }
        let ns = account["function"]["ns_per_packet"].as_f64().unwrap_or(0.0);
        lines.push(format!("  function  {ns:.1} ns a packet"));
        let stages: Vec<_> = account["stages"].as_array().into_iter().flatten().collect();
        for stage in stages.iter().filter(|_| stages.len() > 1) {
            let name = stage["name"].as_str().unwrap_or_default();
            let packets = grouped(stage["packets"].as_u64().unwrap_or(0));
            let figure = |name: &str| stage[name].as_f64().unwrap_or(0.0);
            let left = if stage["left"] == true {
                "  (left)"
            } else {
                ""
            };
            lines.push(format!(
                "  element {name:<15}{packets:>14}  {:8.1} cycles a packet  {:5.1} %{left}",
                figure("cycles_per_packet"),
                figure("share") * 100.0
            ));
        }
        for stage in &stages {
            let name = stage["name"].as_str().unwrap_or_default();
            for guest in stage["guests"].as_array().into_iter().flatten() {
                lines.push(format!("  guest   {name:<15}{}", condition(guest)));
            }
        }
    }
    lines.join("\n")
}

/// State, restarts and last failure of a guest.
pub fn condition(guest: &Value) -> String {
    let number = |name: &str| guest[name].as_u64().unwrap_or(0);
    let class = guest["class"].as_u64();
    let mut text = class.map_or_else(String::new, |class| format!("class {class}: "));
    text.push_str(guest["state"].as_str().unwrap_or("?"));
    for (count, what) in [
        (number("failures"), "failures"),
        (number("restarts"), "restarts"),
        (number("passed_by"), "packets passed it by"),
        (number("dropped"), "packets dropped without it"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", grouped(count)));
        }
    }
    let last = &guest["last_failure"];
    if let (Some(error), Some(time)) = (last["error"].as_str(), last["time"].as_f64()) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ago = now.map_or(0.0, |now| (now.as_secs_f64() - time).max(0.0));
        text.push_str(&format!("; {ago:.0} s ago: {error}"));
    }
    text
}

/// Guests.
pub fn guests(answer: &Value) -> String {
    let guests = answer["guests"].as_array().into_iter().flatten();
    let lines: Vec<_> = guests
        .map(|g| {
            let text = |member: &str| g[member].as_str().unwrap_or_default();
            let program = match text("name") == text("element") {
                true => String::new(),
                false => format!("{}, ", text("name")),
            };
            let element = text("element");
            format!("{element:<24}{program}slot {}, {}", g["slot"], condition(g))
        })
        .collect();
    match lines.is_empty() {
        true => "there are no guests".to_owned(),
        false => lines.join("\n"),
    }
}

/// Cost of moving a guest, or of writing a snapshot of it.
pub fn moved(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let rounds = answer["rounds"].as_array().into_iter().flatten();
    let mut lines = vec![format!(
        "{} to {}, pages tracked by {}",
        text("guest"),
        text("to"),
        text("tracked_by")
    )];
    lines.extend(rounds.enumerate().map(|(number, round)| {
        let pages = round["pages"].as_u64().unwrap_or(0);
        let ms = round["ms"].as_f64().unwrap_or(0.0);
        format!(
            "  round {:<3}{:>10} pages {ms:>10.2} ms",
            number + 1,
            grouped(pages)
        )
    }));
    let bytes = answer["bytes"].as_u64().unwrap_or(0);
    let stopped = answer["stopped_ms"].as_f64().unwrap_or(0.0);
    lines.push(format!(
        "  {} bytes; it was stopped for {stopped:.2} ms",
        grouped(bytes)
    ));
    lines.join("\n")
}
