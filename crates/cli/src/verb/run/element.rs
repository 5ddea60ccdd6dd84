//! The elements of a chain: built functions, and guests.

use std::path::Path;
use std::sync::{Arc, Mutex};

use millrace::Function;
use millrace_chain::Description;
use millrace_chain::connect::Named;
use millrace_chain::description::is_guest;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::worker::classed::Guests;
use millrace_dataplane::worker::foreign::Foreign;
use millrace_dataplane::worker::{Code, Link};
use millrace_guest::{GuestError, Hosted, Spec, Word};

use super::chain::wrong;
use super::printed::Printed;
use crate::failure::Failure;
use crate::log;

/// An element of a chain.
pub enum Element {
    /// a function
    Function(Box<Function>),
    /// a guest, not started yet: one for each packet class
    Guest(Vec<Spec>),
}

/// The options of a guest that are paths.
const PATHS: [&str; 5] = ["dir", "read", "write", "snapshot", "restore"];

/// What stands for the number of a guest's packet class in its command and its options.
const CLASS: &str = "{class}";

/// The only drop reason of a guest.
const DROPPED: &str = "by_guest";

impl Element {
    /// A guest of a chain, for so many packet classes.
    pub fn guest(
        chain: &Description,
        element: &millrace_chain::Element,
        guest: &millrace_chain::Guest,
        stdout_taken: bool,
        classes: u16,
    ) -> Result<Self, Failure> {
        if classes > 1 && of_class(guest, 0) == of_class(guest, 1) {
            log::note(format!(
                "{classes} instances of `{}` have the same command: if it writes files, name them by class, \
                 as in seen-{CLASS}.pcap (docs/guests.md)",
                element.name
            ));
        }
        let each = (0..classes).map(|class| {
            let own = of_class(guest, class);
            let mut spec = Self::spec(chain, element, &own, stdout_taken)?;
            // Each lives somewhere else.
            spec.slot = spec.slot.map(|slot| slot.saturating_add(u32::from(class)));
            Ok(spec)
        });
        Ok(Self::Guest(each.collect::<Result<_, Failure>>()?))
    }

    fn spec(
        chain: &Description,
        element: &millrace_chain::Element,
        guest: &millrace_chain::Guest,
        stdout_taken: bool,
    ) -> Result<Spec, Failure> {
        let folder = chain.file.as_deref().and_then(Path::parent);
        let full = |name: &str, value: &str| {
            let is_path = PATHS.contains(&name);
            match folder.filter(|_| is_path) {
                Some(folder) => {
                    let full = std::path::absolute(folder.join(value));
                    full.map_or_else(|_| value.to_owned(), |p| p.display().to_string())
                }
                None => value.to_owned(),
            }
        };
        let restored = guest.options.iter().find(|(name, ..)| name == "restore");
        let word = match (is_guest(&guest.command), guest.arguments.as_slice()) {
            (true, _) => guest.command.clone(),
            (false, []) => match restored {
                Some((name, file, _)) => format!("guest,restore={}:", full(name, file)),
                None => format!("guest:{}", guest.command),
            },
            (false, words) => format!("guest:{}", shell_words::join(words)),
        };
        let word = Word::of(&word).ok_or_else(|| Failure::wrong("no program is named"))?;
        let failed = |line: Option<usize>, e: &GuestError| {
            wrong(chain.wrong(line, e.to_string(), &e.help()))
        };
        let mut spec = word.spec().map_err(|e| failed(element.line, &e))?;
        for (name, value, line) in &guest.options {
            let value = full(name, value);
            millrace_guest::word::option_of(&mut spec, &element.name, name, &value)
                .map_err(|e| failed(*line, &e))?;
        }
        for (name, value) in &guest.environment {
            let own = format!("{name}=");
            spec.environment.retain(|e| !e.starts_with(&own));
            spec.environment.push(own + value);
        }
        if stdout_taken {
            spec.output = 2;
        }
        Ok(spec)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Guest(specs) => specs.first().map_or("guest", |spec| &spec.name),
        }
    }

    /// Names of its ports; empty where it names none.
    pub fn ports(&self) -> &[String] {
        match self {
            Self::Function(function) => &function.ports,
            Self::Guest(_) => &[],
        }
    }

    /// The same, as connections know them.
    pub fn named(&self) -> Named {
        Named {
            ports: self.ports().to_vec(),
            guest: matches!(self, Self::Guest(_)),
        }
    }

    /// The function, if it is one.
    pub fn function(&self) -> Option<&Function> {
        match self {
            Self::Function(function) => Some(function),
            Self::Guest(_) => None,
        }
    }
}

/// A started guest as an element of a chain.
pub fn link(name: &str, code: Code) -> Link {
    Link {
        name: name.to_owned(),
        code,
        reasons: vec![DROPPED.to_owned()],
        objects_bytes: 0,
        shares: Vec::new(),
        slow: None,
        linked: false,
    }
}

/// The guest of one packet class.
fn of_class(guest: &millrace_chain::Guest, class: u16) -> millrace_chain::Guest {
    let class = class.to_string();
    let own = |text: &String| text.replace(CLASS, &class);
    millrace_chain::Guest {
        command: own(&guest.command),
        arguments: guest.arguments.iter().map(own).collect(),
        environment: guest
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), own(value)))
            .collect(),
        options: guest
            .options
            .iter()
            .map(|(name, value, line)| (name.clone(), own(value), *line))
            .collect(),
    }
}

/// Guests whose output is printed with the name of their element, and of their packet class where there are several.
pub fn printed(specs: &[Spec], name: &str, printed: &mut Printed) -> Result<Vec<Spec>, Failure> {
    let several = specs.len() > 1;
    let each = specs.iter().enumerate().map(|(class, spec)| {
        let mut spec = spec.clone();
        match several {
            true => printed.of(&mut spec, &format!("{name}, class {class}"))?,
            false => printed.of(&mut spec, name)?,
        }
        Ok(spec)
    });
    each.collect()
}

/// Starts a guest, for the one worker of its run.
pub fn start(specs: &[Spec]) -> Result<Code, Failure> {
    let started = specs.iter().map(started).collect::<Result<_, _>>()?;
    Ok(Code::Foreign(Arc::new(Mutex::new(started))))
}

/// Starts a guest for each packet class.
pub fn start_each(specs: &[Spec], classes: &Arc<Classes>) -> Result<Arc<Guests>, Failure> {
    let started = specs.iter().map(started).collect::<Result<_, _>>()?;
    Ok(Guests::new(classes, started))
}

fn started(spec: &Spec) -> Result<Box<dyn Foreign>, Failure> {
    let guest = Hosted::start(spec.clone()).map_err(|e| failure(&e))?;
    Ok(Box::new(millrace_guest::Element::new(guest)))
}

/// A guest that cannot be hosted.
pub fn failure(error: &GuestError) -> Failure {
    Failure::wrong(error).help(error.help())
}
