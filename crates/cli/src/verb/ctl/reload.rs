//! `millrace ctl reload`: the run becomes what its chain file says now.

use millrace_control::client::request;
use millrace_control::protocol::Request;
use serde_json::Value;

use super::chain::PATIENCE;
use crate::failure::Failure;
use crate::quantity::grouped;
use crate::target::Target;

/// The answer of the run.
pub fn ask(target: &Target, check: bool) -> Result<Value, Failure> {
    let mut client = target.connect()?;
    client.patience(PATIENCE)?;
    let request = Request {
        check,
        ..request("reload")
    };
    client.ask(request).map_err(Failure::from)
}

/// An answer as people read it.
pub fn text(answer: &Value) -> String {
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| grouped(value.as_u64().unwrap_or(0));
    let mut lines = Vec::new();
    for (name, what) in [("added", "new"), ("replaced", "replaced")] {
        for member in list(name) {
            let (element, why) = (word(&member["element"]), word(&member["why"]));
            lines.push(format!("  {what:<9}{element}: {why}"));
        }
    }
    for element in list("removed") {
        lines.push(format!("  {:<9}{}", "removed", word(&element)));
    }
    if answer["connected"] == true {
        lines.push(format!("  {:<9}otherwise", "connected"));
    }
    for member in list("params") {
        let name = format!("{}:{}", word(&member["element"]), word(&member["name"]));
        let (before, now) = (word(&member["before"]), word(&member["now"]));
        lines.push(format!("  {:<9}{name} = {now}, was {before}", "set"));
    }
    for member in list("entries") {
        let (set, deleted) = (number(&member["set"]), number(&member["deleted"]));
        let element = word(&member["element"]);
        let what = format!("{element}: {set} set, {deleted} deleted");
        lines.push(format!("  {:<9}{what}", "entries"));
    }
    for member in list("kept") {
        let name = format!("{}:{}", word(&member["element"]), word(&member["object"]));
        let entries = number(&member["entries"]);
        lines.push(format!("  {:<9}{name}: {entries} entries", "kept"));
    }
    for member in list("lost") {
        let name = format!("{}:{}", word(&member["element"]), word(&member["object"]));
        lines.push(format!("  {:<9}{name}: {}", "lost", word(&member["why"])));
    }
    lines.extend(list("facts").iter().map(|fact| format!("  {}", word(fact))));
    let changed = answer["changed"] == true;
    let first = match (answer["applied"] == true, changed) {
        (true, true) => "reloaded",
        (true, false) => "nothing has changed",
        (false, true) => "would change:",
        (false, false) => "nothing would change",
    };
    lines.insert(0, first.to_owned());
    if answer["applied"] == true && changed {
        let (made, paused) = (&answer["made_ms"], &answer["paused_us"]);
        lines.push(format!(
            "  made beside the chain in {:.0} ms; packets waited {:.0} µs",
            made.as_f64().unwrap_or(0.0),
            paused.as_f64().unwrap_or(0.0)
        ));
    }
    lines.join("\n")
}
