//! From the words of `--in`, `--out` and `--split` to the inputs and outputs of a run.

use std::collections::HashSet;
use std::path::PathBuf;

use millrace_dataplane::port::{self, InputOptions, PortError};
use millrace_dataplane::runner::{Entry, Sink, Sinks, Sources};
use millrace_traffic::split::Split;

use crate::failure::Failure;

/// The most ports that a function may have: far above any function, far below what would hurt.
const MAX_PORTS: usize = 256;

/// Words as the user gave them.
pub struct Words<'a> {
    /// `--in`
    pub inputs: &'a [String],
    /// `--out`
    pub outputs: &'a [String],
    /// `--split`
    pub split: Option<&'a Split>,
    /// `--pass`
    pub pass: Option<&'a str>,
}

/// The names of the function's ports. A program that names none (XDP) has as many as the words
/// connect, at least two: LAN and WAN by position, known by their numbers.
pub fn port_names(declared: &[String], words: &Words<'_>) -> Result<Vec<String>, Failure> {
    if words.split.is_some() && words.inputs.len() != 1 {
        let count = words.inputs.len();
        return Err(Failure::wrong(format!(
            "--split divides one capture, and there are {count} inputs"
        ))
        .help("give one --in, or one input a port and no --split"));
    }
    let connected = words.inputs.len().max(words.outputs.len());
    if connected > MAX_PORTS {
        return Err(Failure::wrong(format!(
            "{connected} ports; a function has at most {MAX_PORTS}"
        )));
    }
    if declared.is_empty() {
        return Ok((0..connected.max(2)).map(|i| i.to_string()).collect());
    }
    for (what, count) in [
        ("inputs", words.inputs.len()),
        ("outputs", words.outputs.len()),
    ] {
        if count > declared.len() {
            let names = declared.join(", ");
            return Err(
                Failure::wrong(format!("{count} {what} for {} ports", declared.len())).help(
                    format!("the function's ports are {names}; give at most one word each"),
                ),
            );
        }
    }
    Ok(declared.to_vec())
}

/// Opens the inputs: one capture divided over two ports, or the i-th input at port i.
pub fn sources(
    words: &Words<'_>,
    ports: &[String],
    options: &InputOptions,
) -> Result<Sources, Failure> {
    if words.inputs.iter().filter(|w| *w == "-").count() > 1 {
        return Err(Failure::wrong("standard input can be read once only"));
    }
    let mut inputs = Vec::new();
    for (index, word) in words.inputs.iter().enumerate() {
        let entry = match words.split {
            Some(split) => divide(split, ports)?,
            None => Entry::Port(index as u32),
        };
        inputs.push((port::input(word, options).map_err(port_failure)?, entry));
    }
    Ok(Sources::new(inputs))
}

/// Opens the outputs: one for all ports, or one a port. Nothing that is read is written.
pub fn sinks(words: &Words<'_>, ports: &[String]) -> Result<(Sinks, Option<Sink>), Failure> {
    let (outputs, count) = (words.outputs, words.outputs.len());
    if count > 1 && count != ports.len() {
        let names = ports.join(", ");
        return Err(
            Failure::wrong(format!("{count} outputs for {} ports", ports.len())).help(format!(
                "give one --out for all ports, or one each, in this order: {names}"
            )),
        );
    }
    let mut taken: HashSet<PathBuf> = words.inputs.iter().filter_map(|w| file(w)).collect();
    for word in outputs.iter().map(String::as_str).chain(words.pass) {
        if file(word).is_some_and(|path| !taken.insert(path)) {
            return Err(Failure::wrong(format!("{word} is named twice"))
                .help("an output must not be an input or another output"));
        }
    }
    let names: Vec<&str> = ports.iter().map(String::as_str).collect();
    let open = |word: &str| {
        port::output(word, &names)
            .map(|output| Sink::new(word, output))
            .map_err(port_failure)
    };
    let opened = outputs
        .iter()
        .map(|w| open(w))
        .collect::<Result<Vec<_>, _>>()?;
    let of_port = (0..ports.len()).map(|port| match count {
        0 => None,
        1 => Some(0),
        _ => Some(port),
    });
    let pass = words.pass.map(open).transpose()?;
    Ok((
        Sinks {
            sinks: opened,
            of_port: of_port.collect(),
        },
        pass,
    ))
}

