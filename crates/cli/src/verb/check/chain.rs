//! `millrace check FILE.toml`: whether a chain file can be run.
//!
//! All of it is looked at, also behind the first mistake: what it says of the run, each element, the connections. No
//! function is compiled to machine code, no guest is started, and no port is opened.

use std::path::Path;

use millrace::Kind;
use millrace_chain::connect::{Named, connect};
use millrace_chain::{Description, What};
use millrace_check::facts::Refusal;
use millrace_control::Exposed;
use millrace_dataplane::memory::Memory;
use millrace_dataplane::module::ObjectInfo;
use millrace_object::program::{Program, Role};
use serde_json::{Value, json};

use super::{document, summary};
use crate::failure::{DONE, Failure, NO, WRONG, detail, report};
use crate::quantity::bytes;
use crate::verb::run::{Element, Run, chain, settings};
use crate::{budget, function, refusal, screen};

/// A chain as it was looked at.
struct Checked {
    chain: Description,
    elements: Vec<Looked>,
    ports: Vec<String>,
    failures: Vec<Failure>,
}

/// An element as it was looked at.
struct Looked {
    name: String,
    /// in a line
    text: String,
    /// as JSON; none of an element with mistakes
    document: Option<Value>,
    /// its ports; none where they are not known
    named: Option<Named>,
    refusals: Vec<String>,
}

/// Checks a chain file, and gives the exit status.
pub fn perform(path: &Path, json: bool) -> Result<u8, Failure> {
    let checked = checked(path)?;
    let refused: usize = checked.elements.iter().map(|e| e.refusals.len()).sum();
    if json {
        screen::document(&checked.document(refused));
    }
    screen::report(json, &checked.text(path, refused));
    let refusals = checked.elements.iter().flat_map(|e| &e.refusals);
    for refusal in refusals {
        screen::err(&format!("\n{refusal}"));
    }
    for failure in &checked.failures {
        screen::err("");
        report(failure, false);
    }
    let wrong = checked.failures.iter().any(|f| f.kind == Kind::Wrong);
    Ok(match (wrong, refused + checked.failures.len()) {
        (true, _) => WRONG,
        (false, 0) => DONE,
        (false, _) => NO,
    })
}

fn checked(path: &Path) -> Result<Checked, Failure> {
    let chain = millrace_chain::file::read(path).map_err(chain::wrong)?;
    let line = settings::Line::default();
    let mut failures = Vec::new();
    let run = match settings::Whole::of(&chain, &line) {
        Ok(whole) => {
            whole.switches.apply();
            Some(whole.run.joined())
        }
        Err(error) => {
            failures.push(chain::wrong(error));
            None
        }
    };
    let told = |failure| settings::told(&chain, &line, failure);
    if let Some(run) = &run {
        failures.extend(run.fits(&chain).err().map(told));
        failures.extend(run.spelled().map(told));
    }
    let mut elements = Vec::new();
    for element in &chain.elements {
        let looked = match &element.what {
            What::Function(asked) => of_function(&chain, element, asked, &mut failures),
            What::Guest(guest) => of_guest(&chain, element, guest, run.as_ref(), &mut failures),
        };
        elements.push(looked);
    }
    let named: Option<Vec<_>> = elements.iter().map(|e| e.named.clone()).collect();
    let mut ports = Vec::new();
    // Without the ports of an element its connections cannot be judged.
    if let Some(named) = named {
        match connect(&chain, &named) {
            Ok(Some(connected)) => ports = connected.ports,
            Ok(None) => ports = named.first().map_or(Vec::new(), |one| one.ports.clone()),
            Err(error) => failures.push(chain::wrong(error)),
        }
        if let Some(run) = &run
            && !ports.is_empty()
        {
            let words = run.between().names(&ports);
            failures.extend(words.err().map(|failure| {
                let key = chain
                    .settings
                    .iter()
                    .find(|s| ["ports", "in"].contains(&&*s.name));
                match key {
                    Some(key) => chain::at(&chain, &key.span, failure),
                    None => failure,
                }
            }));
        }
    }
    Ok(Checked {
        chain,
        elements,
        ports,
        failures,
    })
}

