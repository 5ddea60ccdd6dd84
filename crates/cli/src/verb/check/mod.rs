//! `millrace check`: what a function is, and whether it is safe.

mod chain;
mod workers;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use clap::Args;
use millrace_chain::file;
use millrace_check::facts::Refusal;
use millrace_dataplane::memory::Memory;
use millrace_object::helper;
use millrace_object::program::{Entry, Program, Role};
use millrace_object::{Insn, program::StateObject};
use serde_json::{Value, json};

use crate::failure::{DONE, Failure, NO};
use crate::quantity::{bytes, grouped};
use crate::{budget, function, refusal, screen};

use super::survey;

/// Show what a function declares and calls, and whether it is safe.
#[derive(Args)]
#[command(after_help = "Exit status: 0 safe, 1 refused, 2 it cannot be read.")]
pub struct Check {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs; or a folder of objects, each of which is checked;
    /// or a chain file (FILE.toml), with all that it says
    nf: String,

    /// Give a state object room for this many entries, whatever its author declared
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// Say what the state takes that so many workers share, under the lock and in transactions, and what each of them adds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: Option<u32>,

    /// Only this program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Check {
    /// Checks it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if file::is_file(&self.nf) {
            let given = self.program.as_ref().map(|_| "--program");
            if let Some(flag) = given.or((!self.capacity.is_empty()).then_some("--capacity")) {
                return Err(Failure::wrong(format!("{flag} is for one function"))
                    .help("write it into the chain file, below its [[element]]"));
            }
            return chain::perform(Path::new(&self.nf), self.json);
        }
        let folder = Path::new(&self.nf);
        if folder.is_dir() && millrace::find(&self.nf).is_err() {
            let files = survey::objects(folder)?;
            if self.program.is_some() {
                return Err(Failure::wrong("--program is for one object")
                    .help("name the object, or leave --program out"));
            }
            if !files.is_empty() {
                return survey::perform(folder, &files, &self.capacity, self.json);
            }
        }
        let make = function::make(&[], &self.capacity, self.program.as_ref())?;
        let written = function::read(&self.nf, &make)?;
        let program = &written.program;
        let refused = written.check(budget::begin()).err().and_then(|e| e.refused);
        let refusals = refused.map(|r| r.refusals).unwrap_or_default();
        let memory = Memory::from_capture_to_capture(millrace::objects_bytes(program));
        let mut shown = text(program, &refusals, &memory);
        if let Some(cores) = self.cores {
            shown += &workers::text(program, cores);
        }
        screen::report(self.json, shown.trim_end());
        for refusal in &refusals {
            screen::err(&format!("\n{}", refusal::text(refusal, &written.folder)));
        }
        if self.json {
            let mut all = document(program, &refusals, &memory);
            if let (Some(cores), Some(all)) = (self.cores, all.as_object_mut()) {
                all.insert("shared".to_owned(), workers::document(program, cores));
            }
            screen::document(&all);
        }
        Ok(if refusals.is_empty() { DONE } else { NO })
    }
}

fn document(program: &Program, refusals: &[Refusal], memory: &Memory) -> Value {
    let object = |o: &StateObject| {
        json!({
            "name": o.name,
            "kind": o.kind.name,
            "key_bytes": o.key_bytes,
            "value_bytes": o.value_bytes,
            "capacity": o.capacity,
            "bytes": o.bytes(),
            "expire_after_ns": o.expire_after,
            "at_capacity": o.kind.at_capacity,
        })
    };
    json!({
        "name": program.name,
        "dialect": program.dialect,
        "admitted": refusals.is_empty(),
        "refusals": refusals.iter().map(refusal::document).collect::<Vec<_>>(),
        "objects": program.objects.iter().map(object).collect::<Vec<_>>(),
        "helpers": helpers(program),
        "params": params(program),
        "ports": program.ports,
        "reasons": program.reasons,
        "entries": program.entries.iter().map(|e| json!({
            "function": function_name(program, e),
            "role": role(e),
        })).collect::<Vec<_>>(),
        "instructions": instructions(program),
        "license": program.license,
        "memory": memory,
    })
}

fn params(program: &Program) -> Vec<Value> {
    let param = |(p, value): (&millrace_object::program::Param, i128)| {
        let number = i64::try_from(value).map(Value::from);
        json!({
            "name": p.name,
            "type": p.type_name,
            "value": number.unwrap_or_else(|_| Value::from(value as u64)),
        })
    };
    values(program).into_iter().map(param).collect()
}

