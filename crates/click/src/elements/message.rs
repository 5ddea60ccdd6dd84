//! `Message(TEXT)`: prints a text on standard error when the configuration starts. No ports.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::{Context, Setup};
use crate::meaning::Meaning;

/// Message
pub const CLASS: Class = Class {
    name: "Message",
    ports: "0/0",
    processing: "a/a",
    make,
};

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let text = args.positional().map(|t| crate::language::args::text(&t));
    args.all();
    Ok(Box::new(Message(text.unwrap_or_default())))
}

struct Message(String);

impl Element for Message {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Says)
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        cx.note_configuring(&self.0);
        Ok(())
    }
}