fn of_function(
    chain: &Description,
    element: &millrace_chain::Element,
    asked: &millrace_chain::Function,
    failures: &mut Vec<Failure>,
) -> Looked {
    let mut looked = Looked {
        name: element.name.clone(),
        text: format!("{}: see below", asked.word),
        document: None,
        named: None,
        refusals: Vec::new(),
    };
    let nf = chain::path(chain, &asked.word);
    let read = || {
        let make = function::make(&asked.set, &asked.capacity, asked.program.as_ref())?;
        function::read(&nf, &make)
    };
    let written = match read() {
        Ok(written) => written,
        Err(failure) => {
            failures.push(chain::failed(chain, element, failure));
            return looked;
        }
    };
    let program = &written.program;
    let refused = written.check(budget::begin()).err().and_then(|e| e.refused);
    let refusals: Vec<Refusal> = refused.map(|r| r.refusals).unwrap_or_default();
    let shown = refusals.iter();
    looked.refusals = shown.map(|r| refusal::text(r, &written.folder)).collect();
    let memory = Memory::from_capture_to_capture(millrace::objects_bytes(program));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = summary(&mut text, program, &refusals);
    looked.text = format!("{}, {} of state", text.trim_end(), bytes(memory.objects));
    looked.document = Some(document(program, &refusals, &memory));
    looked.named = Some(Named {
        ports: program.ports.clone(),
        guest: false,
    });
    let exposed = exposed(program, written.types);
    failures.extend(chain::entries(chain, element, &exposed).err());
    looked
}

/// What entries of files are read by, of a program that is not compiled.
fn exposed(program: &Program, types: millrace::Types) -> Exposed {
    let object = |o: &millrace_object::program::StateObject| {
        let info = ObjectInfo {
            name: o.name.clone(),
            kind: o.kind,
            key_bytes: o.key_bytes as usize,
            value_bytes: o.value_bytes as usize,
            capacity: o.capacity,
            bytes: o.bytes(),
            records: false,
        };
        (info, o.kind.is_set_from_outside())
    };
    let takes = |role: &Role| matches!(role, Role::Xdp | Role::OnPacket);
    let entries = program.entries.iter().filter(|e| takes(&e.role));
    let functions = entries.filter_map(|e| program.functions.get(e.function.0));
    Exposed {
        objects: program.objects.iter().map(object).collect(),
        types,
        programs: functions.map(|f| f.name.clone()).collect(),
        params: program.params.clone(),
        ..Exposed::nothing(&program.name)
    }
}

fn of_guest(
    chain: &Description,
    element: &millrace_chain::Element,
    guest: &millrace_chain::Guest,
    run: Option<&Run>,
    failures: &mut Vec<Failure>,
) -> Looked {
    let classes = run.map_or(1, Run::classes);
    let spec = Element::guest(chain, element, guest, false, classes);
    let sound = spec.is_ok();
    failures.extend(spec.err().map(|e| match &e.detail {
        // Its line is told already.
        Some(_) => e,
        None => chain::failed(chain, element, e),
    }));
    let word = chain::word(element);
    Looked {
        name: element.name.clone(),
        text: word.clone(),
        document: sound.then(|| json!({ "guest": word })),
        named: Some(Named {
            guest: true,
            ..Named::default()
        }),
        refusals: Vec::new(),
    }
}

impl Checked {
    fn text(&self, path: &Path, refused: usize) -> String {
        let answer = match (self.failures.len(), refused) {
            (0, 0) => "it can be run".to_owned(),
            (0, _) => "refused".to_owned(),
            (1, _) => "1 mistake".to_owned(),
            (n, _) => format!("{n} mistakes"),
        };
        let count = self.elements.len();
        let elements = if count == 1 { "element" } else { "elements" };
        let mut lines = vec![format!("{}: {count} {elements}: {answer}", path.display())];
        let width = self.elements.iter().map(|e| e.name.len()).max();
        let width = width.unwrap_or(0).max(5);
        for element in &self.elements {
            lines.push(format!("  {:<width$}  {}", element.name, element.text));
        }
        if !self.ports.is_empty() {
            lines.push(format!("  {:<width$}  {}", "ports", self.ports.join(", ")));
        }
        lines.join("\n")
    }

    fn document(&self, refused: usize) -> Value {
        let elements = self.elements.iter().map(|element| {
            json!({
                "name": element.name,
                "function": element.document.as_ref().filter(|d| d.get("guest").is_none()),
                "guest": element.document.as_ref().and_then(|d| d.get("guest")),
            })
        });
        let errors = self.failures.iter().map(|failure| {
            json!({
                "error": failure.what,
                "help": failure.help,
                "detail": detail(failure),
            })
        });
        json!({
            "name": self.chain.name,
            "admitted": refused == 0 && self.failures.is_empty(),
            "elements": elements.collect::<Vec<_>>(),
            "ports": self.ports,
            "errors": errors.collect::<Vec<_>>(),
        })
    }
}
