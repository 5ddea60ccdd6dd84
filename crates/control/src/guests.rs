//! Guests of a run: which there are, moving one to another process, and snapshots.

use std::os::unix::net::UnixStream;
use std::path::Path;

use millrace_guest::migrate::{self, Report, desk};
use millrace_guest::snapshot::SnapshotError;
use serde_json::{Value, json};

use crate::elements::Element;
use crate::protocol::Request;
use crate::socket;
use crate::trouble::Trouble;

/// Does what a request about guests asks for.
///
/// # Errors
/// There is no such guest, or it cannot be done; then the guest goes on as it was.
pub fn answer(request: &Request, elements: &[Element]) -> Result<Value, Trouble> {
    let missing = |what: &str| {
        let verb = &request.verb;
        Trouble::new("malformed", format!("{verb} needs {what}"))
            .help("see docs/guests.md, \"Moving\"")
    };
    if request.verb == "guests" {
        return Ok(json!({ "guests": elements.iter().flat_map(shown).collect::<Vec<_>>() }));
    }
    let name = request.object.as_deref();
    let desk = desk::find(name.ok_or_else(|| missing("an `object`, the guest's name"))?)
        .map_err(|e| refused(&e))?;
    let to = request.to.as_deref().ok_or_else(|| missing("a `to`"))?;
    if !to.starts_with('/') {
        return Err(missing("an absolute path as `to`"));
    }
    let report = if request.verb == "migrate" {
        let stream = UnixStream::connect(to).map_err(|e| {
            Trouble::new("unreachable", format!("{to}: {e}"))
                .help("start `millrace receive` there first")
        })?;
        if !socket::trusted(&stream) {
            return Err(Trouble::new(
                "permission",
                format!("{to}: belongs to another user's process"),
            ));
        }
        migrate::migrate(&desk, stream, to)
    } else {
        migrate::save(&desk, Path::new(to))
    };
    Ok(told(&report.map_err(|e| refused(&e))?, to))
}

/// The programs that an element hosts: state, restarts and last failure of each.
pub(crate) fn shown(element: &Element) -> Vec<Value> {
    let movable = desk::all();
    let guests = element.guests.iter().map(|(class, condition)| {
        let account = condition.account(*class);
        let open = movable
            .iter()
            .any(|(name, slot)| (name, slot) == (&account.program, &account.slot));
        let mut shown = serde_json::to_value(&account).unwrap_or_default();
        if let Some(members) = shown.as_object_mut() {
            members.insert("name".into(), json!(account.program));
            members.insert("element".into(), json!(element.name));
            members.insert("movable".into(), json!(open));
            members.remove("program");
        }
        shown
    });
    guests.collect()
}

fn refused(error: &SnapshotError) -> Trouble {
    Trouble::new("refused", error).help(error.help())
}

fn told(report: &Report, to: &str) -> Value {
    let rounds = report
        .rounds
        .iter()
        .map(|r| json!({ "pages": r.pages, "ms": r.took.as_secs_f64() * 1e3 }));
    json!({
        "guest": report.name,
        "to": to,
        "tracked_by": report.by,
        "rounds": rounds.collect::<Vec<_>>(),
        "bytes": report.bytes,
        "stopped_ms": report.stopped.as_secs_f64() * 1e3,
    })
}
