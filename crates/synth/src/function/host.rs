//! Functions where elements are made, and the element that runs one: packet by packet in the reference interpreter.

use std::sync::Arc;

use millrace_click::element::Element;
use millrace_click::error::Place;
use millrace_click::function::{Decided, End};
use millrace_click::interpreter::{Context, Host, Shared};
use millrace_click::meaning::Meaning;
use millrace_click::packet::Packet;
use millrace_object::program::{FunctionId, Program, Role};
use millrace_reference::{End as Ended, Machine, Target};

use super::{end, entry};

/// More steps than an admitted program without state executes.
const STEPS: u64 = 4_000_000;
/// Bytes around a packet that a program may have it grow into; those that do are no elements.
const ROOM: usize = 256;

/// A function without state.
pub struct Function {
    /// what its element is called in configurations
    pub name: String,
    program: Program,
    entry: (FunctionId, Role),
    /// what it does
    pub decided: Arc<Decided>,
}

impl Function {
    /// A program, of which it is known what it does.
    ///
    /// # Errors
    /// It has no packet handler, or several.
    pub fn new(name: String, program: Program, decided: Decided) -> Result<Self, String> {
        Ok(Self {
            name,
            entry: entry(&program)?,
            program,
            decided: Arc::new(decided),
        })
    }

    /// The same with another meaning, for tests of what holds the two against each other.
    #[must_use]
    pub fn with(&self, decided: Decided) -> Self {
        Self {
            name: self.name.clone(),
            program: self.program.clone(),
            entry: self.entry,
            decided: Arc::new(decided),
        }
    }

    /// The first line of the function, where there are lines.
    #[must_use]
    pub fn place(&self) -> Place {
        let function = self.program.functions.get(self.entry.0.0);
        let mut lines = function.into_iter().flat_map(|f| f.lines.iter().flatten());
        let line = lines.next();
        Place {
            file: line.map_or(self.program.name.as_str(), |l| &l.file).into(),
            line: line.map_or(1, |l| l.line),
            column: 1,
            text: line.map_or("", |l| &l.text).into(),
        }
    }

    /// What becomes of a packet, and its bytes; none where the interpreter finds no verdict.
    fn run(&self, frame: &[u8], port: usize) -> Option<(End, Vec<u8>)> {
        let ports = self.decided.inputs.len();
        let mut machine = Machine::exact(&self.program);
        machine.ports(ports as u32);
        machine.packet(frame, ROOM, port as u32);
        machine.tailroom(ROOM);
        let verdict = match machine.run(self.entry.0, self.entry.1, STEPS) {
            Ok(Ended::Verdict(verdict)) => verdict,
            _ => return None,
        };
        let interface = match machine.target() {
            Some(Target::Port(port)) => Some(u64::from(port) + 1),
            _ => None,
        };
        let verdict = verdict & u64::from(u32::MAX);
        let end = end(&self.program, verdict, interface, (port, ports)).ok()?;
        Some((end, machine.packet_bytes().to_vec()))
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

/// A function is equal to itself alone.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Function {}

/// A host that has functions.
pub struct Functions {
    /// files and streams
    pub inner: Shared,
    /// the functions
    pub all: Vec<Arc<Function>>,
}

impl Host for Functions {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        self.inner.borrow_mut().read(path)
    }

    fn write(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String> {
        self.inner.borrow_mut().write(path, bytes, append)
    }

    fn note(&mut self, text: &[u8]) {
        self.inner.borrow_mut().note(text);
    }

    fn element(&mut self, name: &str) -> Option<Box<dyn Element>> {
        let found = self.all.iter().find(|f| f.name == name)?;
        Some(Box::new(Runs(found.clone())))
    }
}

/// The element.
struct Runs(Arc<Function>);

impl Element for Runs {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Function(self.0.decided.clone()))
    }

    fn push(&mut self, port: usize, packet: Packet, cx: &Context<'_>) {
        match self.0.run(packet.data(), port) {
            Some((End::Output(to), bytes)) => {
                let mut fresh = Packet::new(&bytes);
                (fresh.time, fresh.number) = (packet.time, packet.number);
                cx.push(to, fresh);
            }
            _ => cx.drop(packet),
        }
    }
}
