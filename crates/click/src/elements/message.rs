//! `Message(TEXT)`: prints a text on standard error when the configuration starts. No ports.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("Message", "0/0", "a/a", make)];

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