/// Parameters with the value that they have now.
fn values(program: &Program) -> Vec<(&millrace_object::program::Param, i128)> {
    let value = |p: &millrace_object::program::Param| {
        let initial = program.objects.get(p.object.0)?.initial.as_deref()?;
        let from = p.offset as usize;
        let bytes = initial.get(from..from + p.bytes as usize)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0_u64, |n, b| (n << 8) | u64::from(*b));
        let unused = 64 - 8 * p.bytes.clamp(1, 8);
        Some(if p.signed {
            i128::from((number << unused).cast_signed() >> unused)
        } else {
            i128::from(number)
        })
    };
    program
        .params
        .iter()
        .filter_map(|p| Some((p, value(p)?)))
        .collect()
}

/// Names of the helpers that the program calls; a number where it has no name.
fn helpers(program: &Program) -> BTreeSet<String> {
    let called = program
        .functions
        .iter()
        .flat_map(|f| &f.insns)
        .filter_map(|insn| match insn {
            Insn::Call { helper } => Some(*helper),
            _ => None,
        });
    called
        .map(|n| helper::by_number(n).map_or_else(|| format!("#{n}"), |h| h.name.to_owned()))
        .collect()
}

fn instructions(program: &Program) -> usize {
    program.functions.iter().map(|f| f.insns.len()).sum()
}

fn function_name<'a>(program: &'a Program, entry: &Entry) -> &'a str {
    program
        .functions
        .get(entry.function.0)
        .map_or("", |f| &f.name)
}

fn role(entry: &Entry) -> String {
    match entry.role {
        Role::Xdp => "xdp".into(),
        Role::OnPacket => "on-packet".into(),
        Role::OnStart => "on-start".into(),
        Role::OnStop => "on-stop".into(),
        Role::Every { period } => format!("every {period} ns"),
        Role::Timer => "timer".into(),
        Role::Expiry => "expiry".into(),
    }
}

fn text(program: &Program, refusals: &[Refusal], memory: &Memory) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = summary(&mut text, program, refusals);
    let _ = objects(&mut text, program);
    let _ = rest(&mut text, program, memory);
    text
}

fn summary(text: &mut String, program: &Program, refusals: &[Refusal]) -> std::fmt::Result {
    let answer = match refusals.len() {
        0 => "safe: every access proved, every path ends".to_owned(),
        n => format!("refused, {n} reason{}", if n == 1 { "" } else { "s" }),
    };
    let dialect = match program.dialect {
        millrace_object::program::Dialect::Xdp => "XDP",
        millrace_object::program::Dialect::Handlers => "handlers",
    };
    let n = instructions(program);
    writeln!(
        text,
        "{} ({dialect}, {n} instructions): {answer}",
        program.name
    )
}

fn objects(text: &mut String, program: &Program) -> std::fmt::Result {
    if program.objects.is_empty() {
        return writeln!(text, "\n  no state");
    }
    let width = program
        .objects
        .iter()
        .map(|o| o.name.len())
        .max()
        .unwrap_or(0)
        .max(6);
    writeln!(
        text,
        "\n  {:<width$}  {:<16}{:>8}{:>8}{:>14}{:>12}",
        "object", "kind", "key", "value", "capacity", "memory"
    )?;
    for o in &program.objects {
        writeln!(
            text,
            "  {:<width$}  {:<16}{:>8}{:>8}{:>14}{:>12}",
            o.name,
            o.kind.name,
            o.key_bytes,
            o.value_bytes,
            grouped(o.capacity),
            bytes(o.bytes())
        )?;
    }
    Ok(())
}

fn rest(text: &mut String, program: &Program, memory: &Memory) -> std::fmt::Result {
    writeln!(text)?;
    let join = |names: Vec<String>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let entries = program.entries.iter();
    let entries = entries.map(|e| format!("{} ({})", function_name(program, e), role(e)));
    writeln!(text, "  entries  {}", join(entries.collect()))?;
    if !program.ports.is_empty() {
        writeln!(text, "  ports    {}", program.ports.join(", "))?;
    }
    writeln!(
        text,
        "  helpers  {}",
        join(helpers(program).into_iter().collect())
    )?;
    let values = values(program);
    let params = values
        .iter()
        .map(|(p, v)| format!("{}={} ({})", p.name, p.written(*v), p.type_name));
    writeln!(text, "  params   {}", join(params.collect()))?;
    writeln!(
        text,
        "  memory   {} when it runs from one capture to another: {} state, {} buffers, {} process",
        bytes(memory.predicted),
        bytes(memory.objects),
        bytes(memory.runtime),
        bytes(memory.base)
    )
}
