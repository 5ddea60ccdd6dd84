//! What stands in a chain: functions that are built, and guests, which are other people's programs.

use std::path::Path;
use std::sync::{Arc, Mutex};

use millrace_chain::Description;
use millrace_chain::connect::Named;
use millrace_chain::description::is_guest;
use millrace_dataplane::worker::foreign::Foreign;
use millrace_dataplane::worker::{Code, Link};
use millrace_guest::{GuestError, Hosted, Spec, Word};

use super::chain::wrong;
use crate::failure::Failure;
use crate::function::Function;

/// An element of a chain.
pub enum Element {
    /// a function
    Function(Box<Function>),
    /// a guest, not started yet
    Guest(Box<Spec>),
}

/// The options of a guest that are paths.
const PATHS: [&str; 5] = ["dir", "read", "write", "snapshot", "restore"];

/// The only drop reason of a guest.
const DROPPED: &str = "by_guest";

impl Element {
    /// A guest of a chain.
    pub fn guest(
        chain: &Description,
        element: &millrace_chain::Element,
        guest: &millrace_chain::Guest,
        stdout_taken: bool,
    ) -> Result<Self, Failure> {
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
        Ok(Self::Guest(Box::new(spec)))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Guest(spec) => &spec.name,
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
    }
}

/// Starts a guest, for the one worker of its run.
pub fn start(spec: &Spec) -> Result<Code, Failure> {
    let guest = Hosted::start(spec.clone()).map_err(|e| failure(&e))?;
    let started: Box<dyn Foreign> = Box::new(millrace_guest::Element::new(guest));
    Ok(Code::Foreign(Arc::new(Mutex::new(vec![started]))))
}

/// A guest that cannot be hosted.
pub fn failure(error: &GuestError) -> Failure {
    Failure::wrong(error).help(error.help())
}
