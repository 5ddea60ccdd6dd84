//! A strict reader of OpenMetrics 1.0 text, and what a Prometheus server asks of one scrape after the other.
//!
//! <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>: metadata once and before its
//! samples, a family in one piece, no series twice, suffixes by type, names that end with their unit, `# EOF` at the end.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// A scrape: values by name and labels, as they are written.
#[derive(Clone, Debug, Default)]
pub struct Scrape {
    pub text: String,
    pub values: BTreeMap<String, f64>,
    counters: BTreeSet<String>,
}

#[derive(Default)]
struct Family {
    name: String,
    kind: Option<String>,
    help: bool,
    unit: Option<String>,
    samples: bool,
}

/// What a server answers to `GET /metrics` with this `Accept`: its head and its body.
pub fn get(address: &str, accept: &str) -> (String, String) {
    let mut client = TcpStream::connect(address).unwrap();
    let head = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    (head.to_owned(), body.to_owned())
}

fn name_is_valid(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Suffixes that samples of a type may have.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total", "_created"],
        "gauge" | "unknown" => &[""],
        "info" => &["_info"],
        other => panic!("no family of ours has the type {other}"),
    }
}

/// Reads labels after the brace: their names and values, and what follows the closing brace.
fn labels(text: &str) -> (Vec<(String, String)>, &str) {
    let (mut all, mut rest) = (Vec::new(), text);
    while !rest.starts_with('}') {
        let (name, after) = rest.split_once("=\"").expect("a label and its value");
        assert!(name_is_valid(name) && !name.contains(':'), "{name}");
        let (mut value, mut chars, mut end) = (String::new(), after.char_indices(), None);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    end = Some(at);
                    break;
                }
                '\\' => value.push(match chars.next().map(|c| c.1) {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => panic!("an escape that there is not: {other:?} in {text}"),
                }),
                c => value.push(c),
            }
        }
        rest = &after[end.expect("a value ends") + 1..];
        all.push((name.to_owned(), value));
        rest = match rest.strip_prefix(',') {
            Some(more) => {
                assert!(!more.starts_with('}'), "{text}");
                more
            }
            None => rest,
        };
    }
    (all, &rest[1..])
}

/// Reads a document; panics at what the format does not allow.
pub fn parse(text: &str) -> Scrape {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let mut scrape = Scrape {
        text: text.to_owned(),
        ..Scrape::default()
    };
    let (mut current, mut seen) = (Family::default(), BTreeSet::new());
    for line in body.split_terminator('\n') {
        assert!(!line.is_empty() && line.trim() == line, "`{line}`");
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next().unwrap());
            let rest = words.next().unwrap_or_default();
            if name != current.name {
                assert!(name_is_valid(name), "{name}");
                assert!(seen.insert(name.to_owned()), "{name} is in two pieces");
                current = Family {
                    name: name.to_owned(),
                    ..Family::default()
                };
            }
            assert!(!current.samples, "{line}: after its samples");
            match what {
                "HELP" => assert!(!std::mem::replace(&mut current.help, true), "{line}: twice"),
                "TYPE" => {
                    assert!(current.kind.is_none(), "{line}: twice");
                    suffixes(rest);
                    current.kind = Some(rest.to_owned());
                }
                "UNIT" => {
                    assert!(current.unit.is_none(), "{line}: twice");
                    assert!(name.ends_with(&format!("_{rest}")), "{line}");
                    current.unit = Some(rest.to_owned());
                }
                _ => panic!("{line}: no such metadata"),
            }
            continue;
        }
        current.samples = true;
        let brace = line.find('{').unwrap_or(usize::MAX);
        let end = line.find(' ').expect("a value").min(brace);
        let (name, rest) = line.split_at(end);
        let kind = current.kind.as_deref().expect("a type");
        assert!(current.help, "{name}: no help");
        let suffix = name.strip_prefix(current.name.as_str());
        assert!(
            suffix.is_some_and(|s| suffixes(kind).contains(&s)),
            "{line}: in {} of type {kind}",
            current.name
        );
        let (mut labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (Vec::new(), rest),
        };
        labels.sort();
        let names: BTreeSet<_> = labels.iter().map(|l| &l.0).collect();
        assert_eq!(names.len(), labels.len(), "{line}: a label twice");
        let value = rest.strip_prefix(' ').expect("a space");
        let value: f64 = value.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(value.is_finite(), "{line}");
        let shown: Vec<_> = labels.iter().map(|(n, v)| format!("{n}={v:?}")).collect();
        let series = format!("{name}{{{}}}", shown.join(","));
        if kind == "counter" {
            assert!(value >= 0.0, "{line}");
            scrape.counters.insert(series.clone());
        }
        let twice = scrape.values.insert(series, value);
        assert!(twice.is_none(), "{line}: a series that was there already");
    }
    assert!(!scrape.values.is_empty());
    scrape
}

impl Scrape {
    /// One of a running server, in both formats. `before`: no counter of it has gone back.
    pub fn of(address: &str, before: Option<&Self>) -> Self {
        let (head, body) = get(address, "application/openmetrics-text; version=1.0.0");
        assert!(
            head.contains("application/openmetrics-text; version=1.0.0"),
            "{head}"
        );
        let scrape = parse(&body);
        for series in before.iter().flat_map(|b| &b.counters) {
            if let (Some(now), Some(then)) = (
                scrape.values.get(series),
                before.and_then(|b| b.values.get(series)),
            ) {
                assert!(now >= then, "{series} was {then} and is {now}");
            }
        }
        let (head, classic) = get(address, "text/plain");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        promtool(&["check", "metrics"], &classic);
        scrape
    }

    /// The value of the only series with this name and these labels among others.
    pub fn value(&self, name: &str, labels: &[&str]) -> f64 {
        let fits = |series: &String| {
            series.starts_with(&format!("millrace_{name}{{"))
                && labels.iter().all(|label| series.contains(label))
        };
        let found: Vec<_> = self.values.iter().filter(|(s, _)| fits(s)).collect();
        match found.as_slice() {
            [(_, value)] => **value,
            other => panic!("{name} {labels:?}: {other:?} in\n{}", self.text),
        }
    }

    /// Whether there is such a series.
    pub fn has(&self, name: &str, label: &str) -> bool {
        let start = format!("millrace_{name}{{");
        let mut all = self.values.keys();
        all.any(|s| s.starts_with(&start) && s.contains(label))
    }
}

/// Prometheus's own check over this input; where it is not installed that is said.
pub fn promtool(words: &[&str], input: &str) {
    let child = Command::new("promtool")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: promtool is not installed (Debian: prometheus)");
        return;
    };
    // One that does not read its input is judged by its status.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said + &String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "promtool {words:?}: {said}\n{input}"
    );
}
