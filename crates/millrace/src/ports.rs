//! The ports of a run, by their words: captures, memory, live ports (docs/ports.md).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use millrace_dataplane::port::{self, InputOptions};
use millrace_dataplane::runner::{Entry, Sink, Sinks, Sources};
use millrace_traffic::split::Split;

use crate::Error;

/// The most ports that a function may have: far above any function, far below what would hurt.
const MAX_PORTS: usize = 256;

/// For captures that are read to their end.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Where packets come from and go to. A word is a file (`x.pcap`, `x.pcapng`), `-`, `mem:FILE`, `null:`, or a live port
/// such as `afpacket:eth0`.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// where packets come in, one for each port of the function, in order; captures are merged by time stamp
    pub inputs: Vec<String>,
    /// where packets go: one for all ports, or one each, in order; none: they are only counted
    pub outputs: Vec<String>,
    /// live ports of both directions, one for each of the function's, in place of the former two
    pub both: Vec<String>,
    /// lets the only input enter at two ports
    pub split: Option<Split>,
    /// where packets go that the function passes to the host
    pub pass: Option<String>,
}

impl Ports {
    /// Captures that packets only come from.
    #[must_use]
    pub fn captures(inputs: &[String], split: Option<&Split>) -> Self {
        Self {
            inputs: inputs.to_vec(),
            split: split.cloned(),
            ..Self::default()
        }
    }

    /// Where packets come in.
    #[must_use]
    pub fn receiving(&self) -> &[String] {
        match self.both.is_empty() {
            true => &self.inputs,
            false => &self.both,
        }
    }

    /// Whether packets may come in at each of a function's `count` ports.
    pub(crate) fn entered(&self, count: usize) -> Vec<bool> {
        let words = self.receiving();
        // A word divides its packets over two ports, which its own options say.
        let divided = self.split.is_some() || words.iter().any(|w| w.contains("split="));
        (0..count).map(|at| divided || at < words.len()).collect()
    }

    /// Every word.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let all = [&self.both, &self.inputs, &self.outputs].into_iter();
        all.flatten().chain(&self.pass).map(String::as_str)
    }

    /// Whether packets come from or go to something that is live, so that workers serve it; else from captures to
    /// captures.
    #[must_use]
    pub fn live(&self) -> bool {
        !self.both.is_empty() || self.words().any(port::is_live)
    }

    /// Names of the ports of a function that declares these. One that declares none (XDP) has as many as are connected,
    /// at least two: LAN and WAN by position, known by their numbers.
    ///
    /// # Errors
    /// More words than ports, or a split of several inputs.
    pub fn names(&self, declared: &[String]) -> Result<Vec<String>, Error> {
        let (inputs, outputs) = match self.both.is_empty() {
            true => (self.inputs.len(), self.outputs.len()),
            false => (self.both.len(), self.both.len()),
        };
        if self.split.is_some() && inputs != 1 {
            return Err(Error::wrong(format!(
                "--split divides one capture, and there are {inputs} inputs"
            ))
            .help("give one --in, or one input a port and no --split"));
        }
        let connected = inputs.max(outputs);
        if connected > MAX_PORTS {
            return Err(Error::wrong(format!(
                "{connected} ports; a function has at most {MAX_PORTS}"
            )));
        }
        if declared.is_empty() {
            return Ok((0..connected.max(2)).map(|i| i.to_string()).collect());
        }
        for (what, count) in [("inputs", inputs), ("outputs", outputs)] {
            if count > declared.len() {
                let names = declared.join(", ");
                return Err(
                    Error::wrong(format!("{count} {what} for {} ports", declared.len())).help(
                        format!("the function's ports are {names}; give at most one word each"),
                    ),
                );
            }
        }
        Ok(declared.to_vec())
    }

    /// Opens the inputs: one capture divided over two ports, or the i-th input at port i.
    ///
    /// # Errors
    /// One cannot be opened, or the split names no port.
    pub fn sources(&self, names: &[String], options: &InputOptions) -> Result<Sources, Error> {
        if self.inputs.iter().filter(|w| *w == "-").count() > 1 {
            return Err(Error::wrong("standard input can be read once only"));
        }
        let mut inputs = Vec::new();
        for (index, word) in self.inputs.iter().enumerate() {
            let entry = match &self.split {
                Some(split) => divide(split, names)?,
                None => Entry::Port(index as u32),
            };
            inputs.push((port::input(word, options)?, entry));
        }
        Ok(Sources::new(inputs))
    }

    /// Opens the outputs: one for all ports, or one a port. Nothing that is read is written.
    pub(crate) fn sinks(&self, names: &[String]) -> Result<(Sinks, Option<Sink>), Error> {
        self.one_or_each(names)?;
        let mut taken: HashSet<PathBuf> = self.inputs.iter().filter_map(|w| file(w)).collect();
        for word in self.outputs.iter().chain(&self.pass) {
            if file(word).is_some_and(|path| !taken.insert(path)) {
                return Err(Error::wrong(format!("{word} is named twice"))
                    .help("an output must not be an input or another output"));
            }
        }
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let open = |word: &String| port::output(word, &all).map(|output| Sink::new(word, output));
        let opened: Result<Vec<_>, _> = self.outputs.iter().map(open).collect();
        let of_port = (0..names.len()).map(|port| match self.outputs.len() {
            0 => None,
            1 => Some(0),
            _ => Some(port),
        });
        let sinks = Sinks {
            sinks: opened?,
            of_port: of_port.collect(),
        };
        Ok((sinks, self.pass.as_ref().map(open).transpose()?))
    }

    /// Refuses several outputs that are not one for each port.
    pub(crate) fn one_or_each(&self, names: &[String]) -> Result<(), Error> {
        let count = self.outputs.len();
        if count <= 1 || count == names.len() {
            return Ok(());
        }
        let list = names.join(", ");
        Err(
            Error::wrong(format!("{count} outputs for {} ports", names.len())).help(format!(
                "give one --out for all ports, or one each, in this order: {list}"
            )),
        )
    }
}

fn divide(split: &Split, ports: &[String]) -> Result<Entry, Error> {
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
            Error::wrong(format!("--split: port `{name}` is not one of two"))
                .help("a split divides a capture over the first two ports of a function"),
        ),
        None => Err(
            Error::wrong(format!("--split: the function has no port `{name}`"))
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
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    fn ports(inputs: &[&str], outputs: &[&str]) -> Ports {
        Ports {
            inputs: strings(inputs),
            outputs: strings(outputs),
            ..Ports::default()
        }
    }

    #[test]
    fn ports_are_those_declared_or_those_connected() {
        let names = |declared: &[&str], inputs: &[&str], outputs: &[&str]| {
            ports(inputs, outputs).names(&strings(declared))
        };
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
        let ends = |entry: Result<Entry, Error>| match entry.unwrap() {
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
            let Err(error) = ports(&[input], &[output]).sinks(&strings(&["0", "1"])) else {
                panic!("opened")
            };
            assert!(error.what.ends_with("is named twice"), "{}", error.what);
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }
}
