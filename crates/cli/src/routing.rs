//! `--routes FILE` and `--routes system`: the table that `bpf_fib_lookup` is answered from (docs/routes.md).

use std::path::PathBuf;

use millrace::{Function, Make};
use millrace_dataplane::Module;
use millrace_dataplane::module::Entry;
use millrace_object::file;
use millrace_object::state::routes;
use millrace_routes::{MOST_BYTES, Table, system};

use crate::failure::Failure;
use crate::{function, log};

/// A function with a routing table as large as it needs to be, and the entries of it. Without a table
/// (`word` is none) a function that looks routes up finds none, and the user is told.
///
/// # Errors
/// The table cannot be read; the function looks no routes up, or is built and has no room for it.
pub fn load(
    nf: &str,
    make: &Make,
    word: Option<&str>,
    inputs: &[String],
) -> Result<(Function, Vec<Entry>), Failure> {
    let table = word.map(|w| read(w, inputs)).transpose()?;
    let mut function = function::load(nf, make)?;
    let Some(at) = object(&function.module) else {
        return match word {
            None => Ok((function, Vec::new())),
            Some(word) => Err(Failure::wrong(format!(
                "--routes {word}: {} looks no routes up",
                function.name
            ))
            .help(
                "leave --routes out; it is for functions that call bpf_fib_lookup or bpf_check_mtu",
            )),
        };
    };
    let Some(table) = table else {
        log::note(
            "the function looks routes up, and there are none: give --routes FILE or --routes system",
        );
        return Ok((function, Vec::new()));
    };
    function = roomy(function, nf, make, at, table.capacity())?;
    for note in &table.notes {
        log::note(note);
    }
    let entries = entries(&table, at);
    Ok((function, entries))
}

/// The function, loaded again if its routing table has no room for so many.
fn roomy(
    function: Function,
    nf: &str,
    make: &Make,
    at: usize,
    wanted: u64,
) -> Result<Function, Failure> {
    let room = function.module.objects().get(at).map_or(0, |o| o.capacity);
    if wanted <= room {
        return Ok(function);
    }
    let capacity = (routes::NAME.to_owned(), wanted.next_power_of_two());
    function::load(nf, &make.with_capacities(&[capacity]))
}

fn entries(table: &Table, at: usize) -> Vec<Entry> {
    let entry = |(key, value)| Entry::new(at, key, value);
    table.entries().into_iter().map(entry).collect()
}

/// The entries of the routing table that lies beside each of these packet tests, `CASE.routes` beside
/// `CASE.pkt`, none where there is no such file; and the function with room for the largest.
///
/// # Errors
/// A table cannot be read, or the function looks no routes up.
pub fn of_cases(
    mut function: Function,
    nf: &str,
    make: &Make,
    cases: &[PathBuf],
) -> Result<(Function, Vec<Vec<Entry>>), Failure> {
    let mut all = Vec::new();
    for case in cases {
        let file = case.with_extension("routes");
        if !file.exists() {
            all.push(Vec::new());
            continue;
        }
        let word = file.display().to_string();
        let table = read(&word, &[])?;
        let Some(at) = object(&function.module) else {
            return Err(Failure::wrong(format!("{word}: {} looks no routes up", function.name))
                .help("remove the file; it is for functions that call bpf_fib_lookup or bpf_check_mtu"));
        };
        function = roomy(function, nf, make, at, table.capacity())?;
        all.push(entries(&table, at));
    }
    Ok((function, all))
}

fn object(module: &Module) -> Option<usize> {
    module
        .objects()
        .iter()
        .position(|o| *o.kind == routes::KIND)
}

fn read(word: &str, inputs: &[String]) -> Result<Table, Failure> {
    let interfaces = match word.strip_prefix("system") {
        Some("") => Some(of_inputs(inputs)),
        Some(list) => list
            .strip_prefix(':')
            .map(|list| list.split(',').map(str::to_owned).collect()),
        None => None,
    };
    if let Some(interfaces) = interfaces {
        return system::read(&interfaces).map_err(|e| {
            Failure::wrong(format!("--routes {word}: {e}"))
                .help("write --routes system:eth0,eth1 for the interfaces of ports 0 and 1")
        });
    }
    let wrong = |what: String| {
        Failure::wrong(format!("{word}: {what}"))
            .help("docs/routes.md says how a routing table is written")
    };
    let text = file::read_text(word.as_ref(), MOST_BYTES).map_err(|e| wrong(e.to_string()))?;
    Table::parse(&text).map_err(|e| wrong(e.to_string()))
}

/// The interfaces that input words such as `afpacket:eth0` or `eth0` name.
fn of_inputs(inputs: &[String]) -> Vec<String> {
    let interface = |word: &String| {
        let rest = word.split_once(':').map_or(word.as_str(), |(_, rest)| rest);
        let name = rest.split(['?', ',']).next()?;
        let known = std::path::Path::new("/sys/class/net").join(name).exists();
        (known && !name.is_empty() && !name.contains('/')).then(|| name.to_owned())
    };
    inputs.iter().map_while(interface).collect()
}
