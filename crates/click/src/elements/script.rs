//! `Script([TYPE,] INSTRUCTION, …)`: runs instructions (`script.rs`): TYPE `ACTIVE` when the configuration starts, `PASSIVE` when its
//! handler `run` is called, `PACKET` for each packet (`return N` is the output, `end` 0, `exit` drops), `DRIVER` as
//! `DriverManager`: it is asked when the driver stops, and goes on behind its `wait_stop`; at its end the run ends.
//!
//! Handlers: `run`, `step`, and functions of scripts; variables may be read.

use super::prelude::*;
use crate::script::{Next, Script, Why};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Script", "-/-", "h/h", make),
    Class::new("DriverManager", "0/0", "a/a", driver),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    args.keywords("TYPE");
    let kind = args.keyword("TYPE").map(|t| t.to_ascii_uppercase());
    let all = args.all();
    let kind = match kind.as_deref() {
        Some("PASSIVE") | Some("PROXY") => Kind::Passive,
        Some("PACKET") => Kind::Packet,
        Some("DRIVER") => Kind::Driver,
        Some("SIGNAL") => return Err("TYPE SIGNAL: signals do not occur in simulated time".into()),
        Some("ACTIVE") => Kind::Active,
        None if setup.ports.0 > 0 => Kind::Packet,
        None => Kind::Active,
        Some(other) => return Err(format!("TYPE: '{other}' is unknown")),
    };
    Ok(Box::new(Scripted {
        script: Script::new(&all),
        kind,
        begun: false,
        waits: false,
    }))
}

fn driver(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let all = args.all();
    Ok(Box::new(Scripted {
        script: Script::new(&all),
        kind: Kind::Driver,
        begun: false,
        waits: false,
    }))
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Active,
    Passive,
    Packet,
    Driver,
}

struct Scripted {
    script: Script,
    kind: Kind,
    begun: bool,
    /// for a stop
    waits: bool,
}

impl Scripted {
    fn go(&mut self, cx: &Context<'_>) {
        self.begun = true;
        match self.script.go(Why::Run, cx) {
            Next::Until(time) => cx.wake_at(time),
            Next::Stop => self.waits = true,
            Next::Ended(_) | Next::Exit => {
                if self.kind == Kind::Driver {
                    cx.end_run();
                }
            }
        }
    }
}

impl Element for Scripted {
    fn meaning(&self) -> Option<Meaning> {
        match (self.script.writes(), self.kind) {
            (true, _) => None,
            (false, Kind::Packet) => Some(Meaning::Outside("a script says by which output")),
            (false, _) => Some(Meaning::Says),
        }
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        if matches!(self.kind, Kind::Active | Kind::Driver) {
            cx.wake_at(cx.now());
        }
        Ok(())
    }

    fn timer(&mut self, cx: &Context<'_>) {
        self.go(cx);
    }

    fn stopping(&mut self, cx: &Context<'_>) -> bool {
        if self.kind != Kind::Driver {
            return false;
        }
        if !self.begun {
            // It begins now; if it waits for a stop, this one is it.
            cx.sleep();
            self.go(cx);
        }
        if self.waits {
            self.script.stops = self.script.stops.saturating_sub(1);
            if self.script.stops == 0 {
                self.waits = false;
                self.go(cx);
            }
        }
        true
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        self.script.rewind();
        match self.script.go(Why::Packet, cx) {
            Next::Exit => cx.drop(packet),
            Next::Ended(Some(value)) => match value.trim().parse::<i64>().map(usize::try_from) {
                Ok(Ok(port)) => cx.push(port, packet),
                Ok(Err(_)) => cx.drop(packet),
                Err(_) => cx.push(0, packet),
            },
            _ => cx.push(0, packet),
        }
    }

    fn read(&mut self, name: &str, argument: &str, cx: &Context<'_>) -> Read {
        match name {
            "run" => {
                self.script.rewind();
                self.script.arguments(argument);
                match self.script.go(Why::Packet, cx) {
                    Next::Ended(Some(value)) => Some(Ok(value)),
                    Next::Until(time) => {
                        cx.wake_at(time);
                        Some(Ok(String::new()))
                    }
                    _ => Some(Ok(String::new())),
                }
            }
            _ => match self.script.variables.get(name) {
                Some(value) => Some(Ok(value.clone())),
                None => self.script.function(name, argument, cx).map(Ok),
            },
        }
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        match name {
            "run" | "step" => {
                let _ = self.read("run", value, cx);
                Some(Ok(()))
            }
            _ => self.script.variables.get_mut(name).map(|slot| {
                value.clone_into(slot);
                Ok(())
            }),
        }
    }
}