/// Something wrong with a port, and what to do.
pub fn port_failure(error: PortError) -> Failure {
    let help = match &error {
        // The sentence about what was processed is for errors in the middle of a run.
        PortError::Read(_) => "give a capture (pcap or pcapng) that can be read".to_owned(),
        PortError::Write(_) => "choose an --out that can be written".to_owned(),
        other => other.help(),
    };
    Failure::wrong(error).help(help)
}

fn divide(split: &Split, ports: &[String]) -> Result<Entry, Failure> {
    let name = split.port();
    // The conventional names of two-port functions serve where the program names none.
    let conventional = ["lan", "wan"]
        .iter()
        .position(|c| name.eq_ignore_ascii_case(c));
    let named = ports
        .iter()
        .position(|p| p.eq_ignore_ascii_case(name))
        .or_else(|| conventional.filter(|_| ports.iter().all(|p| p.parse::<u32>().is_ok())));
    match named {
        Some(named @ (0 | 1)) if ports.len() >= 2 => Ok(Entry::Split {
            split: split.clone(),
            named: named as u32,
            other: 1 - named as u32,
        }),
        Some(_) => Err(
            Failure::wrong(format!("--split: port `{name}` is not one of two"))
                .help("a split divides a capture over the first two ports of a function"),
        ),
        None => Err(
            Failure::wrong(format!("--split: the function has no port `{name}`"))
                .help(format!("its ports are {}", ports.join(", "))),
        ),
    }
}

/// The file that a word reads or writes, so that the same one is recognised by any name.
fn file(word: &str) -> Option<PathBuf> {
    let path = word.strip_prefix("mem:").unwrap_or(word);
    // Devices (/dev/null) and what does not exist yet under this name cannot be overwritten.
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => std::fs::canonicalize(path).ok(),
        Ok(_) => None,
        Err(_) if path == "-" || path.ends_with(':') => None,
        Err(_) => std::path::absolute(path).ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    fn names(declared: &[&str], inputs: &[&str], outputs: &[&str]) -> Result<Vec<String>, Failure> {
        let (inputs, outputs) = (strings(inputs), strings(outputs));
        let words = Words {
            inputs: &inputs,
            outputs: &outputs,
            split: None,
            pass: None,
        };
        port_names(&strings(declared), &words)
    }

    #[test]
    fn ports_are_those_declared_or_those_connected() {
        assert_eq!(
            names(&["LAN", "WAN"], &["a"], &["b"]).unwrap(),
            ["LAN", "WAN"]
        );
        assert_eq!(names(&[], &["a"], &["b"]).unwrap(), ["0", "1"]);
        assert_eq!(names(&[], &["a", "b", "c"], &[]).unwrap(), ["0", "1", "2"]);
        let error = names(&["LAN"], &["a", "b"], &[]).unwrap_err();
        assert_eq!(error.what, "2 inputs for 1 ports");
    }

    #[test]
    fn a_split_names_a_port_of_the_first_two() {
        let split = |text: &str, ports: &[&str]| divide(&text.parse().unwrap(), &strings(ports));
        let ends = |entry: Result<Entry, Failure>| match entry.unwrap() {
            Entry::Split { named, other, .. } => (named, other),
            Entry::Port(_) => panic!("not split"),
        };
        assert_eq!(ends(split("lan=10.0.0.0/8", &["LAN", "WAN"])), (0, 1));
        assert_eq!(ends(split("wan=10.0.0.0/8", &["0", "1"])), (1, 0));
        assert_eq!(ends(split("1=10.0.0.0/8", &["0", "1"])), (1, 0));
        assert!(split("lan=10.0.0.0/8", &["a", "b"]).is_err());
        assert!(split("c=10.0.0.0/8", &["a", "b", "c"]).is_err());
    }

    #[test]
    fn what_is_read_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcap");
        std::fs::write(&path, "x").unwrap();
        let word = path.to_str().unwrap().to_owned();
        let other = format!("{}/./a.pcap", dir.path().display());
        for (input, output) in [(&word, &other), (&format!("mem:{word}"), &word)] {
            let (inputs, outputs) = (vec![input.clone()], vec![output.clone()]);
            let words = Words {
                inputs: &inputs,
                outputs: &outputs,
                split: None,
                pass: None,
            };
            let Err(error) = sinks(&words, &strings(&["0", "1"])) else {
                panic!("opened")
            };
            assert!(error.what.ends_with("is named twice"), "{}", error.what);
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }
}
