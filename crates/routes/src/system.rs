//! The routing table of the system: what iproute2's `ip` prints, and the interfaces' settings.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::{Error, MOST_PORTS, Table};

/// Reads the table of the network namespace that this process is in. `interfaces` are those of the ports,
/// in order; all others follow them, as interfaces that are no port of the run.
///
/// # Errors
/// An interface that does not exist; `ip` that is not there or fails.
pub fn read(interfaces: &[String]) -> Result<Table, Error> {
    let text = document(interfaces)?;
    let mut table =
        Table::parse(&text).map_err(|e| Error::Whole(format!("what `ip` prints: {e}")))?;
    let rules = ip(&["-j", "rule", "show"])?;
    let rules: Vec<Value> = serde_json::from_str(&rules).unwrap_or_default();
    if rules.len() > 3 {
        let note =
            "routing rules (`ip rule`) are not followed; lookups ask the tables local and main";
        table.notes.push(note.to_owned());
    }
    Ok(table)
}

/// The same as a document (docs/routes.md).
///
/// # Errors
/// As [`read`].
pub fn document(interfaces: &[String]) -> Result<String, Error> {
    let mut ports = list(&["-j", "address", "show"])?;
    number(&mut ports, interfaces)?;
    let known: Vec<String> = ports
        .iter()
        .filter_map(|p| Some(p.get("ifname")?.as_str()?.to_owned()))
        .collect();
    let mut neighbours = list(&["-j", "neighbour", "show", "nud", "all"])?;
    neighbours.retain(|n| is_known(n, &known));
    let document = json!({
        "ports": ports,
        "routes": routes("-4", &known)?,
        "routes6": routes("-6", &known)?,
        "neighbours": neighbours,
    });
    Ok(document.to_string())
}

/// Interfaces in the order of their port numbers, with their settings.
fn number(ports: &mut Vec<Value>, interfaces: &[String]) -> Result<(), Error> {
    let name = |port: &Value| {
        port.get("ifname")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    for wanted in interfaces {
        if !ports.iter().any(|p| name(p).as_ref() == Some(wanted)) {
            return Err(Error::Whole(format!(
                "there is no interface {wanted}; `ip link` lists them"
            )));
        }
    }
    let place = |port: &Value| {
        let name = name(port);
        let at = interfaces.iter().position(|i| Some(i) == name.as_ref());
        at.unwrap_or(usize::MAX)
    };
    ports.sort_by_key(place);
    ports.truncate(MOST_PORTS);
    for (at, port) in ports.iter_mut().enumerate() {
        let Some(name) = name(port) else { continue };
        let Some(members) = port.as_object_mut() else {
            continue;
        };
        members.insert("port".into(), at.into());
        // Tunnels have addresses that are no MAC addresses.
        let mac = members.get("address").and_then(Value::as_str);
        if mac.is_some_and(|m| m.parse::<crate::Mac>().is_err()) {
            members.remove("address");
        }
        let setting = |family: &str, what: &str| {
            let path = Path::new("/proc/sys/net")
                .join(family)
                .join("conf")
                .join(&name)
                .join(what);
            let text = fs::read_to_string(path).ok()?;
            text.trim().parse::<u32>().ok()
        };
        members.insert(
            "forwarding".into(),
            (setting("ipv4", "forwarding") == Some(1)).into(),
        );
        let six = setting("ipv6", "forwarding").is_some_and(|n| n > 0);
        members.insert("forwarding6".into(), six.into());
        if let Some(mtu) = setting("ipv6", "mtu") {
            members.insert("mtu6".into(), mtu.into());
        }
    }
    Ok(())
}

/// The routes of a family. `ip -j` does not say whether an MTU is locked, its text does.
fn routes(family: &str, known: &[String]) -> Result<Vec<Value>, Error> {
    let mut routes = list(&["-j", family, "route", "show", "table", "all"])?;
    let text = ip(&["-o", family, "route", "show", "table", "all"])?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() == routes.len() {
        for (route, line) in routes.iter_mut().zip(lines) {
            if line.contains(" mtu lock ") {
                lock(route);
            }
        }
    }
    routes.retain(|r| is_known(r, known));
    Ok(routes)
}

fn lock(route: &mut Value) {
    let metrics = route.get_mut("metrics").and_then(Value::as_array_mut);
    for metric in metrics.into_iter().flatten() {
        if let Some(members) = metric.as_object_mut().filter(|m| m.contains_key("mtu")) {
            members.insert("lock".into(), true.into());
        }
    }
}

/// Whether the interface that an element names is among those read: more may have come since.
fn is_known(element: &Value, known: &[String]) -> bool {
    let dev = element.get("dev").and_then(Value::as_str);
    dev.is_none_or(|dev| known.iter().any(|name| name == dev))
}

fn list(arguments: &[&str]) -> Result<Vec<Value>, Error> {
    let text = ip(arguments)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).map_err(|e| {
        Error::Whole(format!(
            "`ip {}` prints no JSON list: {e}",
            arguments.join(" ")
        ))
    })
}

fn ip(arguments: &[&str]) -> Result<String, Error> {
    let what = || format!("`ip {}`", arguments.join(" "));
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|e| Error::Whole(format!("{} cannot be run: {e}; install iproute2", what())))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Whole(format!("{} failed: {}", what(), told.trim())));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Error::Whole(format!("{} prints no UTF-8", what())))
}
